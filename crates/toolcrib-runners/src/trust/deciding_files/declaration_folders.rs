//! The folders and grants of a declaration, which decide how the files it names are classified.

use std::path::{Path, PathBuf};

use toolcrib_manifest::declaration::SandboxSpec;

use super::absolute;
use super::programs::looks_like_code;
use crate::RunnerHost;
use crate::confinement::resolved;
use crate::trust::spellings;

/// The folders and grants of a declaration.
#[derive(Clone)]
pub(super) struct DeclarationFolders<'a> {
    /// The program's working directory.
    pub(super) cwd: PathBuf,
    /// The manifest's folder.
    pub(super) beside: &'a Path,
    /// The workspace. Folders below it count as a whole if code is loaded from them.
    pub(super) workspace: &'a Path,
    /// Paths that the declaration grants for writing: the program's data.
    pub(super) written: Vec<PathBuf>,
    /// Files that the argument vector names for writing, without symbolic links.
    pub(super) outputs: Vec<PathBuf>,
}

impl<'a> DeclarationFolders<'a> {
    pub(super) fn new(
        cwd: &Path,
        beside: &'a Path,
        host: &'a RunnerHost,
        sandbox: &SandboxSpec,
    ) -> Self {
        let cwd = absolute(cwd);
        let written = sandbox.write.iter().map(|path| absolute(&resolved(path, host))).collect();
        Self { cwd, beside, workspace: &host.workspace_root, written, outputs: Vec::new() }
    }

    /// Whether a path, as written or resolved, is in the manifest's folder or the workspace.
    pub(super) fn is_own(&self, place: &Path) -> bool {
        let beside = if self.beside.as_os_str().is_empty() { Path::new(".") } else { self.beside };
        let roots = [beside, self.workspace].map(spellings).concat();
        spellings(place).iter().any(|place| roots.iter().any(|root| place.starts_with(root)))
    }

    /// Whether a folder is the workspace or contains it.
    pub(super) fn holds_workspace(&self, folder: &Path) -> bool {
        let workspaces = spellings(self.workspace);
        spellings(folder)
            .iter()
            .any(|folder| workspaces.iter().any(|workspace| workspace.starts_with(folder)))
    }

    /// Whether the argument vector names a file for writing.
    pub(super) fn is_output(&self, place: &Path) -> bool {
        !self.outputs.is_empty()
            && place.canonicalize().is_ok_and(|place| self.outputs.contains(&place))
    }

    /// Whether a file that does not exist would be the program's data: the vector names it for writing, or the
    /// declaration grants it for writing and it does not look like code.
    pub(super) fn is_written_or_data(&self, place: &Path) -> bool {
        self.outputs.iter().any(|output| output == place) || self.is_plain_data(place)
    }

    /// Whether a file that the declaration grants for writing is data even for a program that runs files: the grant
    /// names exactly this file, or the file does not look like code.
    pub(super) fn is_plain_data(&self, place: &Path) -> bool {
        let place: &Path = &place.components().collect::<PathBuf>();
        let is_granted = self.written.iter().any(|grant| *grant == place);
        self.is_data(place) && (is_granted || !looks_like_code(place))
    }

    /// Whether a symbolic link in the workspace leads to a place.
    pub(super) fn is_behind_a_link(&self, place: &Path) -> bool {
        is_behind_a_link(place, self.workspace)
    }

    /// Whether the declaration grants a place for writing, not counting a grant of the whole workspace.
    pub(super) fn is_data(&self, place: &Path) -> bool {
        let workspace = absolute(self.workspace);
        self.written.iter().any(|grant| {
            let grant: PathBuf = grant.components().collect();
            place.starts_with(&grant) && !workspace.starts_with(&grant)
        })
    }
}

/// Whether a symbolic link in the workspace leads to a place.
pub(crate) fn is_behind_a_link(place: &Path, workspace: &Path) -> bool {
    let place: &Path = &place.components().collect::<PathBuf>();
    let roots = spellings(workspace);
    let is_inside =
        |place: &&Path| roots.iter().any(|root| place.starts_with(root) && place != root);
    place.ancestors().filter(is_inside).any(Path::is_symlink)
}
