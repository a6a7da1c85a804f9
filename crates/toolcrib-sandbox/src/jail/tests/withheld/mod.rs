//! What a program can do to withheld places that its grants contain.

mod attacks;
mod grants;

use std::fs;
use std::path::PathBuf;

use crate::jail::tests::LIMIT;
use crate::{Command, Confinement, Finished, Profile, SpawnError, run_blocking};

/// A workspace with files that a program must not have, and a folder outside of it.
struct TestFolders {
    _folder: tempfile::TempDir,
    top: PathBuf,
    workspace: PathBuf,
}

impl TestFolders {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let workspace = top.join("w");
        for name in ["scripts/deep", "state/inner", "tools.d", "free"] {
            fs::create_dir_all(workspace.join(name)).unwrap();
        }
        for (name, text) in [
            ("config.yml", "token\n"),
            ("state/inner/pins", "token\n"),
            ("scripts/deep/x.sh", "original\n"),
            ("scripts/deep/other", "other\n"),
            ("tools.d/a.yaml", "original\n"),
            ("tools.d/secret", "token\n"),
            ("free/file", "free\n"),
        ] {
            fs::write(workspace.join(name), text).unwrap();
        }
        Self { _folder: folder, top, workspace }
    }

    /// A folder and a file of each kind, and one that is hidden in a read-only folder.
    fn confinement(&self, profile: Profile) -> Confinement {
        let at = |name| self.workspace.join(name);
        let confinement = Confinement::new(profile)
            .workspace(&self.workspace)
            .hide(at("config.yml"))
            .hide(at("state"))
            .hide(at("tools.d/secret"))
            .read_only(at("tools.d"))
            .read_only(at("scripts/deep/x.sh"));
        match profile {
            Profile::Pure => confinement.write(&self.workspace),
            _ => confinement,
        }
    }

    fn sh(&self, text: &str, confinement: Confinement) -> Result<Finished, SpawnError> {
        let command = Command::new("/bin/sh").args(["-c", text]).cwd(&self.workspace);
        run_blocking(command.confine(confinement), LIMIT)
    }

    fn try_in_workspace(&self, text: &str) -> Finished {
        self.sh(text, self.confinement(Profile::Workspace)).unwrap()
    }

    fn assert_unchanged(&self, after: &str) {
        for (name, text) in [
            ("config.yml", "token\n"),
            ("state/inner/pins", "token\n"),
            ("scripts/deep/x.sh", "original\n"),
            ("tools.d/a.yaml", "original\n"),
            ("tools.d/secret", "token\n"),
        ] {
            let found = fs::read_to_string(self.workspace.join(name));
            assert_eq!(found.unwrap_or_default(), text, "{name} after {after}");
        }
        assert_eq!(fs::read_dir(self.workspace.join("tools.d")).unwrap().count(), 2, "{after}");
    }
}

/// Whether this machine can withhold places. If it cannot, a message says so, and other tests cover
/// that case.
fn can_withhold() -> bool {
    let places = TestFolders::new();
    match places.confinement(Profile::Workspace).check() {
        Ok(()) => true,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            false
        }
    }
}

/// The error of the check, which must equal that of the start.
fn refused(places: &TestFolders, confinement: &Confinement) -> String {
    let reason = confinement.check().unwrap_err();
    let error = places.sh("echo ran", confinement.clone()).unwrap_err();
    let SpawnError::Grants { reason: told, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*told, reason);
    reason
}
