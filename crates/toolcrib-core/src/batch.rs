//! Several calls at once: run side by side, answered in their order.

use futures_util::stream::{FuturesUnordered, StreamExt};
use toolcrib_tool::{ToolCall, ToolResult};

use crate::admission::Lineage;
use crate::answers::Flights;
use crate::{Turn, pipeline};

/// Runs the calls, at most `max_concurrency` at once (0: all). A tool with `parallel: false` runs
/// alone, after what came before it and before what comes after.
pub(crate) async fn run(
    turn: &Turn,
    calls: Vec<ToolCall>,
    max_concurrency: usize,
) -> Vec<ToolResult> {
    let flights = Flights::for_batch();
    let mut answers = Vec::with_capacity(calls.len());
    let mut group = Vec::new();
    for call in calls {
        let barrier =
            turn.state.snapshot.get(call.name()).is_some_and(|entry| !entry.definition.parallel());
        if barrier {
            answers.extend(
                side_by_side(turn, &flights, std::mem::take(&mut group), max_concurrency).await,
            );
            answers.push(one(turn, &flights, call).await);
        } else {
            group.push(call);
        }
    }
    answers.extend(side_by_side(turn, &flights, group, max_concurrency).await);
    answers
}

/// Polled inside the caller's task: a batch of quick calls pays for no task switch.
async fn side_by_side(
    turn: &Turn,
    flights: &Flights,
    calls: Vec<ToolCall>,
    max_concurrency: usize,
) -> Vec<ToolResult> {
    let at_once = if max_concurrency == 0 { calls.len() } else { max_concurrency };
    let numbered = |(position, call)| async move { (position, one(turn, flights, call).await) };
    let mut waiting = calls.into_iter().enumerate();
    let mut running: FuturesUnordered<_> = waiting.by_ref().take(at_once).map(numbered).collect();
    let mut answers = Vec::new();
    while let Some(answer) = running.next().await {
        answers.push(answer);
        running.extend(waiting.next().map(numbered));
    }
    answers.sort_unstable_by_key(|(position, _)| *position);
    answers.into_iter().map(|(_, result)| result).collect()
}

async fn one(turn: &Turn, flights: &Flights, call: ToolCall) -> ToolResult {
    pipeline::run(turn, call, &Lineage::root(), Some(flights)).await
}
