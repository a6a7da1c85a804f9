//! The attacked program, and the features of its version.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A build of the program.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a feature that a version has or lacks")]
pub(crate) struct Program {
    /// The binary; `toolcrib-jail` is beside it.
    pub(crate) path: PathBuf,
    /// The manifests that are shipped with it.
    pub(crate) manifests: PathBuf,
    /// Whether its config supports `manifests.trusted`.
    pub(crate) knows_trust: bool,
    /// Whether its config supports `state.homes`.
    pub(crate) knows_homes: bool,
    /// Whether its config supports `limits.memory`.
    pub(crate) knows_limits: bool,
    /// Whether its config supports `mcp.stdio.rights`.
    pub(crate) knows_stdio_rights: bool,
}

impl Program {
    /// The one that `TOOLCRIB_RED_TEAM_PROGRAM` names (with `TOOLCRIB_RED_TEAM_MANIFESTS`),
    /// otherwise the one that was built with these tests.
    pub(crate) fn get() -> &'static Self {
        static PROGRAM: OnceLock<Program> = OnceLock::new();
        PROGRAM.get_or_init(|| {
            let named = std::env::var_os("TOOLCRIB_RED_TEAM_PROGRAM").map(PathBuf::from);
            let path = named.unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_toolcrib")));
            let manifests = std::env::var_os("TOOLCRIB_RED_TEAM_MANIFESTS").map(PathBuf::from);
            let shipped = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools.d");
            let folder = tempfile::tempdir().unwrap();
            let said = command(&path)
                .current_dir(folder.path())
                .args(["config", "show"])
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&said.stdout).into_owned();
            Self {
                manifests: manifests.unwrap_or_else(shipped),
                knows_trust: said.contains("  trusted:"),
                knows_homes: said.contains("  homes:"),
                knows_limits: said.contains("limits:"),
                knows_stdio_rights: said.contains("  stdio:"),
                path,
            }
        })
    }
}

/// A command of the test itself, with an environment that reveals nothing.
pub(crate) fn command(program: &Path) -> Command {
    #[expect(clippy::disallowed_methods, reason = "the test starts the binary itself")]
    let mut command = Command::new(program);
    command.env_clear();
    command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    command
}
