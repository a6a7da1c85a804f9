//! Batches: several calls that run concurrently, are answered in order, and share one output
//! budget.

mod barrier;

use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt};
use toolcrib_tool::{ToolCall, ToolResult};

pub(crate) use self::barrier::{Barrier, Presence};
use crate::Turn;
use crate::cache::Flights;
use crate::call::nested;
use crate::call::nested::RootStart;
use crate::call::pipeline::{Answered, SideOutput};
use crate::output::budget::SpillTarget;
use crate::output::budget::batch::{BatchAnswer, batch_budget, bytes_at_most, fit_batch};
use crate::output::spill::Owner;

/// Options of one batch of calls.
///
/// ```
/// use toolcrib_core::BatchOptions;
///
/// let one_after_another = BatchOptions::default().max_concurrency(1);
/// # let _ = one_after_another;
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct BatchOptions {
    max_concurrency: Option<usize>,
}

impl BatchOptions {
    /// Sets how many calls of the batch run concurrently: 1 = one after another, 0 = all. Default:
    /// the turn's setting, or else the executor's.
    #[must_use]
    pub fn max_concurrency(mut self, max_concurrency: usize) -> Self {
        self.max_concurrency = Some(max_concurrency);
        self
    }
}

/// Hears of each result as soon as its call has ended.
pub(crate) type ResultListener<'a> = dyn Fn(&ToolResult) + Send + Sync + 'a;

/// Runs the calls. A tool with `parallel: false` runs alone, after the calls before it and before
/// the calls after it.
pub(crate) async fn run(
    turn: &Turn,
    calls: Vec<ToolCall>,
    options: BatchOptions,
    on_result: &ResultListener<'_>,
) -> Vec<Answered> {
    let max_concurrency = options.max_concurrency.unwrap_or(turn.state.max_concurrency);
    let batch = Batch { turn, flights: Flights::for_batch(), barrier: Arc::default(), on_result };
    let mut answers = Vec::with_capacity(calls.len());
    let mut group = Vec::new();
    for (position, call) in calls.into_iter().enumerate() {
        if batch.runs_alone(&call) {
            let before = std::mem::take(&mut group);
            answers.extend(batch.side_by_side(before, max_concurrency).await);
            answers.push(batch.one(position, call).await);
        } else {
            group.push((position, call));
        }
    }
    answers.extend(batch.side_by_side(group, max_concurrency).await);
    batch.fitted(answers).await
}

struct Batch<'a> {
    turn: &'a Turn,
    flights: Flights,
    barrier: Arc<Barrier>,
    on_result: &'a ResultListener<'a>,
}

impl Batch<'_> {
    /// Whether the called tool, or the one that the call is delegated to, runs alone.
    fn runs_alone(&self, call: &ToolCall) -> bool {
        let state = &self.turn.state;
        let Some(slot) = state.slot(call.name()) else { return false };
        let delegate =
            slot.live().and_then(|live| live.tool().delegates_to(call.arguments().as_str()));
        let delegate = delegate.and_then(|name| state.slot(&name));
        let alone = |slot: &crate::registry::ToolSlot| !slot.entry.definition.parallel();
        alone(slot) || delegate.is_some_and(|slot| alone(slot))
    }

    /// Polled inside the caller's task, so a batch of quick calls needs no task switch.
    async fn side_by_side(
        &self,
        calls: Vec<(usize, ToolCall)>,
        max_concurrency: usize,
    ) -> Vec<Answered> {
        let at_once = if max_concurrency == 0 { calls.len() } else { max_concurrency };
        let numbered = |(position, call)| async move { (position, self.one(position, call).await) };
        let mut answers = Vec::with_capacity(calls.len());
        let mut waiting = calls.into_iter();
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < at_once
                && let Some(call) = waiting.next()
            {
                running.push(numbered(call));
            }
            let Some(answer) = running.next().await else { break };
            answers.push(answer);
        }
        answers.sort_unstable_by_key(|(position, _)| *position);
        answers.into_iter().map(|(_, answered)| answered).collect()
    }

    async fn one(&self, position: usize, call: ToolCall) -> Answered {
        let barrier = Arc::clone(&self.barrier);
        let start =
            RootStart { barrier, batch: Some(&self.flights), position, ..RootStart::alone() };
        let answered = nested::make(self.turn, call, start).await;
        if answered.side.suspension.is_none() {
            (self.on_result)(&answered.result);
        }
        answered
    }

    /// Fits the answers to their shared budget. The text of a waiting call counts, too.
    async fn fitted(&self, answers: Vec<Answered>) -> Vec<Answered> {
        let state = &self.turn.state;
        let limits = answers.iter().map(|answered| answered.limit);
        let budget = batch_budget(state.shared.config.load().batch_output_chars, limits);
        let bytes = answers
            .iter()
            .map(|answered| bytes_at_most(&answered.result, answered.whole(), answered.limit));
        if bytes.fold(0, usize::saturating_add) <= budget {
            return answers;
        }
        let owner = Owner::known(&state.identity, state.session.as_ref());
        let place = state.spill().map(|store| SpillTarget { store, owner: &owner, memo: None });
        let mut sides = Vec::with_capacity(answers.len());
        let mut texts = Vec::with_capacity(answers.len());
        for Answered { result, limit, side } in answers {
            sides.push((limit, side.suspension));
            texts.push(BatchAnswer { result, whole: side.whole, limit, spilled: side.spilled });
        }
        let results = fit_batch(texts, budget, place).await.into_iter().zip(sides);
        results
            .map(|(result, (limit, suspension))| Answered {
                result,
                limit,
                side: SideOutput { suspension, ..SideOutput::default() },
            })
            .collect()
    }
}
