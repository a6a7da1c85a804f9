//! The record of `toolcrib trust`: a file in the state folder that only its owner can write.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[cfg(unix)]
use crate::stores::give_to_owner;

/// A declaration that the operator trusts, as it was then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Trusted {
    /// `tool`, `upstream`, `prompt` or `resource`.
    pub kind: String,
    /// The manifest, by its absolute path.
    pub unit: String,
    /// The name of the tool, server or prompt; of a resource its address.
    pub name: String,
    /// The digest of its declaration.
    pub digest: String,
    /// What the operator was shown of it, to tell later what has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
}

impl Trusted {
    /// The same with what the operator was shown of it.
    #[must_use]
    pub fn showing(mut self, shown: String) -> Self {
        self.shown = Some(shown);
        self
    }

    /// Whether both are about the declaration of one name, whatever it says.
    pub fn is_about_the_same(&self, other: &Self) -> bool {
        (&self.kind, &self.unit, &self.name) == (&other.kind, &other.unit, &other.name)
    }
}

/// The record, `trust.json` in a state folder. It need not be there.
#[derive(Debug, Clone)]
pub struct TrustRecord {
    path: PathBuf,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Document {
    version: u32,
    trusted: Vec<Trusted>,
}

/// The version of the file's format.
const VERSION: u32 = 1;

impl TrustRecord {
    /// The record of a state folder.
    pub fn in_state(state_dir: &Path) -> Self {
        Self { path: state_dir.join("trust.json") }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it has. A record that cannot be used trusts nothing, which is logged.
    pub fn trusted(&self) -> Vec<Trusted> {
        self.read().unwrap_or_else(|error| {
            tracing::warn!("{error}; nothing that it records is trusted");
            Vec::new()
        })
    }

    /// What it has. Fails, naming the file, if others can write to it or it is not a record.
    pub fn read(&self) -> io::Result<Vec<Trusted>> {
        let shown = self.path.display();
        let named = |problem: String| {
            io::Error::other(format!("the record of trusted tools {shown} {problem}"))
        };
        let metadata = match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            found => found.map_err(|error| named(format!("cannot be read: {error}")))?,
        };
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let folder =
            fs::metadata(folder).map_err(|error| named(format!("cannot be read: {error}")))?;
        if !metadata.is_file() || !is_private(&metadata) || !is_private(&folder) {
            let problem = "can be changed by others: it has to be a file of this user with mode 0600 \
                           in a folder with mode 0700";
            return Err(named(problem.to_owned()));
        }
        let text =
            fs::read(&self.path).map_err(|error| named(format!("cannot be read: {error}")))?;
        let document: Document = serde_json::from_slice(&text)
            .map_err(|error| named(format!("cannot be used: {error}; remove it to begin anew")))?;
        if document.version != VERSION {
            return Err(named(format!("has version {}, not {VERSION}", document.version)));
        }
        Ok(document.trusted)
    }

    /// Adds declarations; each replaces what the record has under its name. The folder must be there
    /// ([`StateDir::open`](crate::stores::StateDir::open) makes it).
    pub fn add(&self, added: &[Trusted]) -> io::Result<()> {
        self.change(|all| {
            all.retain(|own| !added.iter().any(|new| new.is_about_the_same(own)));
            all.extend_from_slice(added);
        })
    }

    /// Removes what `revoked` says; returns how many that were.
    pub fn remove(&self, revoked: impl Fn(&Trusted) -> bool) -> io::Result<usize> {
        let mut removed = 0;
        self.change(|all| {
            let before = all.len();
            all.retain(|own| !revoked(own));
            removed = before - all.len();
        })?;
        Ok(removed)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Trusted>)) -> io::Result<()> {
        // Held against other processes from reading to writing.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let lock = options.open(self.path.with_extension("lock"))?;
        #[cfg(unix)]
        let folder = self.path.parent().unwrap_or(Path::new("."));
        #[cfg(unix)]
        give_to_owner(&lock, folder)?;
        lock.lock()?;
        let mut trusted = self.read()?;
        change(&mut trusted);
        trusted.sort_by(|one, other| {
            (&one.unit, &one.kind, &one.name).cmp(&(&other.unit, &other.kind, &other.name))
        });
        let unfinished = self.path.with_extension("part");
        let mut file = options.truncate(true).open(&unfinished)?;
        file.write_all(&serde_json::to_vec_pretty(&Document { version: VERSION, trusted })?)?;
        #[cfg(unix)]
        give_to_owner(&file, folder)?;
        file.sync_all()?;
        fs::rename(&unfinished, &self.path)
    }
}

/// Whether only this user and the system's administrator can change it.
#[cfg(unix)]
fn is_private(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let own = rustix::process::geteuid().as_raw();
    // The administrator looks into the folders of servers that run as another user.
    (own == 0 || found.uid() == own || found.uid() == 0) && found.mode() & 0o022 == 0
}

#[cfg(not(unix))]
fn is_private(_: &fs::Metadata) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn trusted(name: &str, digest: &str) -> Trusted {
        Trusted {
            kind: "tool".to_owned(),
            unit: "/srv/a.yaml".to_owned(),
            name: name.to_owned(),
            digest: digest.to_owned(),
            shown: None,
        }
    }

    #[test]
    fn the_record_keeps_one_digest_for_each_name() {
        let dir = tempfile::tempdir().unwrap();
        let record = TrustRecord::in_state(dir.path());
        assert_eq!(record.trusted(), []);
        record.add(&[trusted("b", "1"), trusted("a", "1")]).unwrap();
        record.add(&[trusted("b", "2")]).unwrap();
        assert_eq!(record.trusted(), [trusted("a", "1"), trusted("b", "2")]);
        assert_eq!(record.remove(|own| own.name == "a").unwrap(), 1);
        assert_eq!(record.trusted(), [trusted("b", "2")]);
    }

    #[test]
    fn what_the_administrator_records_belongs_to_the_user_of_the_state_folder() {
        use std::os::unix::fs::{MetadataExt as _, chown};

        let dir = tempfile::tempdir().unwrap();
        let (user, group) = (12_345, 12_346);
        if chown(dir.path(), Some(user), Some(group)).is_err() {
            // Only the administrator can give files away.
            return;
        }
        let record = TrustRecord::in_state(dir.path());
        record.add(&[trusted("a", "1")]).unwrap();
        record.add(&[trusted("b", "1")]).unwrap();
        for entry in fs::read_dir(dir.path()).unwrap() {
            let found = entry.unwrap().metadata().unwrap();
            assert_eq!((found.uid(), found.gid()), (user, group));
        }
        assert_eq!(record.read().unwrap().len(), 2);
    }

    #[test]
    fn a_record_that_others_can_write_trusts_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let record = TrustRecord::in_state(dir.path());
        record.add(&[trusted("a", "1")]).unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        set(record.path(), 0o666);
        assert!(record.read().unwrap_err().to_string().contains("changed by others"));
        assert_eq!(record.trusted(), []);
        set(record.path(), 0o600);
        set(dir.path(), 0o777);
        assert_eq!(record.trusted(), []);
        set(dir.path(), 0o700);
        assert_eq!(record.trusted().len(), 1);
    }
}
