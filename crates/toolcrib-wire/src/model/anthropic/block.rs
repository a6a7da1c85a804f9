//! What blocks, stop reasons and usage mean.

use toolcrib_json::{Cursor, Kind, parse};

use super::super::item::{ModelCall, View};
use super::super::json::{ObjectWriter, member, required_text, text, whole};
use super::super::{ModelError, StopReason, Usage};
use super::INVALID_JSON;

/// The view of a content block.
pub(in super::super) fn view(block: Cursor<'_>) -> Result<View, ModelError> {
    let kind = required_text(block, "type")?;
    Ok(match &*kind {
        "text" => View::Message {
            text: required_text(block, "text")?.into_owned(),
            phase: None,
            is_refusal: false,
        },
        "thinking" => {
            View::Reasoning { text: text(block, "thinking")?.unwrap_or_default().into_owned() }
        }
        "redacted_thinking" => View::Reasoning { text: String::new() },
        "tool_use" => View::Call(ModelCall {
            id: required_text(block, "id")?.into_owned().into(),
            name: required_text(block, "name")?.into_owned(),
            arguments: arguments(block)?,
            is_custom: false,
        }),
        _ => View::Other { kind: kind.into_owned() },
    })
}

/// The arguments as the model wrote them.
fn arguments(block: Cursor<'_>) -> Result<String, ModelError> {
    let Some(input) = member(block, "input") else { return Ok("{}".to_owned()) };
    if input.kind() != Kind::Object {
        return Err(ModelError::field(input, "must be an object"));
    }
    let invalid = input.get(INVALID_JSON).filter(|_| input.len() == 1).and_then(Cursor::as_str);
    Ok(invalid.map_or_else(|| input.source().to_owned(), Into::into))
}

/// Arguments as an `input`: the same text if it is an object.
pub(in crate::model) fn input(arguments: &str) -> String {
    if arguments.trim().is_empty() {
        return "{}".to_owned();
    }
    if parse(arguments).is_ok_and(|tape| tape.root().kind() == Kind::Object) {
        return arguments.to_owned();
    }
    let mut json = String::with_capacity(arguments.len() + 24);
    let mut object = ObjectWriter::new(&mut json);
    object.string(INVALID_JSON, arguments);
    object.end();
    json
}

/// The reason in `place`; `None` while the model still writes.
pub(super) fn stop(place: Cursor<'_>) -> Result<Option<StopReason>, ModelError> {
    let Some(reason) = text(place, "stop_reason")? else { return Ok(None) };
    Ok(Some(match &*reason {
        "" => return Ok(None),
        "end_turn" | "stop_sequence" => StopReason::End,
        "tool_use" => StopReason::Calls,
        "max_tokens" => StopReason::Length,
        "model_context_window_exceeded" => StopReason::ContextExceeded,
        "refusal" => StopReason::Refused,
        "pause_turn" => StopReason::Paused,
        _ => StopReason::Other(reason.into_owned()),
    }))
}

/// The tokens of a message, as its events report them one after another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    uncached: Option<u64>,
    read: Option<u64>,
    written: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
}

impl Tokens {
    /// Takes the `usage` of a message or an event. Counts are totals; a later 0 does not replace a count, since some
    /// gateways report the input in the first event and others in the last.
    pub(super) fn take(&mut self, place: Cursor<'_>) -> Result<bool, ModelError> {
        let Some(usage) = member(place, "usage") else { return Ok(false) };
        let update = |count: &mut Option<u64>, new: Option<u64>| {
            if new.is_some_and(|new| new > 0 || count.is_none()) {
                *count = new;
            }
        };
        update(&mut self.uncached, whole(usage, "input_tokens")?);
        update(&mut self.read, whole(usage, "cache_read_input_tokens")?);
        update(&mut self.written, whole(usage, "cache_creation_input_tokens")?);
        update(&mut self.output, whole(usage, "output_tokens")?);
        if let Some(details) = member(usage, "output_tokens_details") {
            update(&mut self.thinking, whole(details, "thinking_tokens")?);
        }
        Ok(true)
    }

    /// The counts in the form that all providers share; `None` if there were none.
    pub(super) fn usage(&self) -> Option<Usage> {
        if *self == Self::default() {
            return None;
        }
        let [uncached, read, written, output, thinking] =
            [self.uncached, self.read, self.written, self.output, self.thinking]
                .map(Option::unwrap_or_default);
        Some(Usage {
            input: uncached.saturating_add(read).saturating_add(written),
            cached_input: read,
            cache_write: written,
            output,
            reasoning: thinking,
        })
    }
}
