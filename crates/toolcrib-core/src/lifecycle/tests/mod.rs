//! Bodies are closed once, whatever becomes of them.

mod closing;
mod leases;
mod placements;
mod polls;
mod refreshing;
mod shutting_down;
mod stubborn;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use toolcrib_tool::{
    Arguments, Body, BoxFuture, CallContext, Layer, SharedTool, Source, Tool, ToolDefinition,
    ToolEntry, ToolError, ToolOutcome,
};

use super::Bodies;
use crate::{RegistryBuilder, RegistrySnapshot};

/// What a call of [`Counted`] does.
type Work = fn(CallContext) -> BoxFuture<'static, Result<ToolOutcome, ToolError>>;

/// A tool that counts how often it was closed and dropped.
struct Counted {
    work: Work,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    closed: AtomicUsize,
    dropped: AtomicUsize,
}

impl Counts {
    fn closed(&self) -> usize {
        self.closed.load(Ordering::SeqCst)
    }
}

fn counted(work: Work) -> (SharedTool, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    (SharedTool::new(Arc::new(Counted { work, counts: Arc::clone(&counts) })), counts)
}

fn quiet(_: CallContext) -> BoxFuture<'static, Result<ToolOutcome, ToolError>> {
    Box::pin(async { Ok("done".into()) })
}

impl Tool for Counted {
    fn call<'a>(
        &'a self,
        _: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        (self.work)(cx.clone())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            tokio::task::yield_now().await;
            self.counts.closed.fetch_add(1, Ordering::SeqCst);
        })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.counts.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

fn definition(name: &str) -> ToolDefinition {
    ToolDefinition::builder(name).description("A test.").build().unwrap()
}

fn entry(name: &str, tool: &SharedTool) -> ToolEntry {
    entry_of(name, tool, Source::new(Layer::Host, "test"))
}

/// An entry of an instance that other entries may have, too.
fn entry_of(name: &str, tool: &SharedTool, source: Source) -> ToolEntry {
    let body = Body::Shared(tool.clone());
    ToolEntry { body, ..ToolEntry::new(definition(name), Arc::clone(tool.tool()), source) }
}

fn snapshot<'a>(tools: impl IntoIterator<Item = (&'a str, &'a SharedTool)>) -> RegistrySnapshot {
    let mut builder = RegistryBuilder::new();
    for (name, tool) in tools {
        let _ = builder.register(entry(name, tool));
    }
    builder.build()
}

/// Everything that was to be closed is.
async fn settled() {
    tokio::time::timeout(Duration::from_secs(20), Bodies::settled()).await.unwrap();
}

/// Waits for something another thread does.
async fn until<R: Future<Output = bool>>(mut what: impl FnMut() -> R) {
    for _ in 0..2000 {
        if what().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it did not happen within 10 s");
}
