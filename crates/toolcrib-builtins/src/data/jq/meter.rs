//! Limits on a running query, and how it is stopped when it exceeds one.
//!
//! The interpreter has no hook, but it constantly uses two of our types: it asks [`Program`](super::program) for its
//! terms at every step, and it computes with [`Value`](super::value::Value)s. Both report here. A query that exceeds a
//! limit is unwound with an [`ExceededLimit`] as its payload: no `try` of the query can catch that, no panic message is
//! printed, and everything the query held is dropped on the way.
//!
//! The meter belongs to the thread; each query runs on its own (`on_own_stack`).

use std::cell::{Cell, RefCell};
use std::panic::resume_unwind;
use std::thread;

use crate::data::bounded::{STACK_BYTES, StopCheck, StopReason};

/// Bytes of values that may be alive at the same time.
const MAX_LIVE_BYTES: usize = 128 << 20;
/// Work units of one query. A step of the interpreter may leave some hundred bytes behind and an operation on a value
/// some tens, which are not counted; at these prices the limit bounds that memory to about 500 MB for the worst known
/// programs. A `map(select(…) | {…})` over 60,000 objects stays within it.
const MAX_WORK: u64 = 24_000_000;
const STEP_WORK: u64 = 8;
/// The clock is read once for this many units.
const CLOCK_WORK: u64 = 4_096;
/// How much stack recursion may use; the rest is for unwinding and dropping.
const MAX_STACK_BYTES: usize = STACK_BYTES / 2;

/// The limit that a query exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExceededLimit {
    /// Its time limit, or the caller cancelled.
    Stopped(StopReason),
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
    watch: RefCell<Option<StopCheck>>,
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
pub(super) fn start(watch: StopCheck) {
    METER.with(|meter| {
        meter.stack_start.set(stack_address());
        meter.watch.replace(Some(watch));
    });
}

/// One step of the interpreter.
pub(super) fn step() {
    let used = METER.with(|meter| meter.stack_start.get().abs_diff(stack_address()));
    if used > MAX_STACK_BYTES {
        exceeded(ExceededLimit::Recursion);
    }
    work(STEP_WORK);
}

/// One operation on a value.
pub(super) fn tick() {
    work(1);
}

/// Call before an operation that may take milliseconds: reads the clock at once.
pub(super) fn pause() {
    let stop = METER.with(|meter| meter.watch.borrow().as_ref().and_then(StopCheck::stop));
    if let Some(stop) = stop {
        exceeded(ExceededLimit::Stopped(stop));
    }
}

/// Stops the query.
///
/// Never called while a value is dropped, because drops are not metered. Does nothing if the thread is already
/// unwinding: a second panic would end the process.
pub(super) fn exceeded(limit: ExceededLimit) {
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
            return Some(ExceededLimit::Work);
        }
        meter.watch.borrow().as_ref().and_then(StopCheck::stop).map(ExceededLimit::Stopped)
    });
    if let Some(limit) = limit {
        exceeded(limit);
    }
}

/// The approximate position of the stack pointer.
#[inline(never)]
fn stack_address() -> usize {
    let marker = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&marker)).addr()
}

/// Bytes that a value holds, released when it is dropped.
#[derive(Debug)]
pub(super) struct MemoryCharge(usize);

impl MemoryCharge {
    /// Charges bytes, or stops the query.
    pub(super) fn new(bytes: usize) -> Self {
        let mut charge = Self(0);
        charge.set(bytes);
        charge
    }

    /// Changes the charge, or stops the query. Call it before the bytes are allocated.
    pub(super) fn set(&mut self, bytes: usize) {
        let live = METER.with(|meter| {
            let live = meter.live.get().saturating_sub(self.0).saturating_add(bytes);
            meter.live.set(live);
            live
        });
        self.0 = bytes;
        if live > MAX_LIVE_BYTES {
            exceeded(ExceededLimit::Memory);
        }
    }
}

impl Clone for MemoryCharge {
    fn clone(&self) -> Self {
        Self::new(self.0)
    }
}

impl Drop for MemoryCharge {
    fn drop(&mut self) {
        // The thread's meter may be gone when the last value is dropped.
        let _ = METER.try_with(|meter| meter.live.set(meter.live.get().saturating_sub(self.0)));
    }
}
