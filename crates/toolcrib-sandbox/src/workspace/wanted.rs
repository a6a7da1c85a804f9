//! Parsing requested paths. Nothing is decoded, folded, trimmed or expanded: anything that is not
//! plainly a path is refused.

use std::path::{Component, Path};

use super::WorkspaceError;

/// The longest path, in bytes: the kernel's own limit, less the zero at the end.
const MAX_BYTES: usize = 4095;

/// The most components.
const MAX_COMPONENTS: usize = 256;

/// A path below the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestedPath {
    /// Names and `..`, in order; none for the root itself.
    names: Vec<String>,
    /// It ends so that it can only mean a folder.
    folder: bool,
}

impl RequestedPath {
    /// Reads a path. An absolute one has to begin with one of the ways to write the root.
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

    /// As the kernel is asked for it, from the root.
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

    /// Whether it goes up somewhere.
    pub(super) fn climbs(&self) -> bool {
        self.names.iter().any(|name| name == "..")
    }

    /// The folder, and the name in it; `None` where it ends in the root or in `..`.
    pub(super) fn split(&self) -> Option<(Self, &str)> {
        let (name, folder) = self.names.split_last()?;
        (name != "..").then(|| (Self { names: folder.to_vec(), folder: true }, name.as_str()))
    }

    /// Its first `count` names, as a folder.
    pub(super) fn first(&self, count: usize) -> Self {
        Self { names: self.names[..count.min(self.names.len())].to_vec(), folder: true }
    }

    /// Where it is if no link is on the way; `None` if only looking can tell.
    pub(super) fn plain(&self) -> Option<std::path::PathBuf> {
        (!self.climbs()).then(|| self.names.iter().collect())
    }
}

/// What is left of an absolute path once the root is taken off its beginning, name by name.
fn below<'p, 't>(parts: &'p [&'t str], root: &Path) -> Option<&'p [&'t str]> {
    let mut rest = parts;
    for component in root.components() {
        let Component::Normal(name) = component else { continue };
        // `/project/./a` is `/project/a`; `..` is left to the kernel, which will refuse it.
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
