//! One directory for all that outlives the program.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

#[cfg(feature = "http")]
use super::FileAnswers;
#[cfg(feature = "mcp")]
use super::FilePins;
use super::private_dir::private_dir;
use super::{FileRuns, FileSpill, FileSuspensions};

/// Names that only a state folder has: one of them is enough.
const OWN_NAMES: [&str; 8] = [
    "answers",
    "control",
    "pins",
    "spill",
    "suspensions",
    "toolcrib.db",
    "trust.json",
    "trust.lock",
];
/// Names that may stand in a folder before it is used: of a new file system, of a check of rights, and of
/// another process that begins.
const NEUTRAL_NAMES: [&str; 2] = ["lost+found", "runs"];

/// A name in a folder that has entries, but none by which a state folder is known.
fn foreign(dir: &Path) -> io::Result<Option<OsString>> {
    let mut foreign = None;
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        let text = name.to_string_lossy();
        if OWN_NAMES.contains(&&*text) || text.starts_with("toolcrib.db") {
            return Ok(None);
        }
        if !NEUTRAL_NAMES.contains(&&*text) && !text.starts_with(".doctor-") {
            foreign = Some(name);
        }
    }
    Ok(foreign)
}

/// Whether [`StateDir::open`] would refuse a directory for what it holds; the answer is one of its names.
pub fn foreign_entry(dir: &Path) -> io::Result<Option<String>> {
    Ok(foreign(dir)?.map(|name| name.to_string_lossy().into_owned()))
}

/// A directory of its owner's alone, with a place for each store. Several processes may share it.
///
/// ```
/// use std::sync::Arc;
/// use toolcrib::Toolcrib;
/// use toolcrib::stores::StateDir;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let home = tempfile::tempdir()?;
/// # let dir = home.path().join("state");
/// let state = StateDir::open(&dir)?;
/// let crib = Toolcrib::builder()
///     .spill(Arc::new(state.spill()?))
///     .suspensions(Arc::new(state.suspensions()?))
///     .runs(Arc::new(state.runs()?))
///     .build()?;
/// # let _ = crib;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct StateDir(PathBuf);

impl StateDir {
    /// Opens it, made if it is not there. Fails if others may look into it, and if it holds files but none of
    /// a state folder: then it is somebody's home, project or folder of keys, named by mistake.
    pub fn open(dir: impl Into<PathBuf>) -> io::Result<Self> {
        let dir = dir.into();
        private_dir(&dir)?;
        if let Some(foreign) = foreign(&dir)? {
            let message = format!(
                "the directory {} holds `{}` and nothing that toolcrib has kept there: name an empty folder, \
                 or one that does not exist yet",
                dir.display(),
                foreign.to_string_lossy()
            );
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        Ok(Self(dir))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Long outputs, in `spill`, within [`FileSpill::limits`].
    pub fn spill(&self) -> io::Result<FileSpill> {
        FileSpill::open(self.0.join("spill"), FileSpill::limits())
    }

    /// Suspended calls, in `suspensions`.
    pub fn suspensions(&self) -> io::Result<FileSuspensions> {
        FileSuspensions::open(self.0.join("suspensions"))
    }

    /// What imported definitions were when they were first seen, in `pins`.
    #[cfg(feature = "mcp")]
    pub fn pins(&self) -> io::Result<FilePins> {
        FilePins::open(self.0.join("pins"))
    }

    /// Answers to requests with an `Idempotency-Key`, in `answers`.
    #[cfg(feature = "http")]
    pub fn answers(&self) -> io::Result<FileAnswers> {
        FileAnswers::open(self.0.join("answers"))
    }

    /// Runs, in `runs`.
    pub fn runs(&self) -> io::Result<FileRuns> {
        FileRuns::open(self.0.join("runs"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_folder_with_files_of_others_is_no_state_folder() {
        let home = tempfile::tempdir().unwrap();
        let keys = home.path().join("keys");
        fs::create_dir(&keys).unwrap();
        fs::set_permissions(&keys, fs::Permissions::from_mode(0o700)).unwrap();
        StateDir::open(&keys).expect("an empty folder is one");
        fs::write(keys.join("id_ed25519"), "").unwrap();
        let refused = StateDir::open(&keys).unwrap_err().to_string();
        assert!(
            refused.contains("holds `id_ed25519`") && refused.contains("an empty folder"),
            "{refused}"
        );
        assert_eq!(fs::read_dir(&keys).unwrap().count(), 1, "nothing is made in it");
    }

    #[test]
    fn a_folder_that_has_been_used_stays_one_whatever_else_comes_into_it() {
        let home = tempfile::tempdir().unwrap();
        for own in ["suspensions", "toolcrib.db"] {
            let dir = home.path().join(own).join("state");
            StateDir::open(&dir).unwrap();
            fs::write(dir.join("audit.jsonl"), "").unwrap();
            fs::write(dir.join(own), "").unwrap();
            StateDir::open(&dir).expect("it is known by one name");
        }
    }
}
