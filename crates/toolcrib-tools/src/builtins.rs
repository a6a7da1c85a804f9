//! What a host decides about the built-in tools: which of their names are offered, and where they
//! work.

#[cfg(feature = "files")]
use std::sync::Arc;

use toolcrib_tool::{NativeTool, Services, ToolEntry};

#[cfg(feature = "files")]
use crate::{NameProfile, Projects};

/// What the built-in tools of this crate are given by their host.
///
/// Linking the crate makes its tools available; this decides which of them are exposed.
///
/// ```
/// # #[cfg(feature = "files")] {
/// use toolcrib_tool::{Services, native_tools};
/// use toolcrib_tools::{Builtins, Projects};
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
    #[cfg(feature = "files")]
    projects: Option<Arc<Projects>>,
}

impl Builtins {
    /// The default names, and nowhere to work: tools that need a folder are unavailable.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets by which names the file tools are offered.
    #[cfg(feature = "files")]
    #[must_use]
    pub fn profile(mut self, profile: NameProfile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets where tools work.
    #[cfg(feature = "files")]
    #[must_use]
    pub fn projects(mut self, projects: Projects) -> Self {
        self.projects = Some(Arc::new(projects));
        self
    }

    /// Adds what the tools need to what a host lends.
    #[must_use]
    pub fn lend(&self, services: Services) -> Services {
        #[cfg(feature = "files")]
        if let Some(projects) = &self.projects {
            return services.with(Arc::clone(projects));
        }
        services
    }

    /// The entry of a linked-in tool as it is to be registered; `None`: not at all. Tools of other
    /// crates stay as they are.
    pub fn expose(&self, tool: &NativeTool, entry: ToolEntry) -> Option<ToolEntry> {
        if tool.krate != env!("CARGO_PKG_NAME") {
            return Some(entry);
        }
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
        Some(entry)
    }
}
