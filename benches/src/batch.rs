//! Several quick calls at once: what it costs to have them side by side.

use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rmcp::model::JsonObject;
use tokio::runtime::{Builder, Runtime};
use toolcrib_core::{Executor, ExecutorConfig, Registry, Turn, TurnOptions};
use toolcrib_testkit::search_tool::{self, ARGUMENTS, Schemas};
use toolcrib_tool::{ToolCall, ToolResult};

use crate::call::{CALL_ID, names, runtime};
use crate::order::Order;
use crate::peer::{Connection, Server};
use crate::{Contender, peer};

/// Calls of a batch.
pub const CALLS: usize = 32;

/// Batches of [`CALLS`] ready calls in a registry of `size` tools with one schema:
///
/// - `ours/batch`: `Turn::call_batch` with the default concurrency;
/// - `ours/batch-all`: the same, all of them at once;
/// - `ours/one-by-one`: `Turn::call`, one after another;
/// - `ours/spawned`: a task of its own for each call, in one thread;
/// - `ours/spawned-2-threads`: the same in a runtime of two threads;
/// - `rmcp/joined`: `ToolRouter::call` from the same texts, joined in one task;
/// - `rig/joined`: `ToolSet::execute`, joined in one task (with the feature `rig`).
pub fn contenders(size: usize) -> Vec<Contender> {
    let registry = Registry::new(search_tool::snapshot(size, Schemas::Shared));
    let executor = Executor::new(registry, ExecutorConfig::default());
    let turn = executor.turn(TurnOptions::default());
    let all_at_once = executor.turn(TurnOptions::default().max_concurrency(0));
    vec![
        in_batches("ours/batch", turn.clone(), size),
        in_batches("ours/batch-all", all_at_once, size),
        one_by_one(turn.clone(), size),
        spawned("ours/spawned", turn.clone(), runtime(), size),
        spawned("ours/spawned-2-threads", turn, two_threads(), size),
        rmcp_joined(size),
        #[cfg(feature = "rig")]
        rig_joined(size),
    ]
}

fn two_threads() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime")
}

/// The calls of the next batch; made inside the measured time on every side.
fn calls(names: &[String], order: &mut Order) -> Vec<ToolCall> {
    let call = |_| ToolCall::new(CALL_ID, names[order.next()].as_str(), black_box(ARGUMENTS));
    (0..CALLS).map(call).collect()
}

fn check(results: &[ToolResult]) {
    assert!(results.len() == CALLS && results.iter().all(ToolResult::is_success));
}

/// A contender that does `batch` so many times inside a runtime, warmed up over all tools.
fn contender(
    name: &'static str,
    size: usize,
    runtime: Runtime,
    mut batch: impl AsyncFnMut(&[String], &mut Order) + 'static,
) -> Contender {
    let (names, mut order) = names(size);
    let mut run = move |times: u64| -> Duration {
        runtime.block_on(async {
            let start = Instant::now();
            for _ in 0..times {
                batch(&names, &mut order).await;
            }
            start.elapsed()
        })
    };
    run(size.div_ceil(CALLS) as u64);
    Contender::new(name, run)
}

fn in_batches(name: &'static str, turn: Turn, size: usize) -> Contender {
    contender(name, size, runtime(), async move |names: &[String], order: &mut Order| {
        check(&black_box(turn.call_batch(calls(names, order)).await));
    })
}

fn one_by_one(turn: Turn, size: usize) -> Contender {
    contender(
        "ours/one-by-one",
        size,
        runtime(),
        async move |names: &[String], order: &mut Order| {
            let mut results = Vec::with_capacity(CALLS);
            for call in calls(names, order) {
                results.push(turn.call(call).await);
            }
            check(&black_box(results));
        },
    )
}

fn spawned(name: &'static str, turn: Turn, runtime: Runtime, size: usize) -> Contender {
    contender(name, size, runtime, async move |names: &[String], order: &mut Order| {
        let task = |call| {
            let turn = turn.clone();
            tokio::spawn(async move { turn.call(call).await })
        };
        let tasks: Vec<_> = calls(names, order).into_iter().map(task).collect();
        let mut results = Vec::with_capacity(CALLS);
        for task in tasks {
            results.push(task.await.expect("no panic"));
        }
        check(&black_box(results));
    })
}

fn rmcp_joined(size: usize) -> Contender {
    let router = Rc::new(peer::router(size, Schemas::Shared));
    let runtime = runtime();
    let connection = Connection::open(&runtime);
    contender("rmcp/joined", size, runtime, async move |names: &[String], order: &mut Order| {
        let call = |_| {
            let arguments: JsonObject = serde_json::from_str(black_box(ARGUMENTS)).expect("JSON");
            router.call(connection.call(&Server, CALL_ID, &names[order.next()], arguments))
        };
        let responses = join_all((0..CALLS).map(call)).await;
        assert!(black_box(responses).into_iter().all(peer::succeeded));
    })
}

#[cfg(feature = "rig")]
fn rig_joined(size: usize) -> Contender {
    let set = crate::rig::set(size, Schemas::Shared);
    contender("rig/joined", size, runtime(), async move |names: &[String], order: &mut Order| {
        let call = |_| crate::rig::call(&set, &names[order.next()]);
        assert!(join_all((0..CALLS).map(call)).await.into_iter().all(|succeeded| succeeded));
    })
}
