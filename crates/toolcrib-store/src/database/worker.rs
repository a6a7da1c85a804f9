//! The threads that run SQL. Callers send them jobs and await the replies.

use std::collections::VecDeque;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rusqlite::Connection;
use tokio::sync::oneshot;
use toolcrib_core::clock::Clock;

use crate::database::servers::Server;
use crate::database::transaction::Tx;
use crate::error::DatabaseError;
use crate::folder::location::DatabaseLocation;
use crate::retention::Retention;
use crate::retention::trouble::Trouble;

/// How many changes may share one transaction, and so one wait for the disk.
const BATCH: usize = 64;

/// Sends a job's reply once it is known whether its changes are committed.
type Reply = Box<dyn FnOnce(Result<(), DatabaseError>) + Send>;

/// A job's work. If the transaction could not begin, it gets the reason instead.
type Work = Box<dyn FnOnce(Result<&Tx<'_>, DatabaseError>) -> JobResult + Send>;

/// What the threads share.
pub(crate) struct WorkerShared {
    pub(crate) place: DatabaseLocation,
    pub(crate) clock: Arc<dyn Clock>,
    /// This server's number, once it is registered.
    pub(crate) server: AtomicI64,
    /// How long things are kept. It may change at any time.
    pub(crate) retention: Mutex<Retention>,
    pub(crate) trouble: Trouble,
}

impl WorkerShared {
    pub(crate) fn retention(&self) -> Retention {
        *self.retention.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tx<'c>(&'c self, connection: &'c Connection) -> Tx<'c> {
        Tx {
            connection,
            place: &self.place,
            server: self.server.load(Ordering::Acquire),
            now: self.clock.now(),
            retention: self.retention(),
            trouble: Some(&self.trouble),
        }
    }
}

/// A piece of work.
pub(crate) struct Job {
    kind: JobKind,
    work: Work,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobKind {
    Read,
    /// Survives a power failure once the reply is sent.
    Durable,
    /// Survives the end of the process; a power failure may lose the last changes.
    Relaxed,
    /// Like the last one, for changes that no server needs to be registered for: they claim nothing.
    Upkeep,
    /// Runs on the writing thread outside any transaction, such as a checkpoint.
    Bare,
}

struct JobResult {
    /// Why its changes must be rolled back, if they must.
    problem: Option<String>,
    reply: Reply,
}

/// An error with which work on the database may end.
pub(crate) trait JobError: From<DatabaseError> + Display + Send + 'static {}

impl<E: From<DatabaseError> + Display + Send + 'static> JobError for E {}

impl Job {
    /// A job from work and the channel for its reply. If the work fails, its changes are rolled back.
    pub(crate) fn new<T: Send + 'static, E: JobError>(
        kind: JobKind,
        work: impl FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> (Self, oneshot::Receiver<Result<T, E>>) {
        let (sender, receiver) = oneshot::channel();
        let work = move |tx: Result<&Tx<'_>, DatabaseError>| {
            let result = tx.map_err(E::from).and_then(work);
            let problem = result.as_ref().err().map(ToString::to_string);
            // The caller may be gone; the change stays.
            let reply: Reply = Box::new(move |kept: Result<(), DatabaseError>| {
                let answer = result.and_then(|value| kept.map(|()| value).map_err(E::from));
                let _ = sender.send(answer);
            });
            JobResult { problem, reply }
        };
        (Self { kind, work: Box::new(work) }, receiver)
    }

    /// Replies with an error without running the work.
    fn refuse(self, error: DatabaseError) {
        ((self.work)(Err(error)).reply)(Ok(()));
    }
}

/// Starts a thread that only reads. Several may run.
pub(crate) fn read(
    connection: Connection,
    shared: Arc<WorkerShared>,
    jobs: Arc<Mutex<Receiver<Job>>>,
) -> std::io::Result<()> {
    let work = move || {
        loop {
            // Held until a job arrives; the other readers queue behind this lock.
            let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(job) = job else { return };
            one_read(&connection, &shared, job);
        }
    };
    thread::Builder::new().name("store-read".to_owned()).spawn(work).map(drop)
}

/// Starts the one thread that writes. When nobody can send it jobs any more, the thread and the server's registration
/// end.
pub(crate) fn write(
    connection: Connection,
    shared: Arc<WorkerShared>,
    server: Option<Server>,
) -> std::io::Result<Sender<Job>> {
    let (sender, jobs) = channel::<Job>();
    let work = move || {
        let mut writer = Writer { connection, shared, server, is_durable: true };
        let mut waiting = VecDeque::new();
        while let Some(job) = waiting.pop_front().or_else(|| jobs.recv().ok()) {
            waiting.extend(jobs.try_iter().take(BATCH));
            if job.kind == JobKind::Read {
                one_read(&writer.connection, &writer.shared, job);
                continue;
            }
            if job.kind == JobKind::Bare {
                if let Some(JobResult { reply, .. }) =
                    guarded(job, &writer.shared.tx(&writer.connection))
                {
                    reply(Ok(()));
                }
                continue;
            }
            let is_change = |next: &Job| {
                matches!(next.kind, JobKind::Durable | JobKind::Relaxed | JobKind::Upkeep)
            };
            let mut batch = vec![job];
            while batch.len() < BATCH && waiting.front().is_some_and(is_change) {
                batch.extend(waiting.pop_front());
            }
            writer.run(batch.into());
        }
        if let Some(server) = writer.server {
            server.end(&writer.connection, &writer.shared.place);
        }
    };
    thread::Builder::new().name("store-write".to_owned()).spawn(work)?;
    Ok(sender)
}

fn one_read(connection: &Connection, shared: &WorkerShared, job: Job) {
    // One transaction, so that several statements see one state.
    if let Err(error) = connection.execute_batch("BEGIN") {
        return job.refuse(shared.place.failure(error));
    }
    let done = guarded(job, &shared.tx(connection));
    let ended = connection.execute_batch("COMMIT").map_err(|error| shared.place.failure(error));
    if let Some(JobResult { reply, .. }) = done {
        reply(ended);
    }
}

/// Runs a job's work and catches panics. After a panic the caller's channel closes, which reports it.
fn guarded(job: Job, tx: &Tx<'_>) -> Option<JobResult> {
    catch_unwind(AssertUnwindSafe(move || (job.work)(Ok(tx)))).ok()
}

struct Writer {
    connection: Connection,
    shared: Arc<WorkerShared>,
    /// `None` until the disk has room for the registration.
    server: Option<Server>,
    /// Whether a commit waits for the disk at present.
    is_durable: bool,
}

impl Writer {
    /// Runs as many jobs as fit in one transaction, and replies to them once it is committed.
    fn run(&mut self, mut jobs: VecDeque<Job>) {
        if let Err(error) = self.register() {
            let (upkeep, others): (VecDeque<_>, VecDeque<_>) =
                jobs.into_iter().partition(|job| job.kind == JobKind::Upkeep);
            for job in others {
                job.refuse(error.clone());
            }
            jobs = upkeep;
        }
        while !jobs.is_empty() {
            if let Err(error) = self.begin(&jobs) {
                jobs.drain(..).for_each(|job| job.refuse(error.clone()));
                return;
            }
            let mut replies = Vec::new();
            let changes = self.connection.total_changes();
            let done = self.work_through(&mut jobs, &mut replies).and_then(|()| {
                self.connection.execute_batch("COMMIT").map_err(|error| self.failure(error))
            });
            if done.is_err() && !self.connection.is_autocommit() {
                // If this fails too, the next transaction cannot begin and reports the error.
                let _ = self.connection.execute_batch("ROLLBACK");
            }
            // A transaction that changes nothing succeeds on a full disk, too.
            let has_changed = !replies.is_empty() && self.connection.total_changes() > changes;
            if done.is_ok() && has_changed {
                self.shared.trouble.clear();
            }
            for reply in replies {
                reply(done.clone());
            }
        }
    }

    /// Registers the server, if that was not possible before.
    fn register(&mut self) -> Result<(), DatabaseError> {
        if self.server.is_none() {
            let shared = &self.shared;
            let server = Server::register(&mut self.connection, &shared.place, shared.clock.now())
                .inspect_err(|error| shared.trouble.note(error))?;
            shared.server.store(server.epoch, Ordering::Release);
            self.server = Some(server);
        }
        Ok(())
    }

    fn begin(&mut self, jobs: &VecDeque<Job>) -> Result<(), DatabaseError> {
        let durable = jobs.iter().any(|job| job.kind == JobKind::Durable);
        if durable != self.is_durable {
            let mode = if durable { "FULL" } else { "NORMAL" };
            let set = self.connection.pragma_update(None, "synchronous", mode);
            set.map_err(|error| self.failure(error))?;
            self.is_durable = durable;
        }
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(|error| self.failure(error))
    }

    /// Runs jobs until none is left or the whole transaction has failed. `replies` gets the replies of jobs whose
    /// changes are in the transaction; the others are sent at once.
    fn work_through(
        &self,
        jobs: &mut VecDeque<Job>,
        replies: &mut Vec<Reply>,
    ) -> Result<(), DatabaseError> {
        while let Some(job) = jobs.pop_front() {
            if let Err(error) = self.connection.execute_batch("SAVEPOINT job") {
                let error = self.failure(error);
                job.refuse(error.clone());
                return Err(error);
            }
            let done = guarded(job, &self.shared.tx(&self.connection));
            // A full disk, for example, ends the whole transaction.
            let is_over = self.connection.is_autocommit();
            let problem = match done {
                Some(JobResult { problem: None, reply }) if !is_over => {
                    replies.push(reply);
                    let ended = self.connection.execute_batch("RELEASE job");
                    ended.map_err(|error| self.failure(error))?;
                    continue;
                }
                Some(JobResult { problem, reply }) => {
                    let problem = problem.unwrap_or_else(|| "it was rolled back".to_owned());
                    reply(Err(self.rolled_back(&problem)));
                    problem
                }
                None => "the code that used it panicked".to_owned(),
            };
            if is_over {
                return Err(self.rolled_back(&problem));
            }
            let undone = self.connection.execute_batch("ROLLBACK TO job; RELEASE job");
            undone.map_err(|error| self.failure(error))?;
        }
        Ok(())
    }

    /// Why a change is lost that did not fail itself: the disk has failed, or another change in its transaction.
    fn rolled_back(&self, problem: &str) -> DatabaseError {
        if let Some(error) = self.shared.trouble.now() {
            return error;
        }
        let problem = format!("the change was rolled back with others that failed: {problem}");
        DatabaseError::Failed { place: self.shared.place.to_string(), problem }
    }

    fn failure(&self, error: rusqlite::Error) -> DatabaseError {
        let error = self.shared.place.failure(error);
        self.shared.trouble.note(&error);
        error
    }
}
