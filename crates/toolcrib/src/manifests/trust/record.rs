//! The record of `toolcrib trust`: a table of the state folder's database, which only its owner can write.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use toolcrib_store::TrustedDeclaration;
use toolcrib_store::{StateFolder, TrustTable};

/// The file that is rewritten at every change of the record, so that running servers notice it.
const CHANGED: &str = "trust.changed";

/// The record of a state folder. The folder need not exist.
#[derive(Debug, Clone)]
pub struct TrustRecord {
    folder: PathBuf,
    table: TrustTable,
}

impl TrustRecord {
    /// The record of a state folder.
    pub fn in_state(state_dir: &Path) -> Self {
        Self { folder: state_dir.to_owned(), table: TrustTable::in_folder(state_dir) }
    }

    /// The file that is rewritten at every change of the record.
    pub fn watched(&self) -> PathBuf {
        self.folder.join(CHANGED)
    }

    /// The trusted declarations. If the record cannot be used, nothing is trusted, which is logged.
    /// The same applies if this process is root's and the record belongs to another user, who would
    /// otherwise determine what root runs
    /// ([`StateDir::check_owner`](crate::stores::StateDir::check_owner)).
    pub fn trusted(&self) -> Vec<TrustedDeclaration> {
        let read = match self.check_owner() {
            Ok(()) => self.read(),
            Err(refused) => Err(refused),
        };
        read.unwrap_or_else(|error| {
            tracing::warn!("{error}; nothing that it records is trusted");
            Vec::new()
        })
    }

    /// Its declarations. Fails, naming the file, if others can write to it or if it is not a
    /// record.
    pub fn read(&self) -> io::Result<Vec<TrustedDeclaration>> {
        self.check_that_it_is_private()?;
        self.table.all().map_err(io::Error::other)
    }

    #[cfg(unix)]
    fn check_owner(&self) -> io::Result<()> {
        match crate::stores::StateDir::check_owner(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            checked => checked,
        }
    }

    #[cfg(not(unix))]
    fn check_owner(&self) -> io::Result<()> {
        Ok(())
    }

    fn check_that_it_is_private(&self) -> io::Result<()> {
        let file = self.folder.join("toolcrib.db");
        let shown = file.display();
        let named = |problem: String| {
            io::Error::other(format!("the record of trusted tools in {shown} {problem}"))
        };
        let unreadable = |error: io::Error| named(format!("cannot be read: {error}"));
        let metadata = match fs::symlink_metadata(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found.map_err(unreadable)?,
        };
        let folder = fs::metadata(&self.folder).map_err(unreadable)?;
        if !metadata.is_file() || !is_private(&metadata) || !is_private(&folder) {
            let problem = "can be changed by others: it has to be a file of this user with mode 0600 \
                           in a folder with mode 0700";
            return Err(named(problem.to_owned()));
        }
        Ok(())
    }

    /// Adds declarations; each replaces the entry with the same name. The folder must exist
    /// ([`StateDir::open`](crate::stores::StateDir::open) creates it).
    pub fn add(&self, added: &[TrustedDeclaration]) -> io::Result<()> {
        self.check_that_it_is_private()?;
        self.table.add(added).map_err(io::Error::other)?;
        self.tell_servers()
    }

    /// Removes the declarations that `revoked` selects; returns how many were removed.
    pub fn remove(&self, revoked: impl Fn(&TrustedDeclaration) -> bool) -> io::Result<usize> {
        let mut found = self.read()?;
        found.retain(revoked);
        if found.is_empty() {
            return Ok(0);
        }
        let removed = self.table.remove(&found).map_err(io::Error::other)?;
        self.tell_servers()?;
        Ok(removed)
    }

    /// Makes running servers read the record again: they watch a separate file, because the
    /// database changes for many other reasons.
    fn tell_servers(&self) -> io::Result<()> {
        const UNFINISHED: &str = "trust.changed.part";
        let folder = StateFolder::open(&self.folder)?;
        folder.new_file(UNFINISHED)?;
        folder.rename(UNFINISHED, CHANGED)
    }
}

/// Whether only this user and the system's administrator can change it.
#[cfg(unix)]
fn is_private(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let own = rustix::process::geteuid().as_raw();
    // The administrator may read the folders of servers that run as another user.
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

    fn trusted(name: &str, digest: &str) -> TrustedDeclaration {
        TrustedDeclaration::new("tool", "/srv/a.yaml", name, digest)
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
    fn nothing_is_made_or_given_away_through_links_in_the_state_folder() {
        use std::os::unix::fs::{MetadataExt as _, chown, symlink};

        let home = tempfile::tempdir().unwrap();
        let victim = home.path().join("victim");
        fs::write(&victim, "root:secret").unwrap();
        let owner = victim.metadata().unwrap().uid();
        for name in ["trust.lock", "trust.changed", "trust.changed.part", "toolcrib.db-open"] {
            let dir = tempfile::tempdir().unwrap();
            let _ = chown(dir.path(), Some(12_345), Some(12_346));
            for leads_to in [&victim, &home.path().join("new")] {
                let _ = fs::remove_file(dir.path().join(name));
                symlink(leads_to, dir.path().join(name)).unwrap();
                // In either case, the target of the link stays unchanged.
                let _ = TrustRecord::in_state(dir.path()).add(&[trusted("a", "1")]);
                assert_eq!(victim.metadata().unwrap().uid(), owner, "{name}");
                assert_eq!(fs::read_to_string(&victim).unwrap(), "root:secret", "{name}");
                assert!(!home.path().join("new").exists(), "{name}");
            }
        }
    }

    #[test]
    fn what_the_administrator_records_belongs_to_the_user_of_the_state_folder() {
        use std::os::unix::fs::{MetadataExt as _, chown};

        let dir = tempfile::tempdir().unwrap();
        let (user, group) = (12_345, 12_346);
        if chown(dir.path(), Some(user), Some(group)).is_err() {
            // Only the administrator can change the owner of files.
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
        let file = dir.path().join("toolcrib.db");
        set(&file, 0o666);
        assert!(record.read().unwrap_err().to_string().contains("changed by others"));
        assert_eq!(record.trusted(), []);
        set(&file, 0o600);
        set(dir.path(), 0o777);
        assert_eq!(record.trusted(), []);
        set(dir.path(), 0o700);
        assert_eq!(record.trusted().len(), 1);
    }
}
