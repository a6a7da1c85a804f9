//! The declared confinement of a program.

use std::path::PathBuf;

use serde::Serialize;

/// The confinement of a program, as a manifest declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SandboxSpec {
    /// The profile.
    pub profile: SandboxProfile,
    /// Files and folders that it may read in addition to those of its profile. `~` is the home
    /// directory of the server's user; relative paths are resolved against the workspace root.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<PathBuf>,
    /// Files and folders that it may read and write.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<PathBuf>,
    /// Whether the program runs only if its confinement is fully enforced, whatever the server's
    /// config says. Default `false`, except for [`SandboxProfile::Pure`]: the config then decides,
    /// and by default it requires enforcement.
    pub required: bool,
    /// The memory limit of each process, in bytes, from the manifest's `limits`; if `None`, that of
    /// the profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

impl SandboxSpec {
    /// A profile with its defaults.
    pub const fn of(profile: SandboxProfile) -> Self {
        let required = matches!(profile, SandboxProfile::Pure);
        Self { profile, read: Vec::new(), write: Vec::new(), required, memory: None }
    }
}

/// The profile of a declared program: how far it is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum SandboxProfile {
    /// It may compute, but use no files of the workspace and no network.
    #[serde(rename = "pure")]
    Pure,
    /// It may use the workspace, but no network. The default of tools.
    #[serde(rename = "workspace")]
    Workspace,
    /// It may use the workspace and the network. The default of MCP servers that this server
    /// starts.
    #[serde(rename = "workspace+net")]
    WorkspaceNet,
    /// It has the permissions of the server.
    #[serde(rename = "trusted")]
    Trusted,
}

impl SandboxProfile {
    /// All profiles, from the strictest.
    pub const ALL: [Self; 4] = [Self::Pure, Self::Workspace, Self::WorkspaceNet, Self::Trusted];

    /// The name in manifests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Workspace => "workspace",
            Self::WorkspaceNet => "workspace+net",
            Self::Trusted => "trusted",
        }
    }
}
