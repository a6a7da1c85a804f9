//! Records the events of a row, on one clock that the scenario advances.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use toolcrib_core::events::Event;

/// What a call would do, as far as an approver can be shown: nothing else may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObservedCall {
    pub(crate) version: u32,
    pub(crate) arguments: String,
    pub(crate) project: Option<String>,
    pub(crate) user: String,
}

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Seen {
    /// An approver was asked about a call.
    Asked { call: String, observed: ObservedCall },
    /// A call was approved as shown, either once or for later equal calls of the session too.
    Approved { call: String, observed: ObservedCall, remembered: bool },
    /// A body began.
    Began { run: usize, tool: &'static str, call: String, observed: ObservedCall },
    /// A client was given a call.
    HandedOut { call: String, observed: ObservedCall },
    /// A body used its wind-down period.
    WoundDown { run: usize },
    /// A body has ended: it returned, panicked or was dropped.
    Left { run: usize },
    /// The tool that a cancelled body calls has run.
    Charged,
    /// An instance was created for a call.
    Made,
    /// Such an instance was closed.
    Closed,
    /// The scenario interrupts the call.
    Interrupted,
    /// A waiting call continues.
    Resumed { call: &'static str },
    /// The program was restarted: the new process knows nothing of what ran in the previous one.
    Restarted,
}

/// An event and its time, in milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    pub(crate) at: u64,
    pub(crate) seen: Seen,
}

/// Records events, and controls the time of blocking bodies.
#[derive(Default)]
pub(crate) struct Witness {
    now: AtomicU64,
    moments: Mutex<Vec<Moment>>,
    /// Texts that must not contain a secret, with their origin.
    texts: Mutex<Vec<(&'static str, String)>>,
    /// What a client that watches the first calls received.
    reported: Mutex<Vec<Event>>,
    /// Instances that were created for one call and are not closed.
    open: AtomicI64,
    threads: Mutex<Threads>,
    moved: Condvar,
}

/// Blocking bodies, and the last step of the clock that each has seen.
#[derive(Default)]
struct Threads {
    step: u64,
    reached: HashMap<usize, u64>,
    next: usize,
}

/// How long the scenario waits for threads, which have almost no work.
const PATIENCE: Duration = Duration::from_secs(10);

impl Witness {
    /// Milliseconds since the row began.
    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::SeqCst)
    }

    /// Instances that were created for one call and are not closed.
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

    /// Clears the events of the preparation.
    pub(crate) fn forget(&self) {
        lock(&self.moments).clear();
        lock(&self.texts).clear();
    }

    /// Begins a run of a body, which ends when the returned value is dropped. The clock does not go on before a
    /// blocking one has read it, however slow its thread is.
    pub(crate) fn begin(
        &self,
        tool: &'static str,
        call: &str,
        observed: ObservedCall,
        is_blocking: bool,
    ) -> Running<'_> {
        let run = {
            let mut threads = lock(&self.threads);
            threads.next += 1;
            let (run, step) = (threads.next, threads.step);
            if is_blocking {
                threads.reached.insert(run, step);
            }
            run
        };
        self.see(Seen::Began { run, tool, call: call.to_owned(), observed });
        Running { witness: self, run }
    }

    /// How often the body ran for a call.
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

    /// Advances the clock. Blocking bodies see it when [`step`](Self::step) is called.
    pub(crate) fn pass(&self, millis: u64) {
        self.now.fetch_add(millis, Ordering::SeqCst);
    }

    /// Whether a blocking body waits for the clock.
    pub(crate) fn has_blocking(&self) -> bool {
        !lock(&self.threads).reached.is_empty()
    }

    /// Lets every blocking body read the clock once.
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

/// A running body.
pub(crate) struct Running<'w> {
    witness: &'w Witness,
    pub(crate) run: usize,
}

impl Running<'_> {
    /// Blocks the thread until `is_over` or until `millis` have passed. Returns whether the time
    /// was up.
    pub(crate) fn block(&self, millis: u64, is_over: impl Fn() -> bool) -> bool {
        let until = self.witness.now().saturating_add(millis);
        let mut threads = lock(&self.witness.threads);
        loop {
            // A body that has not seen the time yet does not stop the clock.
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
    /// Does something without using the row's time.
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

/// A lock that stays usable after a body has panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
