//! The thread that removes what is too old, in small steps between the changes of calls.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::database::worker::JobKind;
use crate::database::{Database, DatabaseInner};
use crate::error::DatabaseError;
use crate::retention::freeing::{SPARE_PAGES, STEP_PAGES, checkpoint, free_pages, remove_pages};
use crate::retention::sweep::{Part, Swept, take_turn};
use crate::retention::{Retention, reserve};

/// How long after the start the first sweep begins, so that short commands end before it.
const DELAY: Duration = Duration::from_secs(1);

/// The pause between two steps.
const PAUSE: Duration = Duration::from_millis(5);

/// How often changes are tried while the disk is full.
const RETRY: Duration = Duration::from_secs(2);

enum Message {
    /// Other ages apply: sweep now.
    Changed,
    /// Sweep now, and say what was removed.
    Sweep(oneshot::Sender<Result<Swept, DatabaseError>>),
}

/// The way to the thread.
#[derive(Debug)]
pub(crate) struct KeeperHandle(Sender<Message>);

impl Database {
    /// Sets how long things are kept. From the first time on, a thread removes what is too old: a second later, then at
    /// intervals of a quarter of the shortest age (a second to half a minute), and whenever other values are set. Of
    /// several servers with this database one does it.
    ///
    /// Nothing that waits or runs is removed. Each step is a small transaction of its own, so calls do not wait for it.
    pub fn keep(&self, retention: Retention) {
        let is_first = self.0.keeper.get().is_none();
        *self.shared().retention.lock().unwrap_or_else(PoisonError::into_inner) = retention;
        if let Some(keeper) = self.keeper()
            && !is_first
        {
            // It ends only with the database.
            let _ = keeper.0.send(Message::Changed);
        }
    }

    /// Removes now what is too old or too much, also if another server has done so a moment ago.
    pub async fn sweep(&self) -> Result<Swept, DatabaseError> {
        let (sender, answer) = oneshot::channel();
        let sent =
            self.keeper().is_some_and(|keeper| keeper.0.send(Message::Sweep(sender)).is_ok());
        match (sent, answer.await) {
            (true, Ok(swept)) => swept,
            _ => Err(self.closed()),
        }
    }

    /// Why changes fail at present: the last failure of the disk, if no change has succeeded since.
    pub fn trouble(&self) -> Option<DatabaseError> {
        self.shared().trouble.now()
    }

    fn keeper(&self) -> Option<&KeeperHandle> {
        if self.0.keeper.get().is_none() {
            let (sender, messages) = channel();
            let database = Arc::downgrade(&self.0);
            let started = self.0.keeper.set(KeeperHandle(sender)).is_ok();
            if started {
                let run = move || Keeper { database, messages }.run();
                let spawned = thread::Builder::new().name("store-keep".to_owned()).spawn(run);
                if let Err(error) = spawned {
                    tracing::error!(%error, "old entries are not removed: the thread could not be started");
                }
            }
        }
        self.0.keeper.get()
    }
}

struct Keeper {
    database: Weak<DatabaseInner>,
    messages: Receiver<Message>,
}

impl Keeper {
    fn run(self) {
        let mut wait = DELAY;
        loop {
            let message = self.messages.recv_timeout(wait);
            // The handle lives in the database. Without it, nobody is left.
            let Some(database) = self.database.upgrade().map(Database) else { return };
            let swept = match &message {
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => in_turn(&database),
                Ok(_) => all(&database),
            };
            match &swept {
                Ok(swept) if swept.total() > 0 => tracing::info!("removed old state: {swept}"),
                Ok(_) => {}
                // A full disk is logged once, when it is noticed.
                Err(error) if database.trouble().is_some() => tracing::debug!(%error, "sweep"),
                Err(error) => tracing::warn!(%error, "old state could not be removed"),
            }
            wait = match database.trouble() {
                Some(_) => RETRY,
                None => database.shared().retention().interval(),
            };
            if let Ok(Message::Sweep(answer)) = message {
                // Who asked may have stopped waiting.
                let _ = answer.send(swept);
            }
        }
    }
}

/// Sweeps, unless another server does.
fn in_turn(database: &Database) -> Result<Swept, DatabaseError> {
    let interval = database.shared().retention().interval();
    let millis = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX);
    match database.run_blocking(JobKind::Relaxed, move |tx| take_turn(tx, millis)) {
        Ok(false) => Ok(Swept::default()),
        // The reserved space is for removing entries, not for taking turns. Without old entries it stays.
        Ok(true) | Err(DatabaseError::DiskFull { .. }) => all(database),
        Err(error) => Err(error),
    }
}

fn all(database: &Database) -> Result<Swept, DatabaseError> {
    let mut swept = Swept::default();
    for part in Part::ALL {
        loop {
            let step = move |database: &Database| {
                database.run_blocking(JobKind::Upkeep, move |tx| part.step(tx))
            };
            let rows = try_with_reserve(database, step)?;
            part.count(&mut swept, rows);
            if rows == 0 || is_alone(database) {
                break;
            }
            thread::sleep(PAUSE);
        }
    }
    reserve::keep(&database.shared().place);
    give_back(database)?;
    Ok(swept)
}

/// Gives freed space back to the file system.
fn give_back(database: &Database) -> Result<(), DatabaseError> {
    // On a full disk no pages are spared: a checkpoint would need room in the file for them.
    let spare = if reserve::is_kept(&database.shared().place) { SPARE_PAGES } else { 0 };
    if give_back_to(database, spare)? {
        database.run_blocking(JobKind::Bare, checkpoint)?;
    }
    Ok(())
}

/// Gives back the free pages beyond some spare ones, a few at a time. Returns whether there were any.
fn give_back_to(database: &Database, spare: i64) -> Result<bool, DatabaseError> {
    let mut before = i64::MAX;
    loop {
        let step = move |database: &Database| {
            database.run_blocking(JobKind::Upkeep, move |tx| {
                let free = free_pages(tx)?;
                if free > spare {
                    remove_pages(tx, STEP_PAGES.min(free - spare))?;
                }
                Ok(free)
            })
        };
        let free = try_with_reserve(database, step)?;
        // A database of an earlier version may be too large to be rewritten; it keeps its free pages.
        if free <= spare || free >= before || is_alone(database) {
            return Ok(before != i64::MAX);
        }
        before = free;
        thread::sleep(PAUSE);
    }
}

/// Makes a change. If the disk is full, frees the write-ahead log, then the reserved space, and makes it again.
fn try_with_reserve<T>(
    database: &Database,
    change: impl Fn(&Database) -> Result<T, DatabaseError>,
) -> Result<T, DatabaseError> {
    let has_failed = |made: &Result<T, DatabaseError>| {
        made.is_err() && matches!(database.trouble(), Some(DatabaseError::DiskFull { .. }))
    };
    let mut made = change(database);
    if has_failed(&made) {
        // After a complete checkpoint the log is written from its start again. It may need space itself.
        let copied = database.run_blocking(JobKind::Bare, checkpoint);
        if copied.is_ok() {
            made = change(database);
        }
    }
    if has_failed(&made) && reserve::release(&database.shared().place) {
        tracing::warn!("the disk is full: the reserved space is used to remove old state");
        made = change(database);
    }
    made
}

/// Whether everybody else has dropped the database, so that the rest waits for the next start.
fn is_alone(database: &Database) -> bool {
    Arc::strong_count(&database.0) == 1
}
