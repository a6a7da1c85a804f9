//! The database: each server opens it once, and all stores share it.

pub(crate) mod schema;
pub(crate) mod servers;
pub(crate) mod short_lived;
pub(crate) mod transaction;
pub(crate) mod worker;

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicI64;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::oneshot;
use toolcrib_core::clock::{Clock, SystemClock};

use crate::database::schema::migrate;
use crate::database::servers::{NO_SERVER, Server};
use crate::database::transaction::Tx;
use crate::database::worker::{Job, JobError, JobKind, WorkerShared};
use crate::error::DatabaseError;
use crate::folder::location::{DatabaseLocation, LOCK_TIMEOUT, prepare};
use crate::retention::keeper::KeeperHandle;
use crate::retention::trouble::Trouble;
use crate::retention::{freeing, reserve};

/// Threads that only read, beside the one that writes.
const READERS: usize = 2;

/// How long the file of the write-ahead log stays.
const LOG_BYTES: &str = "4194304";

/// One SQLite database: a file that several servers of one machine may share, or memory. Cloning it is
/// cheap; clones are the same database.
///
/// Statements run on the database's own threads, so nothing here blocks a runtime. A change is durable, even across a
/// power failure, once its future has resolved. Dropping the future does not stop a change that has begun. Changes that
/// are queued at the same time share one transaction.
///
/// ```
/// use toolcrib_core::suspension::{SuspensionId, SuspensionStore};
/// use toolcrib_store::{Database, Suspensions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let home = tempfile::tempdir()?;
/// # let dir = home.path();
/// let database = Database::open(dir)?;
/// let suspensions = Suspensions::new(&database);
/// assert_eq!(suspensions.find(&SuspensionId::random()?).await?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Database(pub(crate) Arc<DatabaseInner>);

pub(crate) struct DatabaseInner {
    shared: Arc<WorkerShared>,
    writes: Sender<Job>,
    reads: Sender<Job>,
    /// The thread that removes what is too old, once it is needed.
    pub(crate) keeper: OnceLock<KeeperHandle>,
}

impl Database {
    /// Opens the database `toolcrib.db` in a folder, creating it if necessary, and registers this server with it.
    /// Nobody but the folder's owner may have access to the folder.
    ///
    /// Fails if the file is damaged, if a newer toolcrib or another program made it, and if several processes cannot
    /// share a database on this file system. An existing database is also opened on a full disk: it can be read,
    /// changes fail, and the first one that succeeds registers the server.
    pub fn open(dir: &Path) -> Result<Self, DatabaseError> {
        Self::open_with_clock(dir, Arc::new(SystemClock))
    }

    /// Like [`open`](Self::open), with the given clock for expiry.
    pub fn open_with_clock(dir: &Path, clock: Arc<dyn Clock>) -> Result<Self, DatabaseError> {
        let (place, mut writer) = match make(dir) {
            // SQLite needs some room to recover after a crash.
            Err(DatabaseError::DiskFull { .. } | DatabaseError::Disk { .. })
                if reserve::release(&DatabaseLocation::Folder(dir.to_owned())) =>
            {
                tracing::warn!("the disk is full: the reserved space is used to open the database");
                make(dir)?
            }
            made => made?,
        };
        reserve::keep(&place);
        let server = match Server::register(&mut writer, &place, clock.now()) {
            Err(error) if !matches!(error, DatabaseError::DiskFull { .. }) => return Err(error),
            registered => registered,
        };
        let mut readers = Vec::with_capacity(READERS);
        for _ in 0..READERS {
            let reader = connect(&place)?;
            let failed = |error| place.failure(error);
            reader.pragma_update(None, "query_only", true).map_err(failed)?;
            readers.push(reader);
        }
        Self::start(place, clock, writer, server, readers)
    }

    /// A database in memory. It behaves the same but ends with the program.
    pub fn in_memory() -> Result<Self, DatabaseError> {
        Self::in_memory_with_clock(Arc::new(SystemClock))
    }

    /// Like [`in_memory`](Self::in_memory), with the given clock for expiry.
    pub fn in_memory_with_clock(clock: Arc<dyn Clock>) -> Result<Self, DatabaseError> {
        let place = DatabaseLocation::Memory;
        let mut writer = connect(&place)?;
        migrate(&mut writer, &place)?;
        let server = Server::register(&mut writer, &place, clock.now())?;
        Self::start(place, clock, writer, Ok(server), Vec::new())
    }

    /// If there are no reader threads, reads queue with the changes. If the server is not registered, because the disk
    /// is full, it is before its first change.
    fn start(
        place: DatabaseLocation,
        clock: Arc<dyn Clock>,
        connection: Connection,
        server: Result<Server, DatabaseError>,
        readers: Vec<Connection>,
    ) -> Result<Self, DatabaseError> {
        let shown = place.to_string();
        let failed = |error: std::io::Error| DatabaseError::Failed {
            place: shown.clone(),
            problem: format!("its threads could not be started: {error}"),
        };
        let shared = Arc::new(WorkerShared {
            place,
            clock,
            server: AtomicI64::new(server.as_ref().map_or(NO_SERVER, |server| server.epoch)),
            retention: Mutex::default(),
            trouble: Trouble::default(),
        });
        let server = server.inspect_err(|error| shared.trouble.note(error)).ok();
        let reads = if readers.is_empty() {
            None
        } else {
            let (sender, jobs) = channel();
            let jobs = Arc::new(Mutex::new(jobs));
            for reader in readers {
                worker::read(reader, Arc::clone(&shared), Arc::clone(&jobs)).map_err(failed)?;
            }
            Some(sender)
        };
        let writes = worker::write(connection, Arc::clone(&shared), server).map_err(failed)?;
        let reads = reads.unwrap_or_else(|| writes.clone());
        Ok(Self(Arc::new(DatabaseInner { shared, writes, reads, keeper: OnceLock::new() })))
    }

    /// Makes a change that survives a power failure. If it fails, it is rolled back completely.
    pub(crate) async fn write<T: Send + 'static, E: JobError>(
        &self,
        work: impl FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        self.run(JobKind::Durable, work).await
    }

    /// Makes a change that survives the end of the process, though perhaps not a power failure.
    pub(crate) async fn write_relaxed<T: Send + 'static, E: JobError>(
        &self,
        work: impl FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        self.run(JobKind::Relaxed, work).await
    }

    /// Reads; sees every change that was answered before.
    pub(crate) async fn read<T: Send + 'static, E: JobError>(
        &self,
        work: impl FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        self.run(JobKind::Read, work).await
    }

    async fn run<T: Send + 'static, E: JobError>(
        &self,
        kind: JobKind,
        work: impl FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let closed = || E::from(self.closed());
        match self.begin(kind, work) {
            Some(answer) => answer.await.unwrap_or_else(|_| Err(closed())),
            None => Err(closed()),
        }
    }

    /// Like [`run`](Self::run), but blocks the thread, which must not belong to a runtime.
    pub(crate) fn run_blocking<T: Send + 'static>(
        &self,
        kind: JobKind,
        work: impl FnOnce(&Tx<'_>) -> Result<T, DatabaseError> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        let answer = self.begin(kind, work).and_then(|answer| answer.blocking_recv().ok());
        answer.unwrap_or_else(|| Err(self.closed()))
    }

    pub(crate) fn begin<T: Send + 'static, E: JobError>(
        &self,
        kind: JobKind,
        work: impl FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Option<oneshot::Receiver<Result<T, E>>> {
        let (job, answer) = Job::new(kind, work);
        let jobs = if kind == JobKind::Read { &self.0.reads } else { &self.0.writes };
        jobs.send(job).ok().map(|()| answer)
    }

    pub(crate) fn closed(&self) -> DatabaseError {
        DatabaseError::Closed { place: self.0.shared.place.to_string() }
    }

    /// What all threads of the database share.
    pub(crate) fn shared(&self) -> &WorkerShared {
        &self.0.shared
    }

    /// Names a record of this kind in errors by its id.
    pub(crate) fn naming(&self, kind: &'static str) -> impl Fn(&str) -> String + Send + 'static {
        let place = self.0.shared.place.clone();
        move |id| format!("{kind} {id} in {place}")
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Database").field(&self.0.shared.place.to_string()).finish()
    }
}

/// Opens the database of a folder, creating and migrating it if necessary.
pub(crate) fn make(dir: &Path) -> Result<(DatabaseLocation, Connection), DatabaseError> {
    let place = DatabaseLocation::Folder(dir.to_owned());
    // The lock keeps others out until the database is ready.
    let _opening = prepare(dir)?;
    let mut connection = connect(&place)?;
    freeing::allow(&connection, &place)?;
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
        .map_err(|error| place.failure(error))?;
    if !mode.eq_ignore_ascii_case("wal") {
        let problem = format!("SQLite's write-ahead log does not work there (mode {mode})");
        return Err(DatabaseError::Unfit { dir: dir.display().to_string(), problem });
    }
    migrate(&mut connection, &place)?;
    freeing::convert(&connection);
    Ok((place, connection))
}

pub(crate) fn connect(place: &DatabaseLocation) -> Result<Connection, DatabaseError> {
    let failed = |error| place.failure(error);
    let connection = match place.file() {
        None => Connection::open_in_memory(),
        Some(file) => {
            // One thread uses each connection, and SQLite refuses a symbolic link in place of the file.
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX
                | OpenFlags::SQLITE_OPEN_NOFOLLOW;
            Connection::open_with_flags(file, flags)
        }
    };
    let connection = connection.map_err(failed)?;
    connection.busy_timeout(LOCK_TIMEOUT).map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(64);
    let set = |name, value: &str| connection.pragma_update(None, name, value);
    set("synchronous", "FULL")
        // A replaced row then counts as removed.
        .and_then(|()| set("recursive_triggers", "ON"))
        .and_then(|()| set("trusted_schema", "OFF"))
        .and_then(|()| set("temp_store", "MEMORY"))
        // A write-ahead log that a burst has made longer is shortened afterwards.
        .and_then(|()| set("journal_size_limit", LOG_BYTES))
        .map_err(failed)?;
    Ok(connection)
}
