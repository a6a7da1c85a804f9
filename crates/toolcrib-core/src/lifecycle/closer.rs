//! Closes instances, each within a time limit, away from whoever let go of them.
//!
//! The last user of an instance may be a drop anywhere: in a thread without a runtime, under a lock,
//! in a runtime that is going down. So instances are closed in a small runtime of the process, each on
//! a thread of its pool, where a `close` that blocks holds up nobody.

use std::collections::BTreeSet;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use toolcrib_tool::{Tool, ToolName};

use crate::call::panics::PanicMessage;

/// How long a `close` may take; then its future is dropped and the operator is told.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);

/// Instances that are closed at once, as long as each is quick: what bounds the threads when ten
/// thousand tools go at once.
static QUICK_CLOSES: Semaphore = Semaphore::const_new(4);

/// From then on a `close` is slow: it goes on, and the next may begin beside it.
const QUICK: Duration = Duration::from_millis(25);

/// How long a thread of the pool waits for more before it ends.
const IDLE: Duration = Duration::from_secs(2);

/// The runtime, which starts with the first instance.
static RUNTIME: LazyLock<io::Result<Handle>> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .thread_name("toolcrib-close")
        .thread_keep_alive(IDLE)
        .build()?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("toolcrib-closer".to_owned())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(handle)
});

/// The closings that were asked for and have not ended.
static UNDER_WAY: LazyLock<watch::Sender<PendingCloses>> = LazyLock::new(watch::Sender::default);

#[derive(Default)]
struct PendingCloses {
    next: u64,
    numbers: BTreeSet<u64>,
}

/// One closing that was asked for; it has ended when this is dropped.
struct CloseTicket(u64);

impl CloseTicket {
    fn draw() -> Self {
        let mut number = 0;
        UNDER_WAY.send_modify(|under_way| {
            number = under_way.next;
            under_way.next += 1;
            under_way.numbers.insert(number);
        });
        Self(number)
    }
}

impl Drop for CloseTicket {
    fn drop(&mut self) {
        UNDER_WAY.send_if_modified(|under_way| under_way.numbers.remove(&self.0));
    }
}

/// Closes an instance, soon. Whoever calls this has made sure that nobody else does.
pub(super) fn close(tool: Arc<dyn Tool>, name: ToolName) {
    let ticket = CloseTicket::draw();
    spawn(async move {
        close_one(tool, name, &QUICK_CLOSES, CLOSE_LIMIT).await;
        drop(ticket);
    });
}

/// Runs a task of the life of instances, whether or not the caller has a runtime.
pub(super) fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    match &*RUNTIME {
        Ok(runtime) => drop(runtime.spawn(task)),
        Err(error) => tracing::error!(%error, "tools are not closed: no runtime for it"),
    }
}

/// Completes when everything that was handed over before has been closed or abandoned.
pub(super) async fn settled() {
    let mut under_way = UNDER_WAY.subscribe();
    let until = under_way.borrow().next;
    let are_over = |now: &PendingCloses| now.numbers.first().is_none_or(|&oldest| oldest >= until);
    // The sender is never dropped.
    drop(under_way.wait_for(are_over).await);
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
    let runtime = Handle::current();
    let of = name.clone();
    let mut work = tokio::task::spawn_blocking(move || {
        runtime.block_on(close_within(limit, tool.as_ref(), &of));
        // Here and not above: what the instance does when it is dropped may block, too.
        drop(tool);
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
