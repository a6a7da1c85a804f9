//! A crib that follows a directory, and files to put there.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use toolcrib::manifests::Manifests;
use toolcrib::runners::RunnerHost;
use toolcrib::{Toolcrib, ToolcribBuilder};

/// Long enough for a busy machine; what is waited for takes about a millisecond.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Followed {
    pub(crate) outer: TempDir,
    pub(crate) dir: PathBuf,
    pub(crate) crib: Toolcrib,
}

/// A manifest of one tool, which says `words`.
pub(crate) fn says(tool: &str, words: &str) -> String {
    format!(
        "toolcrib: 1\ntools:\n  - name: {tool}\n    description: Say what it says.\n    \
         annotations: {{read_only: true}}\n    run: {{argv: [echo, {words:?}]}}\n"
    )
}

impl Followed {
    /// Follows `tools.d` with these files in it.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        Self::made(files, |found, _| Toolcrib::builder().manifests(found))
    }

    /// The same, with a crib that is made of the manifests and the outer folder.
    pub(crate) fn made(
        files: &[(&str, &str)],
        builder: impl FnOnce(&Manifests, &Path) -> ToolcribBuilder,
    ) -> Self {
        let outer = TempDir::new().unwrap();
        let dir = outer.path().join("tools.d");
        fs::create_dir(&dir).unwrap();
        for (name, text) in files {
            fs::write(dir.join(name), text).unwrap();
        }
        // Not the folder of the manifests and scripts, which programs of a workspace could change.
        let work = outer.path().join("work");
        fs::create_dir_all(&work).unwrap();
        let found = Manifests::load(std::slice::from_ref(&dir), RunnerHost::new(&work));
        let crib = builder(&found, outer.path()).build().unwrap();
        crib.manifests().unwrap().watch().unwrap();
        Self { outer, dir, crib }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(crate) fn save(&self, file: &str, text: &str) {
        fs::write(self.path(file), text).unwrap();
    }

    /// The description and the words of a tool, as a turn opened now has them.
    pub(crate) fn tool(&self, name: &str) -> Option<String> {
        self.crib.turn().describe(name).map(|tool| tool.description().to_owned())
    }

    pub(crate) fn state(&self, name: &str) -> Option<&'static str> {
        let files = self.crib.manifests().unwrap().files();
        let file = files.iter().find(|file| file.path.ends_with(name))?;
        Some(file.state.as_str())
    }

    /// Waits until something holds.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !holds(self) {
            assert!(
                start.elapsed() < PATIENCE,
                "not within {PATIENCE:?}: {what}; {:?}",
                self.crib.manifests().unwrap().files()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

pub(crate) fn follow(dir: &Path, workspace: &Path) -> Toolcrib {
    let found = Manifests::load(&[dir.to_owned()], RunnerHost::new(workspace));
    let crib = Toolcrib::builder().manifests(&found).build().unwrap();
    crib.manifests().unwrap().watch().unwrap();
    crib
}
