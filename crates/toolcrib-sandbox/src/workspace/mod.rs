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
pub use remove::Removed;
pub use replace::Written;
pub use walk::{Step, Visit, Walked};

/// The names that are [protected](WorkspaceBuilder::protected_names) where nobody says otherwise:
/// what git, editors, MCP clients and toolcrib itself run or obey.
pub const PROTECTED_NAMES: [&str; 5] =
    [".git/hooks", ".git/config", ".mcp.json", ".vscode", "tools.d"];

/// A folder, held open by a descriptor, and the files below it.
///
/// Paths are texts as a model writes them: relative to the root, or absolute and beginning with it.
/// They are looked up by the kernel below the descriptor (`openat2` with `RESOLVE_BENEATH`), or a
/// component at a time where it cannot, never compared as texts, so neither `..` nor a link nor a
/// rename at the wrong moment leads out. A link
/// that stays inside is followed; one with an absolute target is not, wherever it leads.
///
/// Whatever is outside gets the same answer ([`WorkspaceError::Outside`]), whether it exists or
/// not. Credentials ([`sensitive`](WorkspaceBuilder::sensitive)) and what decides what other
/// programs do ([`PROTECTED_NAMES`]) are refused inside, too.
///
/// Files are replaced as a whole, so that nobody ever sees half of one; operations on one file by
/// users of one [`LockTable`] wait for each other. All of them block their thread.
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
    /// How the root is written: as it was given, and without links.
    roots: [PathBuf; 2],
    guard: PathGuard,
    locks: LockTable,
}

/// Says what is refused in a [`Workspace`], and with whom it shares its locks.
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
    /// Adds places that no operation touches, with all that is below them: absolute paths. Those of
    /// keys and credentials in home folders (`~/.ssh ~/.aws ~/.kube ~/.gnupg ~/.netrc
    /// ~/.config/gcloud`) always are.
    #[must_use]
    pub fn sensitive<P: Into<PathBuf>>(mut self, places: impl IntoIterator<Item = P>) -> Self {
        self.sensitive.extend(places.into_iter().map(Into::into));
        self
    }

    /// Adds places that can be read and not changed: absolute paths.
    #[must_use]
    pub fn protected<P: Into<PathBuf>>(mut self, places: impl IntoIterator<Item = P>) -> Self {
        self.protected.extend(places.into_iter().map(Into::into));
        self
    }

    /// Sets the names that can be read and not changed in whatever folder they are, as one or more
    /// components: `.vscode`, `.git/hooks`. Default: [`PROTECTED_NAMES`].
    #[must_use]
    pub fn protected_names<P: Into<PathBuf>>(mut self, names: impl IntoIterator<Item = P>) -> Self {
        self.protected_names = names.into_iter().map(Into::into).collect();
        self
    }

    /// Adds the places of a control plane, as they are at each operation: hidden ones are
    /// [sensitive](Self::sensitive), read-only ones [protected](Self::protected). Default: one without
    /// places.
    #[must_use]
    pub fn control_plane(mut self, plane: &ControlPlane) -> Self {
        self.plane = plane.clone();
        self
    }

    /// Sets whose locks it shares. Default: those of the process.
    #[must_use]
    pub fn locks(mut self, locks: &LockTable) -> Self {
        self.locks = locks.clone();
        self
    }

    /// Looks paths up component by component even where the kernel could do it in one call. It is
    /// slower and no safer: to test with.
    #[must_use]
    pub fn in_steps(mut self) -> Self {
        self.lookup = Some(Lookup::Steps);
        self
    }

    /// Looks paths up as on systems that are not Linux: in steps, with nothing that only Linux has. It
    /// is no safer either, and needs the right to read every folder on the way: to test with.
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
    /// Opens a folder as the root, with everything at its default.
    pub fn open(root: impl Into<PathBuf>) -> io::Result<Self> {
        Self::builder(root).open()
    }

    /// Begins to describe a root.
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

    /// The root, absolute and without links, as it was when it was opened.
    pub fn root(&self) -> &Path {
        &self.roots[1]
    }

    /// Whether the root was deleted since it was opened: nothing can be found in it any more, also
    /// if there is another folder of its name.
    pub fn is_gone(&self) -> bool {
        self.tree.is_gone(self.root())
    }

    /// What is at a path, following links; `None`: nothing.
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

    /// A path as it is written from the root: `.` for the root itself, without empty and `.`
    /// components. Nothing is looked up.
    pub fn relative(&self, path: &str) -> Result<String, WorkspaceError> {
        let names = self.wanted(path)?.names().join("/");
        Ok(if names.is_empty() { ".".to_owned() } else { names })
    }

    /// Makes a folder, and those on the way to it. `false`: it was there.
    pub fn make_folder(&self, path: &str) -> Result<bool, WorkspaceError> {
        let wanted = self.wanted(path)?;
        self.check_text(&wanted)?;
        self.make_folders(&wanted)
    }

    fn wanted(&self, path: &str) -> Result<RequestedPath, WorkspaceError> {
        RequestedPath::parse(path, self.roots.iter().map(PathBuf::as_path))
    }

    /// Refuses what is sensitive by its text alone, so that the answer is the same if it is not there.
    fn check_text(&self, wanted: &RequestedPath) -> Result<(), WorkspaceError> {
        wanted.plain().map_or(Ok(()), |place| self.guard.check(&place, Operation::Look))
    }
}
