//! Copies a database that is in use to a file, and puts such a copy in its place again.

mod unfinished;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::io::Errno;

use self::unfinished::UnfinishedBackup;
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
/// Servers go on meanwhile. Fails if the file exists or other users may write to its folder. Until the copy is complete
/// it is a hidden file in the same folder. It is removed after a failure, and by the next backup into this folder if
/// the process is killed.
pub fn back_up(dir: &Path, file: &Path) -> Result<u64, DatabaseError> {
    let place = DatabaseLocation::Folder(dir.to_owned());
    if !is_there(dir)? {
        return Err(failed(&place.to_string(), "there is nothing to back up: it does not exist"));
    }
    let shown = file.display().to_string();
    if file.symlink_metadata().is_ok() {
        return Err(failed(&shown, "it exists: name a new file"));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    closed(folder)?;
    let part = UnfinishedBackup::create(folder).map_err(|error| file_failure(folder, &error))?;
    let bytes = copy(&place, part.path())?;
    // Unlike a rename, a link replaces no file that somebody else has created meanwhile.
    fs::hard_link(part.path(), file).map_err(|error| file_failure(file, &error))?;
    Ok(bytes)
}

fn copy(place: &DatabaseLocation, part: &Path) -> Result<u64, DatabaseError> {
    let connection = connect(place)?;
    version(&connection, place)?;
    // One read transaction: writers are not held up, and their later changes are not copied.
    let name = part
        .to_str()
        .ok_or_else(|| failed(&part.display().to_string(), "its name is not UTF-8"))?;
    connection.execute("VACUUM INTO ?1", [name]).map_err(|error| place.failure(error))?;
    check(part, part)?;
    let copied =
        || File::open(part).and_then(|file| file.sync_all().and_then(|()| file.metadata()));
    copied().map(|found| found.len()).map_err(|error| file_failure(part, &error))
}

/// Puts a copy that [`back_up`] has made in the place of a folder's database, which may not exist. The database that
/// was there before is kept as `toolcrib.db-before-restore`. Blocks the calling thread.
///
/// Fails, changing nothing, if a server uses the folder, if the file is a link or other users may change it, or if it is
/// damaged, another program's, or of a newer toolcrib: the database decides what is trusted. Calls that ran when the copy was made get the outcome "unknown whether it ran"; waiting calls wait again.
pub fn restore(dir: &Path, file: &Path) -> Result<(), DatabaseError> {
    let owner = fs::metadata(dir).map_or(0, |found| found.uid());
    let mut given = private_file(file, owner)?;
    // Held until the end, so that no server starts meanwhile.
    let _opening = prepare(dir)?;
    let place = DatabaseLocation::Folder(dir.to_owned());
    if let Some(process) = living(&place)? {
        return Err(DatabaseError::InUse { place: place.to_string(), process });
    }
    let folder = StateFolder::open(dir).map_err(|error| file_failure(dir, &error))?;
    let unusable = |error: io::Error| file_failure(dir, &error);
    copied(&folder, &mut given, RESTORED).map_err(unusable)?;
    // The copy is checked, which nobody else can change any more.
    if let Err(error) = check(&dir.join(RESTORED), file) {
        folder.remove(RESTORED).map_err(unusable)?;
        return Err(error);
    }
    put_in_place(&folder, dir).map_err(unusable)
}

/// Opens a file that only its owner may change: root, this user, or the owner of the state.
fn private_file(file: &Path, owner: u32) -> Result<File, DatabaseError> {
    let shown = file.display().to_string();
    let opened = unfinished::open_at_once(file).map_err(|error| match error.raw_os_error() {
        Some(code) if code == Errno::LOOP.raw_os_error() => {
            failed(&shown, "it is a symbolic link: name the file itself")
        }
        _ => file_failure(file, &error),
    })?;
    let found = opened.metadata().map_err(|error| file_failure(file, &error))?;
    let own = [0, rustix::process::geteuid().as_raw(), owner];
    if !found.is_file() {
        return Err(failed(&shown, "it is not a regular file"));
    }
    if !own.contains(&found.uid()) || found.mode() & 0o022 != 0 {
        let problem = "other users may change this file, and what is restored decides what is trusted: if you know \
                       where it comes from, run `chown` and `chmod go-w` on it";
        return Err(failed(&shown, problem));
    }
    Ok(opened)
}

fn copied(folder: &StateFolder, from: &mut File, to: &str) -> io::Result<()> {
    let mut to = folder.new_file(to)?;
    io::copy(from, &mut to)?;
    to.sync_all()
}

/// Replaces the database of a folder by the copy in it.
fn put_in_place(folder: &StateFolder, dir: &Path) -> io::Result<()> {
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
        copied(folder, &mut old, REPLACED)?;
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

/// Fails unless a file is a sound database of this or an earlier toolcrib. Errors show it as `named`.
fn check(file: &Path, named: &Path) -> Result<(), DatabaseError> {
    let shown = named.display().to_string();
    let named = |error: DatabaseError| failed(&shown, &error.to_string());
    let place = DatabaseLocation::Memory;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)
        .map_err(|error| failed(&shown, &error.to_string()))?;
    let sound = connection.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    match sound {
        Ok(found) if found == "ok" => {}
        Ok(problem) => return Err(failed(&shown, &format!("this copy is damaged: {problem}"))),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            let problem =
                "this file is no database: name a file that `toolcrib state backup` has written";
            return Err(failed(&shown, problem));
        }
        Err(error) => return Err(failed(&shown, &format!("this copy is damaged: {error}"))),
    }
    if !schema::is_own(&connection).map_err(|error| named(place.failure(error)))? {
        return Err(DatabaseError::Foreign { place: shown });
    }
    version(&connection, &place).map(drop).map_err(named)
}

/// Fails if other users may replace files in a folder.
fn closed(folder: &Path) -> Result<(), DatabaseError> {
    let found = folder.metadata().map_err(|error| file_failure(folder, &error))?;
    let (others_write, is_sticky) = (found.mode() & 0o022 != 0, found.mode() & 0o1000 != 0);
    let is_of_another = ![0, rustix::process::geteuid().as_raw()].contains(&found.uid());
    if others_write && !is_sticky || is_of_another {
        let problem = "others may write to this folder: choose a folder that only you can write to";
        return Err(failed(&folder.display().to_string(), problem));
    }
    Ok(())
}

fn failed(place: &str, problem: &str) -> DatabaseError {
    DatabaseError::Failed { place: place.to_owned(), problem: problem.to_owned() }
}
