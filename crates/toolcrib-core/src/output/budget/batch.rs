//! One output budget for the answers of a batch.

use std::sync::Arc;

use toolcrib_tool::{ToolOutput, ToolResult};

use super::shares::fair_shares;
use super::{SpillTarget, UncutOutput};
use crate::cache::SpillMemo;

/// An answer within its own budget.
#[derive(Debug)]
pub(crate) struct BatchAnswer {
    pub(crate) result: ToolResult,
    /// The output before it was cut; `None` if it was not cut.
    pub(crate) whole: Option<UncutOutput>,
    /// Its own budget, in characters.
    pub(crate) limit: usize,
    /// Where its text was spilled, if other calls share the answer.
    pub(crate) spilled: Option<Arc<SpillMemo>>,
}

/// The budget of a batch, in characters: the configured one, or the largest budget of its calls.
pub(crate) fn batch_budget(set: Option<usize>, limits: impl IntoIterator<Item = usize>) -> usize {
    set.unwrap_or_else(|| limits.into_iter().max().unwrap_or(0))
}

/// Shares `budget` characters among the answers with max-min fairness: small answers stay complete,
/// large ones get equal shares, none more than its own limit. Their order is kept. For large
/// batches, check [`bytes_at_most`] first.
pub(crate) async fn fit_batch(
    answers: Vec<BatchAnswer>,
    budget: usize,
    place: Option<SpillTarget<'_>>,
) -> Vec<ToolResult> {
    let needs: Vec<usize> = answers.iter().map(BatchAnswer::need).collect();
    let shares = fair_shares(&needs, budget);
    let mut results = Vec::with_capacity(answers.len());
    for ((answer, share), need) in answers.into_iter().zip(shares).zip(needs) {
        results.push(if share < need { answer.cut(share, place).await } else { answer.result });
    }
    results
}

/// An upper bound of the characters of an answer's text, computed without reading the text. `whole`
/// is the output before it was cut to `limit` characters, if it was.
pub(crate) fn bytes_at_most(
    result: &ToolResult,
    whole: Option<&UncutOutput>,
    limit: usize,
) -> usize {
    if let Some(whole) = whole {
        return whole.chars().min(limit);
    }
    let own = result.error().map_or(0, |error| {
        error.message().len() + error.hints().iter().map(String::len).sum::<usize>()
    });
    own + match result.output() {
        None => 0,
        Some(output) if output.content().is_empty() => {
            output.exact_data().map_or(0, super::data_bytes)
        }
        Some(output) => output.content().iter().map(|part| super::text_of(part).len()).sum(),
    }
}

impl BatchAnswer {
    /// Its current length in characters, without markers.
    fn need(&self) -> usize {
        match &self.whole {
            Some(whole) => whole.chars().min(self.limit),
            None => whole_of(&self.result).chars(),
        }
    }

    async fn cut(self, share: usize, place: Option<SpillTarget<'_>>) -> ToolResult {
        let whole = if let Some(whole) = self.whole {
            whole
        } else {
            let mut whole = whole_of(&self.result);
            let memo = self.spilled.as_deref();
            whole.spill(place.map(|place| SpillTarget { memo, ..place })).await;
            whole
        };
        cut_to(self.result, &whole, share)
    }
}

fn whole_of(result: &ToolResult) -> UncutOutput {
    match (result.error(), result.output()) {
        (Some(error), _) => UncutOutput::of_error(error),
        (None, Some(output)) => UncutOutput::of(output),
        (None, None) => UncutOutput::of(&ToolOutput::new()),
    }
}

/// The same answer with at most `share` characters of text.
fn cut_to(result: ToolResult, whole: &UncutOutput, share: usize) -> ToolResult {
    let (cached, skipped, duration) = (result.cached(), result.skipped(), result.duration());
    let (id, tool) = (result.call_id().clone(), result.tool().to_owned());
    let cut = match result.into_result() {
        Ok(output) => {
            ToolResult::success(id, tool, output.replace_content(whole.cut(share)), duration)
        }
        Err(error) => ToolResult::failure(id, tool, whole.cut_error(error, share), duration),
    };
    cut.with_truncated(true).with_cached(cached).with_skipped(skipped)
}
