//! Chooses the folder of a call: the project that the host names, or the only folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use toolcrib_sandbox::{ControlPlane, PROTECTED_NAMES, Workspace};
use toolcrib_tool::{ErrorKind, ToolError};

/// The context key under which a host names the project of a call.
pub const PROJECT_ID: &str = "project_id";

/// The folders that built-in tools may work in, as a service for the tools.
///
/// With named projects every call needs a `project_id` in its context, which only the host can set. Otherwise all calls
/// work in one folder, and a `project_id` is ignored.
///
/// Roots are opened at the first call that needs them, and again if they were deleted and recreated.
///
/// ```
/// use toolcrib_builtins::Projects;
///
/// let dir = tempfile::tempdir()?;
/// let one = Projects::in_folder(dir.path());
/// assert!(one.workspace(None).is_ok());
///
/// let several = Projects::named([("docs", dir.path())]);
/// assert_eq!(several.workspace(None).unwrap_err().kind().as_str(), "missing_context");
/// assert_eq!(several.workspace(Some("code")).unwrap_err().kind().as_str(), "execution");
/// assert!(several.workspace(Some("docs")).is_ok());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Projects {
    roots: Roots,
    sensitive: Vec<PathBuf>,
    protected: Vec<PathBuf>,
    protected_names: Vec<PathBuf>,
    plane: ControlPlane,
}

#[derive(Debug)]
enum Roots {
    One(Root),
    Named(BTreeMap<String, Root>),
}

#[derive(Debug)]
struct Root {
    path: PathBuf,
    opened: Mutex<Option<Arc<Workspace>>>,
}

impl Root {
    fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), opened: Mutex::default() }
    }
}

impl Projects {
    /// One folder for all calls.
    pub fn in_folder(root: impl Into<PathBuf>) -> Self {
        Self::over(Roots::One(Root::new(root)))
    }

    /// Named projects, each with its root.
    pub fn named<N: Into<String>, P: Into<PathBuf>>(
        projects: impl IntoIterator<Item = (N, P)>,
    ) -> Self {
        let roots = projects.into_iter();
        Self::over(Roots::Named(roots.map(|(name, root)| (name.into(), Root::new(root))).collect()))
    }

    fn over(roots: Roots) -> Self {
        let protected_names = PROTECTED_NAMES.map(PathBuf::from).into();
        let plane = ControlPlane::new();
        Self { roots, sensitive: Vec::new(), protected: Vec::new(), protected_names, plane }
    }

    /// The same folders with another control plane. They are reopened when needed.
    #[must_use]
    pub fn under(&self, plane: &ControlPlane) -> Self {
        let anew = |root: &Root| Root::new(&root.path);
        let roots = match &self.roots {
            Roots::One(root) => Roots::One(anew(root)),
            Roots::Named(named) => {
                Roots::Named(named.iter().map(|(name, root)| (name.clone(), anew(root))).collect())
            }
        };
        Self {
            roots,
            sensitive: self.sensitive.clone(),
            protected: self.protected.clone(),
            protected_names: self.protected_names.clone(),
            plane: plane.clone(),
        }
    }

    /// What file tools and programs in these folders may neither change nor read.
    pub fn control_plane(&self) -> &ControlPlane {
        &self.plane
    }

    /// The folders, as given.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        let (one, named) = match &self.roots {
            Roots::One(root) => (Some(root), None),
            Roots::Named(named) => (None, Some(named.values())),
        };
        one.into_iter().chain(named.into_iter().flatten()).map(|root| root.path.as_path())
    }

    /// Whether every call needs a `project_id` in its context.
    pub fn needs_project_id(&self) -> bool {
        matches!(self.roots, Roots::Named(_))
    }

    /// Adds absolute paths that no file tool reads or changes, with everything below them. Keys and credentials in home
    /// folders are always included.
    #[must_use]
    pub fn sensitive(mut self, places: impl IntoIterator<Item = PathBuf>) -> Self {
        self.sensitive.extend(places);
        self
    }

    /// Adds absolute paths that file tools can read but not change.
    #[must_use]
    pub fn protected(mut self, places: impl IntoIterator<Item = PathBuf>) -> Self {
        self.protected.extend(places);
        self
    }

    /// Sets file names that file tools can read but not change, in any folder. Default: [`PROTECTED_NAMES`].
    #[must_use]
    pub fn protected_names(mut self, names: impl IntoIterator<Item = PathBuf>) -> Self {
        self.protected_names = names.into_iter().collect();
        self
    }

    /// The workspace of a call. Fails with `missing_context` if a required id is missing, and with `execution` if the
    /// id is unknown.
    pub fn workspace(&self, project_id: Option<&str>) -> Result<Arc<Workspace>, ToolError> {
        let root = self.root_of(project_id)?;
        let mut opened = root.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(workspace) = opened.as_ref().filter(|workspace| !workspace.is_gone()) {
            return Ok(Arc::clone(workspace));
        }
        let workspace = Workspace::builder(&root.path)
            .sensitive(&self.sensitive)
            .protected(&self.protected)
            .protected_names(&self.protected_names)
            .control_plane(&self.plane)
            .open()
            .map_err(|error| {
                ToolError::execution("the project's folder cannot be opened")
                    .with_hint(
                        "Tell the user: the server's settings name a folder that it cannot use.",
                    )
                    .with_source(error)
            })?;
        Ok(Arc::clone(opened.insert(Arc::new(workspace))))
    }

    /// The root of a call's project, as given. Fails as [`workspace`](Self::workspace) does.
    pub fn root(&self, project_id: Option<&str>) -> Result<&Path, ToolError> {
        self.root_of(project_id).map(|root| root.path.as_path())
    }

    fn root_of(&self, project_id: Option<&str>) -> Result<&Root, ToolError> {
        let projects = match &self.roots {
            Roots::One(root) => return Ok(root),
            Roots::Named(projects) => projects,
        };
        let Some(id) = project_id else {
            return Err(ToolError::new(
                ErrorKind::MissingContext,
                "the host has not supplied `project_id`, which this tool takes from the context",
            )
            .with_hint(
                "It cannot be given as an argument. Tell the user that the host must set it.",
            ));
        };
        projects.get(id).ok_or_else(|| {
            ToolError::execution(format!("there is no project {id:?}"))
                .with_hint("The host has named it. Tell the user that it has to be configured.")
        })
    }
}
