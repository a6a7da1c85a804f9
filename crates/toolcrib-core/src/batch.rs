//! Several calls at once: run side by side, answered in their order, within one budget.

use std::pin::{Pin, pin};
use std::task::Poll;

use futures_util::stream::{FuturesUnordered, StreamExt};
use toolcrib_tool::ToolCall;

use crate::admission::Lineage;
use crate::answers::Flights;
use crate::execution::poll_once;
use crate::output_budget::Place;
use crate::output_budget::batch::{BatchAnswer, batch_budget, bytes_at_most, fit_batch};
use crate::pipeline::{Answered, Aside, Origin};
use crate::spill::Owner;
use crate::{Turn, pipeline};

/// Runs the calls, at most `max_concurrency` at once (0: all). A tool with `parallel: false` runs
/// alone, after what came before it and before what comes after.
pub(crate) async fn run(
    turn: &Turn,
    calls: Vec<ToolCall>,
    max_concurrency: usize,
) -> Vec<Answered> {
    let batch = Batch { turn, flights: Flights::for_batch(), lineage: Lineage::root() };
    let mut answers = Vec::with_capacity(calls.len());
    let mut group = Vec::new();
    for (position, call) in calls.into_iter().enumerate() {
        let slot = turn.state.slot(call.name());
        if slot.is_some_and(|slot| !slot.entry.definition.parallel()) {
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
    lineage: Lineage,
}

impl Batch<'_> {
    /// Polled inside the caller's task: a batch of quick calls pays for no task switch. A call that is
    /// answered at its first poll needs no place among those that run, and leaves its memory to the
    /// next.
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
        let mut free = None;
        loop {
            if running.len() < at_once
                && let Some(call) = waiting.next()
            {
                let mut work = in_place_of(free.take(), numbered(call));
                match poll_once(work.as_mut()).await {
                    Poll::Ready(answer) => {
                        answers.push(answer);
                        free = Some(work);
                    }
                    Poll::Pending => running.push(work),
                }
                // Those that run are heard between any two that begin.
                while !running.is_empty()
                    && let Poll::Ready(Some(answer)) = poll_once(pin!(running.next())).await
                {
                    answers.push(answer);
                }
            } else if let Some(answer) = running.next().await {
                answers.push(answer);
            } else {
                break;
            }
        }
        answers.sort_unstable_by_key(|(position, _)| *position);
        answers.into_iter().map(|(_, answered)| answered).collect()
    }

    async fn one(&self, position: usize, call: ToolCall) -> Answered {
        let origin =
            Origin { batch: Some(&self.flights), position, ..Origin::alone(&self.lineage) };
        pipeline::run(self.turn, call, origin).await
    }

    /// The answers within the budget they share. What a call that waits says counts like any text.
    async fn fitted(&self, answers: Vec<Answered>) -> Vec<Answered> {
        let state = &self.turn.state;
        let limits = answers.iter().map(|answered| answered.limit);
        let budget = batch_budget(state.shared.config.batch_output_chars, limits);
        let bytes = answers
            .iter()
            .map(|answered| bytes_at_most(&answered.result, answered.whole(), answered.limit));
        if bytes.fold(0, usize::saturating_add) <= budget {
            return answers;
        }
        let owner = Owner::known(&state.identity, state.session.as_ref());
        let place = state.spill().map(|store| Place { store, owner: &owner });
        let mut asides = Vec::with_capacity(answers.len());
        let mut texts = Vec::with_capacity(answers.len());
        for Answered { result, limit, aside } in answers {
            let (whole, suspension) =
                aside.map(|aside| (aside.whole, aside.suspension)).unwrap_or_default();
            asides.push((limit, suspension));
            texts.push(BatchAnswer { result, whole, limit });
        }
        let results = fit_batch(texts, budget, place).await.into_iter().zip(asides);
        results
            .map(|(result, (limit, suspension))| {
                let aside = Aside::of(None, suspension);
                Answered { result, limit, aside }
            })
            .collect()
    }
}

/// A future in memory that another one has left, or else in its own.
fn in_place_of<F>(free: Option<Pin<Box<F>>>, future: F) -> Pin<Box<F>> {
    match free {
        None => Box::pin(future),
        Some(mut place) => {
            place.set(future);
            place
        }
    }
}
