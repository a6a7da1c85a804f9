//! What is seen while a row runs, on one clock that the scenario moves.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use toolcrib_core::events::Event;

/// What a call does, as far as somebody who approves it can be shown: nothing else may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObservedCall {
    pub(crate) version: u32,
    pub(crate) arguments: String,
    pub(crate) project: Option<String>,
    pub(crate) user: String,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Seen {
    /// An approver was asked about a call.
    Asked { call: String, observed: ObservedCall },
    /// A call was approved as it was shown, for later equal calls of the session too or not.
    Approved { call: String, observed: ObservedCall, remembered: bool },
    /// A body began.
    Began { run: usize, tool: &'static str, call: String, observed: ObservedCall },
    /// A body used its time to wind down.
    WoundDown { run: usize },
    /// A body is no more: it returned, panicked or was dropped.
    Left { run: usize },
    /// The tool that a cancelled body calls has run.
    Charged,
    /// An instance was made for a call.
    Made,
    /// Such an instance was closed.
    Closed,
    /// The scenario interrupts the call.
    Interrupted,
    /// The program was started again: a new process, which knows nothing of what ran in the former.
    Restarted,
}

/// Something that happened, and when, in milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    pub(crate) at: u64,
    pub(crate) seen: Seen,
}

/// Keeps what is seen, and the time of blocking bodies.
#[derive(Default)]
pub(crate) struct Witness {
    now: AtomicU64,
    moments: Mutex<Vec<Moment>>,
    /// Texts that must not have a secret in them, with where they were seen.
    texts: Mutex<Vec<(&'static str, String)>>,
    /// What a client was sent that watches the first calls.
    reported: Mutex<Vec<Event>>,
    /// Instances that were made for one call and are not closed.
    open: AtomicI64,
    threads: Mutex<Threads>,
    moved: Condvar,
}

/// Blocking bodies, and up to which step of the clock each has come.
#[derive(Default)]
struct Threads {
    step: u64,
    reached: HashMap<usize, u64>,
    next: usize,
}

/// How long the scenario waits for threads, which have next to nothing to do.
const PATIENCE: Duration = Duration::from_secs(10);

impl Witness {
    /// Milliseconds since the row began.
    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::SeqCst)
    }

    /// Instances that were made for one call and are not closed.
    pub(crate) fn open(&self) -> i64 {
        self.open.load(Ordering::SeqCst)
    }

    pub(crate) fn see(&self, seen: Seen) {
        let opened = i64::from(seen == Seen::Made) - i64::from(seen == Seen::Closed);
        self.open.fetch_add(opened, Ordering::SeqCst);
        lock(&self.moments).push(Moment { at: self.now(), seen });
    }

    pub(crate) fn text(&self, place: &'static str, text: impl Into<String>) {
        lock(&self.texts).push((place, text.into()));
    }

    pub(crate) fn texts(&self) -> Vec<(&'static str, String)> {
        lock(&self.texts).clone()
    }

    pub(crate) fn report(&self, event: Event) {
        self.text("report", event.to_value().to_string());
        lock(&self.reported).push(event);
    }

    pub(crate) fn reported(&self) -> Vec<Event> {
        lock(&self.reported).clone()
    }

    pub(crate) fn moments(&self) -> Vec<Moment> {
        lock(&self.moments).clone()
    }

    /// Forgets what was seen while the row was prepared.
    pub(crate) fn forget(&self) {
        lock(&self.moments).clear();
        lock(&self.texts).clear();
    }

    /// Begins a run of a body, which is over when what it returns is dropped.
    pub(crate) fn begin(
        &self,
        tool: &'static str,
        call: &str,
        observed: ObservedCall,
    ) -> Running<'_> {
        let run = {
            let mut threads = lock(&self.threads);
            threads.next += 1;
            threads.next
        };
        self.see(Seen::Began { run, tool, call: call.to_owned(), observed });
        Running { witness: self, run }
    }

    /// How many bodies began for a call.
    pub(crate) fn runs_of(&self, id: &str) -> usize {
        let is_of =
            |moment: &&Moment| matches!(&moment.seen, Seen::Began { call, .. } if call == id);
        lock(&self.moments).iter().filter(is_of).count()
    }

    /// When the body of a call first began.
    pub(crate) fn began_at(&self, id: &str) -> Option<u64> {
        let moments = lock(&self.moments);
        let began = moments
            .iter()
            .find(|moment| matches!(&moment.seen, Seen::Began { call, .. } if call == id));
        began.map(|moment| moment.at)
    }

    /// Moves the clock. Blocking bodies see it when [`step`](Self::step) is called.
    pub(crate) fn pass(&self, millis: u64) {
        self.now.fetch_add(millis, Ordering::SeqCst);
    }

    /// Whether a blocking body waits for the clock.
    pub(crate) fn has_blocking(&self) -> bool {
        !lock(&self.threads).reached.is_empty()
    }

    /// Lets every blocking body look at the clock once.
    pub(crate) fn step(&self) {
        let mut threads = lock(&self.threads);
        threads.step += 1;
        self.moved.notify_all();
        let all_came = |threads: &mut Threads| {
            let step = threads.step;
            threads.reached.values().any(|reached| *reached < step)
        };
        let (_threads, waited) = self
            .moved
            .wait_timeout_while(threads, PATIENCE, all_came)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.timed_out(), "a blocking body does not look at the clock");
    }
}

/// A body that runs.
pub(crate) struct Running<'w> {
    witness: &'w Witness,
    pub(crate) run: usize,
}

impl Running<'_> {
    /// Blocks the thread until `is_over` or `millis` have passed. Whether it was the time.
    pub(crate) fn block(&self, millis: u64, is_over: impl Fn() -> bool) -> bool {
        let until = self.witness.now().saturating_add(millis);
        let mut threads = lock(&self.witness.threads);
        loop {
            // What it did not see yet does not keep the clock from moving on.
            let step = threads.step;
            threads.reached.insert(self.run, step);
            self.witness.moved.notify_all();
            if is_over() {
                return false;
            }
            if self.witness.now() >= until {
                return true;
            }
            let waits = |threads: &mut Threads| threads.step == step;
            threads = self
                .witness
                .moved
                .wait_while(threads, waits)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Running<'_> {
    /// Does something that takes no time of the row's clock.
    pub(crate) fn leave_clock(&self) {
        lock(&self.witness.threads).reached.remove(&self.run);
        self.witness.moved.notify_all();
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut threads = lock(&self.witness.threads);
        threads.reached.remove(&self.run);
        drop(threads);
        self.witness.see(Seen::Left { run: self.run });
        self.witness.moved.notify_all();
    }
}

/// A lock that a body which panicked does not close.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
