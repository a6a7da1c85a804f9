//! Closes instances in the background, each within a time limit.
//!
//! An instance may be dropped anywhere: in a thread without a runtime, under a lock, in a runtime
//! that is shutting down. So instances are closed in a separate small runtime, each on a thread of
//! its pool, where a blocking `close` does not affect others.

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

/// The time limit of a `close`; then its future is dropped and an error is logged.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);

/// Limits concurrent quick closes, which bounds the threads when thousands of tools are removed at
/// once.
static QUICK_CLOSES: Semaphore = Semaphore::const_new(4);

/// After this time a `close` counts as slow: it continues, and the next may start.
const QUICK: Duration = Duration::from_millis(25);

/// How long an idle thread of the pool lives.
const IDLE: Duration = Duration::from_secs(2);

/// The runtime, created with the first instance to close.
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

/// Pending closes.
static UNDER_WAY: LazyLock<watch::Sender<PendingCloses>> = LazyLock::new(watch::Sender::default);

#[derive(Default)]
struct PendingCloses {
    next: u64,
    numbers: BTreeSet<u64>,
}

/// A pending close, until this is dropped.
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

/// Closes an instance in the background. The caller must ensure that it is called once per
/// instance.
pub(super) fn close(tool: Arc<dyn Tool>, name: ToolName) {
    let ticket = CloseTicket::draw();
    spawn(async move {
        close_one(tool, name, &QUICK_CLOSES, CLOSE_LIMIT).await;
        drop(ticket);
    });
}

/// Spawns a task on the runtime, even if the caller has none.
pub(super) fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    match &*RUNTIME {
        Ok(runtime) => drop(runtime.spawn(task)),
        Err(error) => tracing::error!(%error, "tools are not closed: no runtime for it"),
    }
}

/// Completes when everything that was submitted before has been closed or abandoned.
pub(super) async fn settled() {
    let mut under_way = UNDER_WAY.subscribe();
    let until = under_way.borrow().next;
    let are_over = |now: &PendingCloses| now.numbers.first().is_none_or(|&oldest| oldest >= until);
    // The sender is never dropped.
    drop(under_way.wait_for(are_over).await);
}

/// Closes one instance; completes when the `close` has ended or was abandoned.
pub(super) async fn close_one(
    tool: Arc<dyn Tool>,
    name: ToolName,
    quick: &Semaphore,
    limit: Duration,
) {
    // The semaphore is never closed, and waiting for it is only a courtesy.
    let place = quick.acquire().await.ok();
    let runtime = Handle::current();
    let of = name.clone();
    let mut work = tokio::task::spawn_blocking(move || {
        runtime.block_on(close_within(limit, tool.as_ref(), &of));
        // Dropped here, because the instance's destructor may block, too.
        drop(tool);
    });
    if timeout(QUICK, &mut work).await.is_ok() {
        return;
    }
    drop(place);
    // Longer than the inner limit, so only a `close` that blocks its thread gets here.
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
