//! Errors of the database, each with what to do about it.

use toolcrib_core::spill::SpillError;
use toolcrib_core::suspension::StoreError;

/// Why the database could not be opened, read or written. A failed change is rolled back completely.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// There is no room for the change.
    #[error(
        "the disk is full, so the change to {place} was rolled back: free some space and try again"
    )]
    DiskFull {
        /// The database.
        place: String,
    },
    /// It cannot be written to.
    #[error(
        "{place} cannot be written to: its file, its folder or its file system is read-only; name a \
         folder in `state.dir` that this user may write to"
    )]
    ReadOnly {
        /// The database.
        place: String,
    },
    /// The disk, or a limit on file sizes, refused a read or write.
    #[error(
        "{place} could not be read or written ({problem}), and the change was rolled back: check \
         the disk, and whether this process has a limit on file sizes"
    )]
    Disk {
        /// The database.
        place: String,
        /// SQLite's message.
        problem: String,
    },
    /// Another process held the lock for too long.
    #[error(
        "{place} has been locked by another process for {seconds} s: try again; if it stays locked, \
         `fuser` shows which process has the file open"
    )]
    Locked {
        /// The database.
        place: String,
        /// How long this process waited for the lock.
        seconds: u64,
    },
    /// A server uses the database.
    #[error("the server with process {process} uses {place}: stop it first")]
    InUse {
        /// The database.
        place: String,
        /// The server's process.
        process: u32,
    },
    /// The file is damaged.
    #[error(
        "{place} is damaged ({problem}): stop the servers that use it, then move it away \
         together with its `-wal` and `-shm` files; the next start creates a new one. `sqlite3 \
         FILE .recover` may recover data from the old one"
    )]
    Corrupt {
        /// The database.
        place: String,
        /// SQLite's message.
        problem: String,
    },
    /// The database was made by a newer toolcrib.
    #[error(
        "{place} was made by a newer toolcrib (its schema has version {found}; this program \
         supports up to {known}): use that version, or name another folder in `state.dir`"
    )]
    Newer {
        /// The database.
        place: String,
        /// The version of its schema.
        found: i32,
        /// The newest version that this program can read.
        known: usize,
    },
    /// The file is a database of another program.
    #[error(
        "{place} is a database of another program and was left unchanged: name another folder in \
         `state.dir`"
    )]
    Foreign {
        /// The database.
        place: String,
    },
    /// The file system lacks a feature that several processes need to share a database.
    #[error(
        "the folder {dir} is on a file system that cannot hold the database: {problem}; name a \
         folder on a local disk in `state.dir`, or set it to `none` to keep state in memory"
    )]
    Unfit {
        /// The folder.
        dir: String,
        /// What is missing.
        problem: String,
    },
    /// The database's thread has ended.
    #[error("{place} is closed")]
    Closed {
        /// The database.
        place: String,
    },
    /// Any other failure.
    #[error("{place}: {problem}")]
    Failed {
        /// The database.
        place: String,
        /// The failure.
        problem: String,
    },
}

impl From<DatabaseError> for StoreError {
    fn from(error: DatabaseError) -> Self {
        Self::Failed { action: "use the database".to_owned(), source: Box::new(error) }
    }
}

impl From<DatabaseError> for SpillError {
    fn from(error: DatabaseError) -> Self {
        Self::Failed(error.to_string())
    }
}
