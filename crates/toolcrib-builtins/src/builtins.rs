//! The host's settings for the built-in tools: which names are exposed, and in which folders the tools work.

use std::fmt;
use std::sync::Arc;

#[cfg(any(feature = "files", feature = "python", feature = "shell"))]
use toolcrib_sandbox::ControlPlane;
use toolcrib_tool::{NativeTool, Services, ToolEntry};

#[cfg(feature = "files")]
use crate::NameProfile;
#[cfg(any(feature = "files", feature = "python", feature = "shell"))]
use crate::Projects;
#[cfg(feature = "python")]
use crate::code::PythonSettings;
#[cfg(feature = "shell")]
use crate::shell::BashSettings;

/// The host's settings for the built-in tools of this crate.
///
/// Linking the crate makes its tools available; these settings decide which are exposed.
///
/// ```
/// # #[cfg(feature = "files")] {
/// use toolcrib_tool::{Services, native_tools};
/// use toolcrib_builtins::{Builtins, Projects};
///
/// let builtins = Builtins::new().projects(Projects::in_folder("."));
/// let services = builtins.lend(Services::new());
/// assert!(services.get::<Projects>().is_some());
/// let of = |name: &str| {
///     let native = native_tools().into_iter().find(|tool| tool.name == name)?;
///     builtins.expose(native, native.entry().ok()?)
/// };
/// assert!(of("file_read").is_some() && of("read_file").is_none());
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Builtins {
    #[cfg(feature = "files")]
    profile: NameProfile,
    #[cfg(any(feature = "files", feature = "python", feature = "shell"))]
    projects: Option<Arc<Projects>>,
    #[cfg(feature = "shell")]
    bash: Option<Arc<BashSettings>>,
    #[cfg(feature = "python")]
    python: Option<Arc<PythonSettings>>,
    families: Families,
}

/// The built-in tools of other crates, and the services that they need.
#[derive(Clone, Default)]
struct Families {
    crates: Vec<&'static str>,
    lend: Vec<Arc<dyn Fn(Services) -> Services + Send + Sync>>,
    left_out: Vec<&'static str>,
}

impl fmt::Debug for Families {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.crates).finish()
    }
}

impl Builtins {
    /// The default names, without a folder: tools that need one are unavailable.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets under which names the file tools are exposed.
    #[cfg(feature = "files")]
    #[must_use]
    pub fn profile(mut self, profile: NameProfile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets the folders in which tools work.
    #[cfg(any(feature = "files", feature = "python", feature = "shell"))]
    #[must_use]
    pub fn projects(mut self, projects: Projects) -> Self {
        self.projects = Some(Arc::new(projects));
        self
    }

    /// Sets what file tools and programs may neither change nor read. Default: the control plane of the
    /// [projects](Self::projects), which is empty.
    #[cfg(any(feature = "files", feature = "python", feature = "shell"))]
    #[must_use]
    pub fn control_plane(mut self, plane: &ControlPlane) -> Self {
        self.projects = self.projects.map(|projects| Arc::new(projects.under(plane)));
        self
    }

    /// The folders in which tools work, if any.
    #[cfg(any(feature = "files", feature = "python", feature = "shell"))]
    pub fn lent_projects(&self) -> Option<&Projects> {
        self.projects.as_deref()
    }

    /// Sets how `bash` runs commands. Default: [`BashSettings::default`].
    #[cfg(feature = "shell")]
    #[must_use]
    pub fn bash(mut self, settings: BashSettings) -> Self {
        self.bash = Some(Arc::new(settings));
        self
    }

    /// Sets how `execute_python` runs code. Default: [`PythonSettings::default`].
    #[cfg(feature = "python")]
    #[must_use]
    pub fn python(mut self, settings: PythonSettings) -> Self {
        self.python = Some(Arc::new(settings));
        self
    }

    /// Adds the tools of another linked crate to the built-in ones, so that the same settings decide whether they are
    /// exposed and where they work.
    #[must_use]
    pub fn family(mut self, krate: &'static str) -> Self {
        self.families.crates.push(krate);
        self
    }

    /// Adds a service for the tools of a [family](Self::family).
    #[must_use]
    pub fn family_service<T: Send + Sync + 'static>(mut self, service: Arc<T>) -> Self {
        self.families.lend.push(Arc::new(move |services| services.with(Arc::clone(&service))));
        self
    }

    /// Leaves a tool of a [family](Self::family) out: what it works on is not configured.
    #[must_use]
    pub fn without_family_tool(mut self, tool: &'static str) -> Self {
        self.families.left_out.push(tool);
        self
    }

    /// The crates whose linked tools are built-in tools: this one, and those of families.
    pub fn crates(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(Self::CRATE).chain(self.families.crates.iter().copied())
    }

    /// Adds the services that the tools need to those of a host.
    #[must_use]
    pub fn lend(&self, services: Services) -> Services {
        let services = self.families.lend.iter().fold(services, |services, lend| lend(services));
        #[cfg(any(feature = "files", feature = "python", feature = "shell"))]
        let services = lent(services, self.projects.as_ref());
        #[cfg(feature = "shell")]
        let services = lent(services, self.bash.as_ref());
        #[cfg(feature = "python")]
        let services = lent(services, self.python.as_ref());
        services
    }

    /// With named projects, a call without a `project_id` fails before anybody is asked for approval.
    #[cfg(any(feature = "files", feature = "python", feature = "shell"))]
    fn requiring_project_id(&self, mut entry: ToolEntry) -> ToolEntry {
        if self.projects.as_deref().is_some_and(Projects::needs_project_id) {
            let definition = Arc::unwrap_or_clone(entry.definition);
            entry.definition = Arc::new(definition.requiring_context(crate::projects::PROJECT_ID));
        }
        entry
    }

    /// The crate whose linked tools these are: the unit that declares them.
    pub const CRATE: &'static str = env!("CARGO_PKG_NAME");

    /// The registry entry of a linked tool, or `None` if it is not exposed. Tools of other crates are returned
    /// unchanged.
    pub fn expose(&self, tool: &NativeTool, entry: ToolEntry) -> Option<ToolEntry> {
        if !self.crates().any(|krate| tool.krate == krate) {
            return Some(entry);
        }
        if self.families.left_out.contains(&tool.name) {
            return None;
        }
        #[cfg(any(feature = "files", feature = "python", feature = "shell"))]
        let entry = self.requiring_project_id(entry);
        #[cfg(feature = "files")]
        if [NameProfile::Default, NameProfile::Harness]
            .into_iter()
            .any(|profile| profile.names().any(|name| name == tool.name))
        {
            if !self.profile.names().any(|name| name == tool.name) {
                return None;
            }
            if self.projects.is_none() {
                return Some(entry.unavailable("no folder is configured for it to work in"));
            }
        }
        #[cfg(feature = "shell")]
        if tool.name == "bash"
            && let Some(projects) = &self.projects
            && let Some(reason) = crate::shell::objection(projects)
        {
            return Some(entry.unavailable(reason));
        }
        Some(entry)
    }
}

#[cfg(any(feature = "files", feature = "python", feature = "shell"))]
fn lent<T: Send + Sync + 'static>(services: Services, service: Option<&Arc<T>>) -> Services {
    match service {
        Some(service) => services.with(Arc::clone(service)),
        None => services,
    }
}

#[cfg(all(test, feature = "shell", feature = "files"))]
mod tests {
    use toolcrib_tool::native_tools;

    use super::*;

    #[test]
    fn built_in_tools_require_a_project_id_only_where_projects_are_named() {
        let dir = tempfile::tempdir().expect("there is room");
        let one = Builtins::new().projects(Projects::in_folder(dir.path()));
        let several = Builtins::new().projects(Projects::named([("a", dir.path())]));
        for (builtins, required) in [(one, false), (several, true)] {
            for name in ["bash", "file_read", "execute_python"] {
                let tools = native_tools();
                let Some(tool) = tools.iter().find(|tool| tool.name == name) else { continue };
                let entry = builtins.expose(tool, tool.entry().expect("it is right"));
                let entry = entry.expect("it is offered");
                let [injection] = entry.definition.injections() else { panic!("{name}") };
                assert_eq!(injection.required(), required, "{name}");
            }
        }
    }
}
