//! One budget for the answers of a batch: together they take no more of the model's attention than
//! one call may.

use toolcrib_tool::{Content, ToolResult};

use super::shares::fair_shares;
use super::{Place, Whole};

/// An answer that fits its own budget.
#[derive(Debug)]
pub(crate) struct BatchAnswer {
    pub(crate) result: ToolResult,
    /// What was there before it was cut; `None` if it was not.
    pub(crate) whole: Option<Whole>,
    /// Its own budget, in characters.
    pub(crate) limit: usize,
}

/// The budget of a batch, in characters: the one that is set, or as much as the largest of its
/// calls may have alone.
pub(crate) fn batch_budget(set: Option<usize>, limits: impl IntoIterator<Item = usize>) -> usize {
    set.unwrap_or_else(|| limits.into_iter().max().unwrap_or(0))
}

/// Shares `budget` characters among the answers max-min fairly: small ones stay whole, large ones
/// get the same, none more than its own limit. Their order stays. Whoever has many asks
/// [`bytes_at_most`] first.
pub(crate) async fn fit_batch(
    answers: Vec<BatchAnswer>,
    budget: usize,
    place: Option<Place<'_>>,
) -> Vec<ToolResult> {
    let needs: Vec<usize> = answers.iter().map(BatchAnswer::need).collect();
    let shares = fair_shares(&needs, budget);
    let mut results = Vec::with_capacity(answers.len());
    for ((answer, share), need) in answers.into_iter().zip(shares).zip(needs) {
        results.push(if share < need { answer.cut(share, place).await } else { answer.result });
    }
    results
}

/// An upper bound of the characters of an answer's text, found without reading the text. `whole` is
/// what was there before it was cut to `limit` characters, if it was.
pub(crate) fn bytes_at_most(result: &ToolResult, whole: Option<&Whole>, limit: usize) -> usize {
    match (whole, result.output()) {
        (Some(whole), _) => whole.chars().min(limit),
        (None, None) => 0,
        (None, Some(output)) if output.content().is_empty() => {
            output.data().map_or(0, super::json_bytes)
        }
        (None, Some(output)) => {
            output.content().iter().map(|part| super::text_of(part).len()).sum()
        }
    }
}

impl BatchAnswer {
    /// The characters it has now, markers aside.
    fn need(&self) -> usize {
        match (&self.whole, self.result.output()) {
            (Some(whole), _) => whole.chars().min(self.limit),
            (None, Some(output)) => Whole::of(output).chars(),
            (None, None) => 0,
        }
    }

    async fn cut(self, share: usize, place: Option<Place<'_>>) -> ToolResult {
        let whole = match (self.whole, self.result.output()) {
            (Some(whole), _) => whole,
            (None, Some(output)) => {
                let mut whole = Whole::of(output);
                whole.spill(place).await;
                whole
            }
            (None, None) => return self.result,
        };
        with_content(self.result, whole.cut(share))
    }
}

/// The same answer with other parts.
fn with_content(result: ToolResult, content: Vec<Content>) -> ToolResult {
    let (cached, skipped, duration) = (result.cached(), result.skipped(), result.duration());
    let (id, tool) = (result.call_id().clone(), result.tool().to_owned());
    let replaced = match result.into_result() {
        Ok(output) => ToolResult::success(id, tool, output.replace_content(content), duration),
        Err(mut error) => {
            let partial = error.take_partial().unwrap_or_default().replace_content(content);
            ToolResult::failure(id, tool, error.with_partial(partial), duration)
        }
    };
    replaced.with_truncated(true).with_cached(cached).with_skipped(skipped)
}
