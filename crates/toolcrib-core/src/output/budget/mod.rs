//! Fits a result to the model's budget: the beginning and the end stay, the middle goes to the
//! spill store, and a marker says how much is missing and how to read it.
//!
//! Per call, [`allows`] checks lengths, which is cheap, and [`fit_outcome`] cuts only if needed.
//! Per batch, [`batch::fit_batch`] shares one budget among the answers, each of which already fits
//! its own.
//!
//! The input is masked already, because a secret that was cut in two cannot be found.

pub(crate) mod batch;
mod shares;
mod uncut;

use std::io;

use serde_json::Value;
use toolcrib_tool::{Content, Data, ErrorKind, KEPT_OUTPUT, ToolError, ToolOutput};

use crate::cache::SpillMemo;
use crate::output::budget::uncut::OWN_CHARS;
pub(crate) use crate::output::budget::uncut::UncutOutput;
use crate::output::spill::{Handle, Owner, READ_OUTPUT, SpillError, SpillStore, Spilled};

/// The output limits of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutputLimits {
    /// Characters of text.
    pub(crate) chars: usize,
    /// Bytes of data, as JSON.
    pub(crate) data_bytes: usize,
}

/// Where the rest goes.
#[derive(Clone, Copy)]
pub(crate) struct SpillTarget<'a> {
    pub(crate) store: &'a dyn SpillStore,
    pub(crate) owner: &'a Owner,
    /// The spill memo, if other calls share the answer.
    pub(crate) memo: Option<&'a SpillMemo>,
}

impl SpillTarget<'_> {
    /// Stores a text unless it was stored before, and returns its handle.
    async fn put(self, spilled: Spilled) -> Result<Handle, SpillError> {
        match self.memo {
            Some(memo) => memo.put(self.store, self.owner, spilled).await,
            None => self.store.put(self.owner, spilled).await,
        }
    }
}

/// A call's outcome within its limits.
#[derive(Debug)]
pub(crate) struct Fitted {
    pub(crate) outcome: Result<ToolOutput, ToolError>,
    /// What was there before the text was cut; `None` if it was not.
    pub(crate) whole: Option<UncutOutput>,
}

/// Whether the outcome is within its limits, including the message and hints of an error. The data
/// of a success was checked before ([`oversized`]).
pub(crate) fn allows(outcome: &Result<ToolOutput, ToolError>, limits: OutputLimits) -> bool {
    match outcome {
        Ok(output) => text_fits(output, limits.chars),
        Err(error) => {
            let partial = error.partial();
            let data = partial.and_then(ToolOutput::data);
            error_fits(error, limits.chars)
                && data.is_none_or(|data| json_bytes(data) <= limits.data_bytes)
        }
    }
}

/// Fits an outcome to its limits: text is cut, including that of an error and its partial output.
/// Data is never cut: if it exceeds its limit, it goes to the spill store, and the error says
/// where.
pub(crate) async fn fit_outcome(
    outcome: Result<ToolOutput, ToolError>,
    limits: OutputLimits,
    place: Option<SpillTarget<'_>>,
) -> Fitted {
    match outcome {
        Ok(output) => {
            let (output, whole) = fit_text(output, limits.chars, place).await;
            Fitted { outcome: Ok(output), whole }
        }
        Err(error) => {
            let error = fit_data(error, limits.data_bytes, place).await;
            if error_fits(&error, limits.chars) {
                return Fitted { outcome: Err(error), whole: None };
            }
            let mut whole = UncutOutput::of_error(&error);
            whole.spill(place).await;
            let mut error = whole.cut_error(error, limits.chars);
            if let Some(handle) = whole.handle() {
                error = error.with_note(KEPT_OUTPUT, handle.to_string());
            }
            Fitted { outcome: Err(error), whole: Some(whole) }
        }
    }
}

/// Removes oversized data from an error's partial output.
async fn fit_data(mut error: ToolError, limit: usize, place: Option<SpillTarget<'_>>) -> ToolError {
    let Some(partial) = error.take_partial() else { return error };
    let Some(data) = partial.exact_data().filter(|data| data_bytes(data) > limit) else {
        return error.with_partial(partial);
    };
    if let Some(hint) = put_data(data, place).await {
        error = error.with_hint(hint);
    }
    let rest = without_data(&partial);
    if rest.is_empty() && rest.meta().is_empty() { error } else { error.with_partial(rest) }
}

/// The error for data of `size` bytes that exceeds `limit`. It carries the complete output;
/// [`fit_outcome`] stores the data where the model can read it.
pub(crate) fn oversized(output: ToolOutput, size: usize, limit: usize) -> ToolError {
    ToolError::new(
        ErrorKind::InvalidOutput,
        format!("the result's data is {size} bytes, more than the limit of {limit}"),
    )
    .with_hint("Ask for less at a time.")
    .with_partial(output)
}

/// Bytes of the data as compact JSON.
pub(crate) fn data_bytes(data: &Data) -> usize {
    if data.is_rounded() { data.to_json().len() } else { json_bytes(data.value()) }
}

/// Bytes of the value as compact JSON, without writing it anywhere.
pub(crate) fn json_bytes(value: &Value) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        // A value that cannot be serialized cannot be sent, so no limit allows it.
        Err(_) => usize::MAX,
    }
}

async fn fit_text(
    output: ToolOutput,
    budget: usize,
    place: Option<SpillTarget<'_>>,
) -> (ToolOutput, Option<UncutOutput>) {
    if text_fits(&output, budget) {
        return (output, None);
    }
    let mut whole = UncutOutput::of(&output);
    whole.spill(place).await;
    let mut cut = output.replace_content(whole.cut(budget));
    if let Some(handle) = whole.handle() {
        cut = cut.with_meta(KEPT_OUTPUT, handle.to_string());
    }
    (cut, Some(whole))
}

/// The number of bytes is an upper bound of the characters, so most outputs need no counting.
fn text_fits(output: &ToolOutput, budget: usize) -> bool {
    if output.content().is_empty() {
        // The model reads the data as JSON.
        return output.exact_data().is_none_or(|data| {
            data_bytes(data) <= budget || UncutOutput::of(output).chars() <= budget
        });
    }
    let parts = || output.content().iter().map(text_of);
    parts().map(str::len).sum::<usize>() <= budget
        || parts().map(|text| text.chars().count()).sum::<usize>() <= budget
}

/// The same for an error, whose message and hints count as text.
fn error_fits(error: &ToolError, budget: usize) -> bool {
    let texts = || error.hints().iter().map(String::as_str).chain([error.message()]);
    let own = texts().map(str::len).sum::<usize>();
    let own = if own <= budget / 2 { own } else { texts().map(|text| text.chars().count()).sum() };
    let left = budget.saturating_sub(own);
    own <= budget.max(OWN_CHARS) && error.partial().is_none_or(|partial| text_fits(partial, left))
}

fn text_of(part: &Content) -> &str {
    match part {
        Content::Text(text) | Content::TextFile { text, .. } => text,
        _ => "",
    }
}

fn without_data(output: &ToolOutput) -> ToolOutput {
    let mut rest = ToolOutput::new().replace_content(output.content().to_vec());
    for (key, value) in output.meta() {
        rest = rest.with_meta(key.as_str(), value.clone());
    }
    rest
}

/// Stores data in the spill store; returns a hint how to read it.
async fn put_data(data: &Data, place: Option<SpillTarget<'_>>) -> Option<String> {
    let place = place?;
    match place.put(Spilled::json(data.to_json())).await {
        Ok(handle) => Some(format!(
            "The data is kept as JSON text: call {READ_OUTPUT} with {{\"handle\":\"{handle}\"}} to \
             read it page by page."
        )),
        Err(error) => {
            tracing::warn!(%error, "an output's data was not kept");
            None
        }
    }
}

#[cfg(test)]
mod tests;
