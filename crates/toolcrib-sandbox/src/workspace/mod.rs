//! File access below one root folder.

mod content;
mod entry;
mod error;
mod folder;
mod guard;
mod homes;
mod kernel;
mod locks;
mod names;
mod read;
mod remove;
mod replace;
mod steps;
mod tree;
mod walk;
mod wanted;

use std::io;
use std::path::{Path, PathBuf};

use guard::{Operation, PathGuard};
use tree::{FolderTree, Lookup};
use wanted::RequestedPath;

use crate::ControlPlane;

pub(crate) use guard::starts_with as is_below;
#[cfg(target_os = "linux")]
pub(crate) use kernel::path_of;

pub use entry::{Entry, Kind};
pub use error::WorkspaceError;
pub use homes::sensitive_places;
pub use locks::{LockKey, LockMode, LockTable, Locked};
pub use read::OpenFile;
pub use remove::RemoveReport;
pub use replace::WriteReport;
pub use walk::{Visit, WalkControl, WalkReport};

/// The default [protected names](WorkspaceBuilder::protected_names): files that git, editors, MCP
/// clients and toolcrib itself run or obey.
pub const PROTECTED_NAMES: [&str; 5] =
    [".git/hooks", ".git/config", ".mcp.json", ".vscode", "tools.d"];

/// A folder, held open by a descriptor, with the files below it.
///
/// Paths are texts as a model writes them: relative to the root, or absolute and starting with it.
/// The kernel resolves them below the descriptor (`openat2` with `RESOLVE_BENEATH`); where it
/// cannot, they are resolved one component at a time. They are never compared as texts. So neither
/// `..` nor a link nor a concurrent rename leads out. A link that stays inside is followed; a link
/// with an absolute target is never followed.
///
/// Everything outside gets the same error ([`WorkspaceError::Outside`]), whether it exists or not.
/// Credentials ([`sensitive`](WorkspaceBuilder::sensitive)) and files that control other programs
/// ([`PROTECTED_NAMES`]) are refused inside the root too.
///
/// Files are replaced as a whole, so that no reader sees half of one. Operations on one file by
/// users of one [`LockTable`] wait for each other. All operations block their thread.
///
/// ```
/// use toolcrib_sandbox::{Workspace, WorkspaceError};
///
/// let dir = tempfile::tempdir()?;
/// let workspace = Workspace::open(dir.path())?;
/// workspace.write("notes/today.txt", b"hello")?;
/// assert_eq!(workspace.read("notes/../notes/today.txt", 100)?, b"hello");
/// assert!(matches!(workspace.read("../secret", 100), Err(WorkspaceError::Outside)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Workspace {
    tree: FolderTree,
    /// The spellings of the root: as given, and without links.
    roots: [PathBuf; 2],
    guard: PathGuard,
    locks: LockTable,
}

/// Configures which places a [`Workspace`] refuses, and whose locks it shares.
#[derive(Debug, Clone)]
pub struct WorkspaceBuilder {
    root: PathBuf,
    sensitive: Vec<PathBuf>,
    protected: Vec<PathBuf>,
    protected_names: Vec<PathBuf>,
    plane: ControlPlane,
    locks: LockTable,
    lookup: Option<Lookup>,
}

impl WorkspaceBuilder {
    /// Adds sensitive places, which no operation accesses, with everything below them. Paths are
    /// absolute. The places of keys and credentials in home folders
    /// (`~/.ssh ~/.aws ~/.kube ~/.gnupg ~/.netrc ~/.config/gcloud`) are always sensitive.
    #[must_use]
    pub fn sensitive<P: Into<PathBuf>>(mut self, places: impl IntoIterator<Item = P>) -> Self {
        self.sensitive.extend(places.into_iter().map(Into::into));
        self
    }

    /// Adds read-only places. Paths are absolute.
    #[must_use]
    pub fn protected<P: Into<PathBuf>>(mut self, places: impl IntoIterator<Item = P>) -> Self {
        self.protected.extend(places.into_iter().map(Into::into));
        self
    }

    /// Sets the names that are read-only in every folder, each with one or more components:
    /// `.vscode`, `.git/hooks`. Default: [`PROTECTED_NAMES`].
    #[must_use]
    pub fn protected_names<P: Into<PathBuf>>(mut self, names: impl IntoIterator<Item = P>) -> Self {
        self.protected_names = names.into_iter().map(Into::into).collect();
        self
    }

    /// Adds the current places of a control plane, which are read at each operation: hidden ones are
    /// [sensitive](Self::sensitive), read-only ones [protected](Self::protected). Default: no places.
    #[must_use]
    pub fn control_plane(mut self, plane: &ControlPlane) -> Self {
        self.plane = plane.clone();
        self
    }

    /// Sets the table of locks. Default: that of the process.
    #[must_use]
    pub fn locks(mut self, locks: &LockTable) -> Self {
        self.locks = locks.clone();
        self
    }

    /// Resolves paths component by component even if the kernel could do it in one call. It is
    /// slower and no safer; it is meant for tests.
    #[must_use]
    pub fn in_steps(mut self) -> Self {
        self.lookup = Some(Lookup::Steps);
        self
    }

    /// Resolves paths as on systems other than Linux: component by component, without Linux-only functions. It is no
    /// safer and needs read permission on every folder on the way; it is meant for tests.
    #[must_use]
    pub fn portably(mut self) -> Self {
        self.lookup = Some(Lookup::Portable);
        self
    }

    /// Opens the root.
    pub fn open(self) -> io::Result<Workspace> {
        let given = std::path::absolute(&self.root)?;
        let real = self.root.canonicalize()?;
        let mut sensitive = homes::sensitive_places();
        sensitive.extend(self.sensitive);
        let guard =
            PathGuard::new(&real, &sensitive, &self.protected, &self.protected_names, &self.plane);
        let guard = guard.map_err(|place| {
            let what = format!("it is in {}, which is never touched", place.display());
            io::Error::new(io::ErrorKind::PermissionDenied, what)
        })?;
        let tree = FolderTree::open(&real, self.lookup)?;
        Ok(Workspace { tree, roots: [given, real], guard, locks: self.locks })
    }
}

impl Workspace {
    /// Opens a folder as the root, with default settings.
    pub fn open(root: impl Into<PathBuf>) -> io::Result<Self> {
        Self::builder(root).open()
    }

    /// Starts to configure a workspace.
    pub fn builder(root: impl Into<PathBuf>) -> WorkspaceBuilder {
        WorkspaceBuilder {
            root: root.into(),
            sensitive: Vec::new(),
            protected: Vec::new(),
            protected_names: PROTECTED_NAMES.map(PathBuf::from).into(),
            plane: ControlPlane::new(),
            locks: LockTable::of_process(),
            lookup: None,
        }
    }

    /// The absolute path of the root without links, as it was when the root was opened.
    pub fn root(&self) -> &Path {
        &self.roots[1]
    }

    /// Whether the root was deleted since it was opened. Nothing can be found in it then, even if
    /// another folder has its name.
    pub fn is_gone(&self) -> bool {
        self.tree.is_gone(self.root())
    }

    /// The entry at a path, following links; `None` if it does not exist.
    pub fn look(&self, path: &str) -> Result<Option<Entry>, WorkspaceError> {
        let wanted = self.wanted(path)?;
        self.check_text(&wanted)?;
        match self.tree.look(&wanted, self.guard.concerns(Operation::Look)) {
            Ok((stat, place)) => {
                if let Some(place) = place {
                    self.guard.check(&place, Operation::Look)?;
                }
                Ok(Some(Entry::from(&stat)))
            }
            Err(error) => match self.telling(error, &wanted) {
                WorkspaceError::NotFound | WorkspaceError::NotAFolder => Ok(None),
                error => Err(error),
            },
        }
    }

    /// The normal form of a path, relative to the root: `.` for the root itself, without empty and
    /// `.` components. The file system is not accessed.
    pub fn relative(&self, path: &str) -> Result<String, WorkspaceError> {
        let names = self.wanted(path)?.names().join("/");
        Ok(if names.is_empty() { ".".to_owned() } else { names })
    }

    /// Creates a folder and its missing parents. Returns `false` if it exists.
    pub fn make_folder(&self, path: &str) -> Result<bool, WorkspaceError> {
        let wanted = self.wanted(path)?;
        self.check_text(&wanted)?;
        self.make_folders(&wanted)
    }

    fn wanted(&self, path: &str) -> Result<RequestedPath, WorkspaceError> {
        RequestedPath::parse(path, self.roots.iter().map(PathBuf::as_path))
    }

    /// Refuses sensitive places by the text of the path alone, so that the error is the same if they do not exist.
    fn check_text(&self, wanted: &RequestedPath) -> Result<(), WorkspaceError> {
        wanted.plain().map_or(Ok(()), |place| self.guard.check(&place, Operation::Look))
    }
}
