//! The state directory.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(feature = "http")]
use toolcrib_http::AnswerLimits;
#[cfg(feature = "http")]
use toolcrib_store::Answers;
#[cfg(feature = "mcp")]
use toolcrib_store::DatabasePins;
use toolcrib_store::{Database, Runs, Spills, StateFolder, Suspensions};

use super::private_dir::private_dir;

/// What earlier versions kept in files of their own. It is left as it is and not read.
const FORMER: [&str; 6] = ["answers", "pins", "runs", "spill", "suspensions", "trust.json"];

/// Names that only a state folder has: one of them is enough.
const OWN_NAMES: [&str; 9] = [
    "answers",
    "control",
    "pins",
    "spill",
    "suspensions",
    "toolcrib.db",
    "trust.changed",
    "trust.json",
    "trust.lock",
];
/// Names that may stand in a folder before it is used: of a new file system, of a check of rights, and of
/// another process that begins.
const NEUTRAL_NAMES: [&str; 3] = ["lost+found", "runs", "servers"];

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

/// A directory of its owner's alone, with the database `toolcrib.db` in it. Several processes may share it.
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
pub struct StateDir {
    dir: PathBuf,
    /// Opened once, when it is first needed.
    database: Arc<Mutex<Option<Database>>>,
}

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
        Ok(Self { dir, database: Arc::default() })
    }

    /// Takes the rights of others on a directory away that [`open`](Self::open) would refuse for them, if it
    /// is this user's and is empty or has been used for state. Says which mode it had. For a directory that
    /// nobody has named: whoever names one is told instead.
    pub fn make_private(dir: &Path) -> io::Result<Option<u32>> {
        if Self::is_mendable(dir) { StateFolder::make_private(dir) } else { Ok(None) }
    }

    /// Whether [`make_private`](Self::make_private) would change a directory that others may look into.
    pub fn is_mendable(dir: &Path) -> bool {
        let own = rustix::process::geteuid().as_raw();
        let is_own =
            std::fs::symlink_metadata(dir).is_ok_and(|found| found.is_dir() && found.uid() == own);
        is_own && matches!(foreign(dir), Ok(None))
    }

    /// Fails, with what to do, if somebody else could put another directory in the place of this one, which
    /// is there. Its database is not opened then.
    pub fn check_place(dir: &Path) -> io::Result<()> {
        StateFolder::open(dir)?;
        StateFolder::refuse_links(dir)?;
        Self::check_owner(dir)
    }

    /// Fails if this process is root's and the directory is another user's. That user could change what is
    /// trusted, pinned and approved there, and so what root runs. Commands that only change what is kept
    /// there for another user's server need not ask.
    pub fn check_owner(dir: &Path) -> io::Result<()> {
        let owner = std::fs::metadata(dir)?.uid();
        if owner == 0 || !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let shown = dir.display();
        let message = format!(
            "the state folder {shown} belongs to another user (number {owner}), who could change what is \
             trusted and pinned there, and so what root runs: run this as that user, or run \
             `chown -R root {shown}` after a look at what is in it"
        );
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Whether a directory has a database. A command that looks creates none.
    pub fn has_database(dir: &Path) -> bool {
        dir.join("toolcrib.db").is_file()
    }

    /// Its database, opened when this is first called and made if it is not there. Files in which
    /// earlier versions kept the same are named in the log.
    pub fn database(&self) -> io::Result<Database> {
        let mut opened = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(database) = &*opened {
            return Ok(database.clone());
        }
        let database = Database::open(&self.dir).map_err(io::Error::other)?;
        self.name_former_files();
        *opened = Some(database.clone());
        Ok(database)
    }

    fn name_former_files(&self) {
        let found: Vec<_> =
            FORMER.into_iter().filter(|name| self.dir.join(name).exists()).collect();
        if !found.is_empty() {
            let (folder, files) = (self.dir.display(), found.join(", "));
            tracing::warn!(
                %folder,
                "files of an earlier version are left as they are and not read any more: {files}; \
                 remove them when you do not need them"
            );
        }
    }

    /// Long outputs, in the database, within [`Spills::disk_limits`].
    pub fn spill(&self) -> io::Result<Spills> {
        self.database().map(|database| Spills::new(&database, Spills::disk_limits()))
    }

    /// Suspended calls, in the database.
    pub fn suspensions(&self) -> io::Result<Suspensions> {
        self.database().map(|database| Suspensions::new(&database))
    }

    /// What imported definitions were when they were first seen, in the database.
    #[cfg(feature = "mcp")]
    pub fn pins(&self) -> io::Result<DatabasePins> {
        self.database().map(|database| DatabasePins::new(&database))
    }

    /// Answers to requests with an `Idempotency-Key`, in the database.
    #[cfg(feature = "http")]
    pub fn answers(&self) -> io::Result<Answers> {
        self.database().map(|database| Answers::within(&database, AnswerLimits::default()))
    }

    /// Runs, in the database.
    pub fn runs(&self) -> io::Result<Runs> {
        self.database().map(|database| Runs::new(&database))
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
