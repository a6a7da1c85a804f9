//! A `close` that misbehaves: it harms nobody, and it ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use toolcrib_tool::{Arguments, BoxFuture, CallContext, Tool, ToolError, ToolOutcome};

use super::{Counts, counted, definition, quiet, until};
use crate::lifecycle::{LiveBody, closer};

/// Does as the test says when it is closed.
struct Stubborn(fn() -> BoxFuture<'static, ()>);

impl Tool for Stubborn {
    fn call<'a>(
        &'a self,
        _: Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async { Ok("done".into()) })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        (self.0)()
    }
}

fn stubborn(close: fn() -> BoxFuture<'static, ()>) -> Arc<dyn Tool> {
    Arc::new(Stubborn(close))
}

/// A `close` that sleeps without awaiting.
fn blocks() -> BoxFuture<'static, ()> {
    Box::pin(async { std::thread::sleep(Duration::from_secs(3)) })
}

#[tokio::test]
async fn a_close_that_panics_or_blocks_holds_up_no_other() {
    let blocking: Vec<_> = (0..8).map(|_| stubborn(blocks)).collect();
    let name = definition("stubborn");
    for tool in blocking.iter().chain([&stubborn(|| panic!("no"))]) {
        drop(LiveBody::of_call(Arc::clone(tool), name.tool_name()));
    }
    let (tool, counts): (_, Arc<Counts>) = counted(quiet);
    drop(LiveBody::of(&tool, name.tool_name()));
    tokio::time::timeout(Duration::from_secs(2), until(async || counts.closed() == 1))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_close_that_never_ends_is_ended_and_its_instance_dropped() {
    for tool in [stubborn(blocks), stubborn(|| Box::pin(std::future::pending()))] {
        let instance = Arc::downgrade(&tool);
        let from = Instant::now();
        let (name, quick) = (definition("stubborn").tool_name().clone(), Semaphore::new(1));
        closer::close_one(tool, name, &quick, Duration::from_millis(100)).await;
        assert!(from.elapsed() < Duration::from_secs(2), "it is not waited for beyond its limit");
        // Blocked, its thread lets go of it when it can.
        until(async || instance.strong_count() == 0).await;
    }
}
