//! Under what a declared program runs.

use std::path::PathBuf;

use serde::Serialize;

/// Under what a program runs, as a manifest declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SandboxSpec {
    /// What it may do.
    pub profile: SandboxProfile,
    /// Files and folders it may read beside what its profile grants. `~` is the home directory of
    /// the server's user; relative ones are below the workspace root.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<PathBuf>,
    /// Files and folders it may read and write.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<PathBuf>,
    /// Whether it runs only where all of that is enforced, whatever the server's config says.
    /// Default `false`, but for [`SandboxProfile::Pure`]: the config decides, and by default it
    /// requires every profile.
    pub required: bool,
    /// Bytes of memory that each process of it may have; those of its profile without. From the
    /// manifest's `limits`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

impl SandboxSpec {
    /// A profile as it is without a further word.
    pub const fn of(profile: SandboxProfile) -> Self {
        let required = matches!(profile, SandboxProfile::Pure);
        Self { profile, read: Vec::new(), write: Vec::new(), required, memory: None }
    }
}

/// How far a declared program is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum SandboxProfile {
    /// It computes, and nothing else.
    #[serde(rename = "pure")]
    Pure,
    /// It works in the workspace, without the network. The default of tools.
    #[serde(rename = "workspace")]
    Workspace,
    /// The same with the network. The default of MCP servers that are started here.
    #[serde(rename = "workspace+net")]
    WorkspaceNet,
    /// It may do what the server may.
    #[serde(rename = "trusted")]
    Trusted,
}

impl SandboxProfile {
    /// All of them, the strictest first.
    pub const ALL: [Self; 4] = [Self::Pure, Self::Workspace, Self::WorkspaceNet, Self::Trusted];

    /// As manifests write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Workspace => "workspace",
            Self::WorkspaceNet => "workspace+net",
            Self::Trusted => "trusted",
        }
    }
}
