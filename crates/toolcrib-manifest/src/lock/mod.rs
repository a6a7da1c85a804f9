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

pub use admit::{LockMismatch, MismatchKind, apply_lock, apply_lock_to};
pub use changes::{Change, FieldChange, LockChange, changes};
pub use expanded::{digest_of, fields_of};
pub use file::LockError;

/// The default name of the file.
pub const LOCK_FILE: &str = "toolcrib.lock";

/// How a registry treats tools that differ from the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LockMode {
    /// The lock is not read.
    Off,
    /// They can be called, and people are warned. Without a lock, nothing is reported.
    #[default]
    Warn,
    /// They are blocked until the lock accepts them. Without a lock, all tools are blocked.
    Enforce,
}

/// The accepted declarations, by kind and name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lock {
    /// Sorted: this is the order in which it is written.
    pub entries: BTreeMap<(Kind, String), Locked>,
    /// The absolute path of the lock's folder. Owners below it have relative names, so that a lock
    /// does not depend on the working directory and the place of the checkout.
    folder: Option<PathBuf>,
}

/// The kind of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A tool, by its exposed name.
    Tool,
    /// An MCP server, by its name. Its tools have entries of their own.
    Upstream,
    /// A prompt, by its name.
    Prompt,
    /// A resource, by its address.
    Resource,
}

impl Kind {
    /// All kinds, in the order of a lock.
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

    /// The name of its table in the lock's file.
    const fn table(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Upstream => "upstreams",
            Self::Prompt => "prompts",
            Self::Resource => "resources",
        }
    }
}

/// The accepted declaration of a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Locked {
    /// The owner of the name.
    pub owner: Owner,
    /// The digest of the declaration ([`digest_of`]); `None` for tools that are compiled in: of them
    /// only the owner is pinned.
    pub digest: Option<String>,
    /// The declaration, for people: JSON pointer → value ([`fields_of`]). Only the digest decides.
    pub fields: BTreeMap<String, Value>,
}

/// The owner of a name in the notation of a lock: `layer:unit`, for example
/// `manifest:tools.d/disk.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// The name of the layer ([`Layer::as_str`]).
    pub layer: String,
    /// The declaring unit; for a manifest, its path relative to the lock's folder.
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
    /// An empty lock, for a file in this folder.
    pub fn empty(folder: &Path) -> Self {
        // Fails only for an empty path, or if there is no working directory.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        Self { entries: BTreeMap::new(), folder: std::path::absolute(folder).ok() }
    }

    /// The accepted declaration of a name.
    pub fn get(&self, kind: Kind, name: &str) -> Option<&Locked> {
        self.entries.get(&(kind, name.to_owned()))
    }

    /// Adds or replaces a name. `expanded` is its whole declaration
    /// ([`Declaration::expanded`](crate::declaration::Declaration::expanded)); `None` pins the
    /// owner only.
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

    /// A source in the notation of this lock.
    pub fn owner_of(&self, source: &Source) -> Owner {
        let unit = match (source.layer, &self.folder) {
            (Layer::Manifest, Some(folder)) => within(folder, &source.unit),
            _ => None,
        };
        let unit = unit.unwrap_or_else(|| source.unit.clone());
        Owner { layer: source.layer.as_str().to_owned(), unit }
    }
}

/// The path of a file relative to the folder, with slashes; `None` if it is not below.
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
