//! Parses requested paths. Nothing is decoded, folded, trimmed or expanded: a text that is not
//! clearly a path is refused.

use std::path::{Component, Path};

use super::WorkspaceError;

/// The maximum length in bytes: the kernel's own limit without the final zero.
const MAX_BYTES: usize = 4095;

/// The maximum number of components.
const MAX_COMPONENTS: usize = 256;

/// A path below the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestedPath {
    /// Names and `..`, in order; empty for the root itself.
    names: Vec<String>,
    /// Whether its end means a folder, such as a final slash.
    folder: bool,
}

impl RequestedPath {
    /// Parses a path. An absolute path has to start with one of the spellings of the root.
    pub(super) fn parse<'r>(
        text: &str,
        roots: impl IntoIterator<Item = &'r Path>,
    ) -> Result<Self, WorkspaceError> {
        let malformed = |problem| Err(WorkspaceError::Malformed(problem));
        if text.is_empty() {
            return malformed("the path is empty; `.` is the project's folder");
        }
        if text.len() > MAX_BYTES {
            return malformed("the path is longer than 4095 bytes");
        }
        if text.contains(char::is_control) {
            return malformed("the path has a control character in it");
        }
        let parts: Vec<_> = text.split('/').filter(|part| !part.is_empty()).collect();
        if parts.len() > MAX_COMPONENTS {
            return malformed("the path has more than 256 parts");
        }
        let parts = if text.starts_with('/') {
            let below = roots.into_iter().find_map(|root| below(&parts, root));
            below.ok_or(WorkspaceError::Outside)?
        } else {
            &parts
        };
        let last = text.rsplit('/').next().unwrap_or_default();
        Ok(Self {
            names: parts.iter().filter(|part| **part != ".").map(|&part| part.into()).collect(),
            folder: matches!(last, "" | "." | ".."),
        })
    }

    /// The form for the kernel, relative to the root.
    pub(super) fn text(&self) -> String {
        match (&*self.names, self.folder) {
            ([], _) => ".".to_owned(),
            (names, true) => names.join("/") + "/",
            (names, false) => names.join("/"),
        }
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether it can only mean a folder.
    pub(super) fn is_folder(&self) -> bool {
        self.folder
    }

    /// Whether it contains `..`.
    pub(super) fn climbs(&self) -> bool {
        self.names.iter().any(|name| name == "..")
    }

    /// The folder and the name in it; `None` if it ends in the root or in `..`.
    pub(super) fn split(&self) -> Option<(Self, &str)> {
        let (name, folder) = self.names.split_last()?;
        (name != "..").then(|| (Self { names: folder.to_vec(), folder: true }, name.as_str()))
    }

    /// Its first `count` names, as a folder.
    pub(super) fn first(&self, count: usize) -> Self {
        Self { names: self.names[..count.min(self.names.len())].to_vec(), folder: true }
    }

    /// Its location if no link is on the way; `None` if that needs a lookup.
    pub(super) fn plain(&self) -> Option<std::path::PathBuf> {
        (!self.climbs()).then(|| self.names.iter().collect())
    }
}

/// The rest of an absolute path after the root, compared name by name.
fn below<'p, 't>(parts: &'p [&'t str], root: &Path) -> Option<&'p [&'t str]> {
    let mut rest = parts;
    for component in root.components() {
        let Component::Normal(name) = component else { continue };
        // `/project/./a` is `/project/a`; `..` is left to the kernel, which refuses it.
        while let [".", more @ ..] = rest {
            rest = more;
        }
        let (first, more) = rest.split_first()?;
        if name.to_str() != Some(first) {
            return None;
        }
        rest = more;
    }
    Some(rest)
}
