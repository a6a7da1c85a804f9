//! The reaper: closes instances, each within a time limit, on threads of its own.
//!
//! The last user of an instance may be a drop anywhere: in a thread without a runtime, under a lock,
//! in a runtime that is going down. So closing happens elsewhere: one thread of the process takes the
//! instances and runs each `close` on a thread of its pool, where a `close` that blocks holds up
//! nobody. The thread starts with the first instance and ends when there is nothing to do.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, BinaryHeap};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{timeout, timeout_at};
use toolcrib_tool::{Tool, ToolName};

use super::LiveBody;
use super::live_body::Epoch;
use crate::call::panics::PanicMessage;
use crate::lifecycle::known_bodies;

/// How long a `close` may take; then its future is dropped and the operator is told.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);

/// Instances that are closed at once, as long as each is quick: what bounds the threads when ten
/// thousand tools go at once.
const QUICK_CLOSES: usize = 4;

/// From then on a `close` is slow: it goes on, and the next may begin beside it.
const QUICK: Duration = Duration::from_millis(25);

/// How long the thread waits for more before it ends.
const IDLE: Duration = Duration::from_secs(2);

static WORKER: Mutex<Option<UnboundedSender<Job>>> = Mutex::new(None);
static UNDER_WAY: Mutex<UnderWay> = Mutex::new(UnderWay { next: 0, numbers: BTreeSet::new() });
static ENDED: Notify = Notify::const_new();

/// The closings that were asked for and have not ended.
struct UnderWay {
    next: u64,
    numbers: BTreeSet<u64>,
}

/// One closing that was asked for; it has ended when this is dropped.
struct Ticket(u64);

impl Ticket {
    fn draw() -> Self {
        let mut under_way = lock(&UNDER_WAY);
        let number = under_way.next;
        under_way.next += 1;
        under_way.numbers.insert(number);
        Self(number)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        lock(&UNDER_WAY).numbers.remove(&self.0);
        ENDED.notify_waiters();
    }
}

enum Job {
    Close { tool: Arc<dyn Tool>, name: ToolName, ticket: Ticket },
    EndOfGrace(Grace),
}

/// A body that is closed at a time unless something happens to it until then.
struct Grace {
    at: Instant,
    body: Weak<LiveBody>,
    since: Epoch,
}

impl PartialEq for Grace {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Grace {}

impl PartialOrd for Grace {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Grace {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.cmp(&other.at)
    }
}

/// The grace periods that run. Frequent reloads begin thousands of them, nearly all for bodies that are
/// gone long before the end, so an entry is small and those of bodies that are gone make room.
#[derive(Default)]
struct Graces(BinaryHeap<Reverse<Grace>>);

impl Graces {
    fn begin(&mut self, grace: Grace) {
        // Looking through them is paid for by growth: only when the list is full.
        if self.0.len() == self.0.capacity() {
            self.0.retain(|Reverse(grace)| grace.body.strong_count() > 0);
        }
        self.0.push(Reverse(grace));
    }

    /// When the first of them ends.
    fn next(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse(grace)| grace.at)
    }

    /// Closes the bodies whose grace is over.
    fn end(&mut self, now: Instant) {
        while self.next().is_some_and(|at| at <= now) {
            if let Some(Reverse(grace)) = self.0.pop()
                && let Some(body) = grace.body.upgrade()
            {
                body.close_unplaced(Some(grace.since));
            }
        }
    }
}

/// Closes an instance, soon. Whoever calls this has made sure that nobody else does.
pub(super) fn close(tool: Arc<dyn Tool>, name: ToolName) {
    submit(Job::Close { tool, name, ticket: Ticket::draw() });
}

/// Closes a body when the grace is over, if nothing has happened to it since.
pub(super) fn end_of_grace(body: Weak<LiveBody>, since: Epoch, grace: Duration) {
    // A grace beyond what a clock can say never ends.
    if let Some(at) = Instant::now().checked_add(grace) {
        submit(Job::EndOfGrace(Grace { at, body, since }));
    }
}

/// Completes when everything that was handed over before has been closed or abandoned.
pub(super) async fn settled() {
    let until = lock(&UNDER_WAY).next;
    loop {
        let mut ended = std::pin::pin!(ENDED.notified());
        // Registered before the look, so that an end between the two is not missed.
        ended.as_mut().enable();
        if lock(&UNDER_WAY).numbers.first().is_none_or(|&oldest| oldest >= until) {
            return;
        }
        ended.await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics under these locks that could leave what they guard half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn submit(job: Job) {
    let mut worker = lock(&WORKER);
    let job = match worker.as_ref() {
        None => job,
        Some(sender) => match sender.send(job) {
            Ok(()) => return,
            Err(unsent) => unsent.0,
        },
    };
    let (sender, jobs) = unbounded_channel();
    let started = std::thread::Builder::new()
        .name("toolcrib-reaper".to_owned())
        .spawn(move || serve_on_this_thread(jobs));
    match started {
        Ok(_) => {
            // The receiver is alive as long as its thread is: it leaves under this lock only.
            let unsent = sender.send(job);
            *worker = Some(sender);
            drop(worker);
            drop(unsent);
        }
        Err(error) => {
            drop(worker);
            tracing::error!(%error, "a tool is not closed: no thread could be started for it");
        }
    }
}

fn serve_on_this_thread(jobs: UnboundedReceiver<Job>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_name("toolcrib-close")
        .thread_keep_alive(IDLE)
        .build();
    match runtime {
        Ok(runtime) => {
            runtime.block_on(serve(jobs));
            // A thread that an abandoned `close` blocks is not waited for.
            runtime.shutdown_background();
        }
        Err(error) => tracing::error!(%error, "tools are not closed: no runtime for it"),
    }
}

async fn serve(mut jobs: UnboundedReceiver<Job>) {
    let quick = Arc::new(Semaphore::new(QUICK_CLOSES));
    let mut running = JoinSet::new();
    let mut graces = Graces::default();
    loop {
        graces.end(Instant::now());
        let until = graces.next().unwrap_or_else(|| Instant::now() + IDLE);
        match timeout_at(until.into(), jobs.recv()).await {
            Ok(Some(Job::Close { tool, name, ticket })) => {
                let quick = Arc::clone(&quick);
                running.spawn(async move {
                    close_one(tool, name, &quick, CLOSE_LIMIT).await;
                    drop(ticket);
                });
            }
            Ok(Some(Job::EndOfGrace(grace))) => graces.begin(grace),
            Ok(None) => return,
            Err(_) if running.is_empty() && graces.next().is_none() => {
                let mut worker = lock(&WORKER);
                if jobs.is_empty() {
                    *worker = None;
                    return;
                }
            }
            Err(_) => {}
        }
        while running.try_join_next().is_some() {}
    }
}

/// Closes one instance; when this completes, the `close` has ended or is left alone.
pub(super) async fn close_one(
    tool: Arc<dyn Tool>,
    name: ToolName,
    quick: &Semaphore,
    limit: Duration,
) {
    // Never closed; and if it were, waiting for a place is only a courtesy.
    let place = quick.acquire().await.ok();
    let address = Arc::as_ptr(&tool).addr();
    let runtime = tokio::runtime::Handle::current();
    let of = name.clone();
    let mut work = tokio::task::spawn_blocking(move || {
        runtime.block_on(close_within(limit, tool.as_ref(), &of));
        // Here and not above: what the instance does when it is dropped may block, too.
        drop(tool);
        known_bodies::forget(address);
    });
    if timeout(QUICK, &mut work).await.is_ok() {
        return;
    }
    drop(place);
    // Longer than the limit within, so that only a `close` that blocks its thread gets here.
    if timeout(limit + QUICK, work).await.is_err() {
        tracing::error!(
            tool = name.as_str(),
            ?limit,
            "closing the tool blocks a thread beyond its limit; it is left alone"
        );
    }
}

async fn close_within(limit: Duration, tool: &dyn Tool, name: &ToolName) {
    let close = AssertUnwindSafe(async { tool.close().await }).catch_unwind();
    match timeout(limit, close).await {
        Ok(Ok(())) => tracing::debug!(tool = name.as_str(), "closed"),
        Ok(Err(panic)) => {
            let error = PanicMessage::of(panic.as_ref());
            tracing::error!(tool = name.as_str(), %error, "closing the tool failed");
        }
        Err(_) => tracing::error!(
            tool = name.as_str(),
            ?limit,
            "closing the tool took longer than its limit and was ended"
        ),
    }
}
