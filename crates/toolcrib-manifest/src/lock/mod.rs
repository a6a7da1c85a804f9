#![doc = include_str!("../docs/lock.md")]

mod admit;
mod changes;
mod expanded;
mod file;
mod offered;
mod text;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib_tool::{Layer, Source};

pub use admit::{Finding, Verdict, apply_lock, apply_lock_to};
pub use changes::{Change, FieldChange, LockChange, changes};
pub use expanded::{digest_of, fields_of};
pub use file::LockError;

/// The name of the file, where nothing else is said.
pub const LOCK_FILE: &str = "toolcrib.lock";

/// What a registry does about tools that are not as the lock has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LockMode {
    /// Nothing; the lock is not read.
    Off,
    /// They are called, and people are told. Where there is no lock, there is nothing to tell.
    #[default]
    Warn,
    /// They are blocked until the lock accepts them. Where there is no lock, it has accepted nothing.
    Enforce,
}

/// What is accepted: by kind and name, and as what.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lock {
    /// Sorted: this is the order in which it is written.
    pub entries: BTreeMap<(Kind, String), Locked>,
    /// The folder that the lock's file is in: owners below it are named from here, so that a lock
    /// reads the same wherever the program starts and wherever the checkout is. Absolute.
    folder: Option<PathBuf>,
}

/// What a name is the name of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A tool, by its exposed name.
    Tool,
    /// Another MCP server, by the name that begins the names of its tools: how it is reached and what
    /// it is given. Its tools are entries of their own.
    Upstream,
    /// A prompt, by its name.
    Prompt,
    /// A resource, by its address.
    Resource,
}

impl Kind {
    /// All of them, in the order in which a lock has them.
    pub const ALL: [Self; 4] = [Self::Tool, Self::Upstream, Self::Prompt, Self::Resource];

    /// A word for listings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Upstream => "upstream",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }

    /// The table of the lock's file.
    const fn table(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Upstream => "upstreams",
            Self::Prompt => "prompts",
            Self::Resource => "resources",
        }
    }
}

/// What was accepted of a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Locked {
    /// Who has the name.
    pub owner: Owner,
    /// The digest of the declaration ([`digest_of`]); `None` for tools that are compiled in: of them
    /// only the owner is pinned.
    pub digest: Option<String>,
    /// What was declared, for people: JSON pointer → value ([`fields_of`]). The digest decides.
    pub fields: BTreeMap<String, Value>,
}

/// Who declares a tool, as a lock names it: `layer:unit`, for example `manifest:tools.d/disk.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// The layer's word ([`Layer::as_str`]).
    pub layer: String,
    /// The declaring unit; of a manifest its path from the lock's folder.
    pub unit: String,
}

impl Owner {
    fn parse(text: &str) -> Option<Self> {
        let (layer, unit) = text.split_once(':')?;
        let known = [Layer::Host, Layer::Native, Layer::Manifest, Layer::Upstream, Layer::Fallback];
        known
            .iter()
            .any(|known| known.as_str() == layer)
            .then(|| Self { layer: layer.to_owned(), unit: unit.to_owned() })
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.layer, self.unit)
    }
}

impl Lock {
    /// A lock that has accepted nothing, for a file in this folder.
    pub fn empty(folder: &Path) -> Self {
        // Fails for an empty path only, or where there is no working directory.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        Self { entries: BTreeMap::new(), folder: std::path::absolute(folder).ok() }
    }

    /// What was accepted of a name.
    pub fn get(&self, kind: Kind, name: &str) -> Option<&Locked> {
        self.entries.get(&(kind, name.to_owned()))
    }

    /// Adds a name, or accepts it anew. `expanded` is all that its source declares of it
    /// ([`Declaration::expanded`](crate::declaration::Declaration::expanded)); `None` pins the owner
    /// only.
    pub fn accept(
        &mut self,
        kind: Kind,
        name: impl Into<String>,
        source: &Source,
        expanded: Option<&Value>,
    ) {
        let locked = Locked {
            owner: self.owner_of(source),
            digest: expanded.map(digest_of),
            fields: expanded.map(fields_of).unwrap_or_default(),
        };
        self.entries.insert((kind, name.into()), locked);
    }

    /// A source, as this lock names it.
    pub fn owner_of(&self, source: &Source) -> Owner {
        let unit = match (source.layer, &self.folder) {
            (Layer::Manifest, Some(folder)) => within(folder, &source.unit),
            _ => None,
        };
        let unit = unit.unwrap_or_else(|| source.unit.clone());
        Owner { layer: source.layer.as_str().to_owned(), unit }
    }
}

/// The path of a file below the folder, from there and with slashes.
fn within(folder: &Path, unit: &str) -> Option<String> {
    let path = std::path::absolute(unit).ok()?;
    let parts = path.strip_prefix(folder).ok()?.components();
    let parts: Option<Vec<&str>> = parts
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    parts.map(|parts| parts.join("/"))
}
