//! What a running query may use, and how it is stopped when it wants more.
//!
//! The interpreter has no hook of its own, but it goes through two of our types all the time: it
//! asks [`Program`](super::program) for its terms at every step, and it computes with
//! [`Value`](super::value::Value)s. Both report here. A query that goes too far is unwound with
//! an [`Exceeded`] as its payload: no `try` of the query can catch that, no panic message is
//! printed, and everything the query held is dropped on the way.
//!
//! The meter belongs to the thread; each query runs on its own (`on_own_stack`).

use std::cell::{Cell, RefCell};
use std::panic::resume_unwind;
use std::thread;

use crate::data::bounded::{STACK_BYTES, Stop, Watch};

/// Bytes of values that may be alive at once.
const MAX_LIVE_BYTES: usize = 128 << 20;
/// Work units of one query. A step of the interpreter may leave some hundred bytes behind, an
/// operation on a value some tens, which nobody counts; with these prices the limit bounds that
/// memory to about 500 MB for the worst programs known. A `map(select(…) | {…})`
/// over 60,000 objects stays within it.
const MAX_WORK: u64 = 24_000_000;
const STEP_WORK: u64 = 8;
/// The clock is read once per so many units.
const CLOCK_WORK: u64 = 4_096;
/// What recursion may use of the stack; the rest is for unwinding and dropping.
const MAX_STACK_BYTES: usize = STACK_BYTES / 2;

/// The limit that a query went over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exceeded {
    /// Its time, or the caller's patience.
    Stopped(Stop),
    /// [`MAX_LIVE_BYTES`].
    Memory,
    /// [`MAX_WORK`].
    Work,
    /// [`MAX_STACK_BYTES`].
    Recursion,
    /// The depth of one value.
    Nesting,
}

struct Meter {
    live: Cell<usize>,
    work: Cell<u64>,
    next_clock: Cell<u64>,
    stack_start: Cell<usize>,
    watch: RefCell<Option<Watch>>,
}

thread_local! {
    static METER: Meter = const {
        Meter {
            live: Cell::new(0),
            work: Cell::new(0),
            next_clock: Cell::new(CLOCK_WORK),
            stack_start: Cell::new(0),
            watch: RefCell::new(None),
        }
    };
}

/// Starts metering this thread.
pub(super) fn start(watch: Watch) {
    METER.with(|meter| {
        meter.stack_start.set(stack_address());
        meter.watch.replace(Some(watch));
    });
}

/// One step of the interpreter.
pub(super) fn step() {
    let used = METER.with(|meter| meter.stack_start.get().abs_diff(stack_address()));
    if used > MAX_STACK_BYTES {
        exceeded(Exceeded::Recursion);
    }
    work(STEP_WORK);
}

/// One operation on a value.
pub(super) fn tick() {
    work(1);
}

/// Before something that may take milliseconds: reads the clock at once.
pub(super) fn pause() {
    let stop = METER.with(|meter| meter.watch.borrow().as_ref().and_then(Watch::stop));
    if let Some(stop) = stop {
        exceeded(Exceeded::Stopped(stop));
    }
}

/// Stops the query.
///
/// Never reached while a value is dropped: nothing that a drop runs is metered. While the thread
/// is unwinding already it does nothing, for a second panic would end the process.
pub(super) fn exceeded(limit: Exceeded) {
    if !thread::panicking() {
        resume_unwind(Box::new(limit));
    }
}

fn work(units: u64) {
    let limit = METER.with(|meter| {
        let done = meter.work.get() + units;
        meter.work.set(done);
        if done < meter.next_clock.get() {
            return None;
        }
        meter.next_clock.set(done + CLOCK_WORK);
        if done > MAX_WORK {
            return Some(Exceeded::Work);
        }
        meter.watch.borrow().as_ref().and_then(Watch::stop).map(Exceeded::Stopped)
    });
    if let Some(limit) = limit {
        exceeded(limit);
    }
}

/// Roughly where the stack has grown to.
#[inline(never)]
fn stack_address() -> usize {
    let marker = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&marker)).addr()
}

/// Bytes that a value holds, returned when it is dropped.
#[derive(Debug)]
pub(super) struct Charge(usize);

impl Charge {
    /// Takes bytes, or stops the query.
    pub(super) fn new(bytes: usize) -> Self {
        let mut charge = Self(0);
        charge.set(bytes);
        charge
    }

    /// Makes it this many bytes, or stops the query. Call it before the bytes are allocated.
    pub(super) fn set(&mut self, bytes: usize) {
        let live = METER.with(|meter| {
            let live = meter.live.get().saturating_sub(self.0).saturating_add(bytes);
            meter.live.set(live);
            live
        });
        self.0 = bytes;
        if live > MAX_LIVE_BYTES {
            exceeded(Exceeded::Memory);
        }
    }
}

impl Clone for Charge {
    fn clone(&self) -> Self {
        Self::new(self.0)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        // The thread's meter may be gone already when its last value goes.
        let _ = METER.try_with(|meter| meter.live.set(meter.live.get().saturating_sub(self.0)));
    }
}
