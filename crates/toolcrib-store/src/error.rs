//! What can go wrong with the database, and what to do about it.

use toolcrib_core::spill::SpillError;
use toolcrib_core::suspension::StoreError;

/// Why the database could not be opened, read or written. A change that failed has left nothing behind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// There is no room for the change.
    #[error(
        "the disk is full, so {place} could not take the change, of which nothing is kept: free some \
         space and try again"
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
    /// The disk, or a limit on the size of files, has refused a read or write.
    #[error(
        "{place} could not be read or written ({problem}), and nothing of the change is kept: look \
         whether the disk is in order, and whether a limit on the size of files holds for this process"
    )]
    Disk {
        /// The database.
        place: String,
        /// What SQLite says.
        problem: String,
    },
    /// Another process has held it for too long.
    #[error(
        "{place} has been locked by another process for {seconds} s: try again; if it stays locked, \
         `fuser` shows which process has the file open"
    )]
    Locked {
        /// The database.
        place: String,
        /// How long was waited.
        seconds: u64,
    },
    /// The file is damaged.
    #[error(
        "{place} is damaged ({problem}): stop the servers that use it, then move it away together with \
         its `-wal` and `-shm` files; the next start makes a new one. `sqlite3 FILE .recover` may \
         still read what the old one held"
    )]
    Corrupt {
        /// The database.
        place: String,
        /// What SQLite says.
        problem: String,
    },
    /// A newer toolcrib has made it.
    #[error(
        "{place} was made by a newer toolcrib (its schema has version {found}, this program knows up \
         to {known}): use that version, or name another folder in `state.dir`"
    )]
    Newer {
        /// The database.
        place: String,
        /// The version of its schema.
        found: i32,
        /// The newest that this program knows.
        known: usize,
    },
    /// It is a database of another program.
    #[error(
        "{place} is a database of another program and was left as it is: name a folder of its own in \
         `state.dir`"
    )]
    Foreign {
        /// The database.
        place: String,
    },
    /// The file system does not have what several processes need to share a database.
    #[error(
        "the folder {dir} is on a file system that cannot hold the database: {problem}; name a folder \
         on a local disk in `state.dir`, or say `none` to keep state in memory"
    )]
    Unfit {
        /// The folder.
        dir: String,
        /// What is missing.
        problem: String,
    },
    /// The thread that works on the database has ended.
    #[error("{place} is closed")]
    Closed {
        /// The database.
        place: String,
    },
    /// Anything else.
    #[error("{place}: {problem}")]
    Failed {
        /// The database.
        place: String,
        /// What came of it.
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
