//! Copies a database that is in use to a file, and puts such a copy in its place again.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::database::schema::version;
use crate::database::servers::living;
use crate::database::{connect, schema};
use crate::error::DatabaseError;
use crate::folder::StateFolder;
use crate::folder::location::{DatabaseLocation, file_failure, is_there, prepare};

/// The copy that is about to become the database.
const RESTORED: &str = "toolcrib.db-restored";
/// The database that a restore has replaced.
pub(crate) const REPLACED: &str = "toolcrib.db-before-restore";

/// Copies the database of a folder to a new file (mode 0600) while servers use it: everything that was committed when
/// the copy began. Returns the size of the copy. Blocks the calling thread.
///
/// Servers go on meanwhile. Fails if the file exists or other users may write to its folder; a copy that cannot be completed is removed.
pub fn back_up(dir: &Path, file: &Path) -> Result<u64, DatabaseError> {
    let place = DatabaseLocation::Folder(dir.to_owned());
    if !is_there(dir)? {
        return Err(failed(&place.to_string(), "there is nothing to back up: it does not exist"));
    }
    let shown = file.display().to_string();
    if file.symlink_metadata().is_ok() {
        return Err(failed(&shown, "it exists: name a new file"));
    }
    closed(file)?;
    let mut part = file.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part);
    made.map_err(|error| file_failure(&part, &error))?;
    let copied = copy(&place, &part).and_then(|bytes| {
        // Unlike a rename, a link replaces no file that somebody else has created meanwhile.
        fs::hard_link(&part, file).map_err(|error| file_failure(file, &error))?;
        Ok(bytes)
    });
    // After a failure, nothing is left behind.
    let _ = fs::remove_file(&part);
    copied
}

fn copy(place: &DatabaseLocation, part: &Path) -> Result<u64, DatabaseError> {
    let connection = connect(place)?;
    version(&connection, place)?;
    // One read transaction: writers are not held up, and their later changes are not copied.
    let name = part
        .to_str()
        .ok_or_else(|| failed(&part.display().to_string(), "its name is not UTF-8"))?;
    connection.execute("VACUUM INTO ?1", [name]).map_err(|error| place.failure(error))?;
    check(part)?;
    let copied =
        || File::open(part).and_then(|file| file.sync_all().and_then(|()| file.metadata()));
    copied().map(|found| found.len()).map_err(|error| file_failure(part, &error))
}

/// Puts a copy that [`back_up`] has made in the place of a folder's database, which may not exist. The database that
/// was there before is kept as `toolcrib.db-before-restore`. Blocks the calling thread.
///
/// Fails, changing nothing, if a server uses the folder, or if the file is damaged, another program's, or of a newer
/// toolcrib. Calls that ran when the copy was made get the outcome "unknown whether it ran"; waiting calls wait again.
pub fn restore(dir: &Path, file: &Path) -> Result<(), DatabaseError> {
    check(file)?;
    // Held until the end, so that no server starts meanwhile.
    let _opening = prepare(dir)?;
    let place = DatabaseLocation::Folder(dir.to_owned());
    if let Some(process) = living(&place)? {
        return Err(DatabaseError::InUse { place: place.to_string(), process });
    }
    let folder = StateFolder::open(dir).map_err(|error| file_failure(dir, &error))?;
    put_in_place(&folder, dir, file).map_err(|error| file_failure(dir, &error))
}

fn put_in_place(folder: &StateFolder, dir: &Path, file: &Path) -> io::Result<()> {
    let copied = |from: &mut File, to: &str| -> io::Result<()> {
        let mut to = folder.new_file(to)?;
        io::copy(from, &mut to)?;
        to.sync_all()
    };
    copied(&mut File::open(file)?, RESTORED)?;
    // What is in the log belongs to the old database. A damaged one keeps it beside its copy.
    let name = "toolcrib.db";
    let log = format!("{name}-wal");
    let log_copied = Connection::open_with_flags(
        dir.join(name),
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NOFOLLOW,
    )
    .and_then(|old| {
        old.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))
    });
    if let Some(mut old) = folder.existing(name)? {
        copied(&mut old, REPLACED)?;
    }
    if folder.is_there(&log)? {
        if matches!(log_copied, Ok(0)) {
            folder.remove(&log)?;
        } else {
            folder.rename(&log, &format!("{REPLACED}-wal"))?;
        }
    }
    let shared = format!("{name}-shm");
    if folder.is_there(&shared)? {
        folder.remove(&shared)?;
    }
    // Whenever this process is killed, the folder has one of the two databases as a whole.
    folder.rename(RESTORED, name)?;
    File::open(dir)?.sync_all()
}

/// Fails unless a file is a sound database of this or an earlier toolcrib.
fn check(file: &Path) -> Result<(), DatabaseError> {
    let shown = file.display().to_string();
    let named = |error: DatabaseError| failed(&shown, &error.to_string());
    let place = DatabaseLocation::Memory;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)
        .map_err(|error| failed(&shown, &error.to_string()))?;
    let sound = connection.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    match sound {
        Ok(found) if found == "ok" => {}
        Ok(problem) => return Err(DatabaseError::Corrupt { place: shown, problem }),
        Err(error) => {
            return Err(DatabaseError::Corrupt { place: shown, problem: error.to_string() });
        }
    }
    if !schema::is_own(&connection).map_err(|error| named(place.failure(error)))? {
        return Err(DatabaseError::Foreign { place: shown });
    }
    version(&connection, &place).map(drop).map_err(named)
}

/// Fails if other users may replace files in the folder of a new file.
fn closed(file: &Path) -> Result<(), DatabaseError> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mode = folder.metadata().map_err(|error| file_failure(folder, &error))?.mode();
    let (others_write, is_sticky) = (mode & 0o022 != 0, mode & 0o1000 != 0);
    if others_write && !is_sticky {
        let problem = "others may write to this folder: choose a folder that only you can write to";
        return Err(failed(&folder.display().to_string(), problem));
    }
    Ok(())
}

fn failed(place: &str, problem: &str) -> DatabaseError {
    DatabaseError::Failed { place: place.to_owned(), problem: problem.to_owned() }
}
