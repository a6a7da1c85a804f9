//! Reads a completion that was not streamed.

use std::borrow::Cow;

use toolcrib_json::{Cursor, Kind};

use super::super::item::{ModelItem, View};
use super::super::json::{ObjectWriter, member, object, objects, text};
use super::super::limits::Budget;
use super::super::{Answer, DecoderSettings, ModelError, ProviderFailure, StopReason, Wire};
use super::calls::Calls;
use super::message::{content, stop, usage};
use super::reasoning::Reasoning;
use super::{REASONING_DETAILS, REASONING_TEXTS};

/// Reads the body of a completion. Only its first choice counts.
pub(in super::super) fn read_completion(
    body: Cursor<'_>,
    settings: &DecoderSettings,
) -> Result<Answer, ModelError> {
    if let Some(failure) = failure(body) {
        return Err(failure);
    }
    let choice = objects(body, "choices")?
        .next()
        .ok_or_else(|| ModelError::member(body, "choices", "must have at least one choice"))??;
    let message = member(choice, "message")
        .ok_or_else(|| ModelError::member(choice, "message", "is missing; it must be an object"))?;
    let message = object(message)?;
    let stop = stop(choice)?.ok_or_else(|| {
        ModelError::member(
            choice,
            "finish_reason",
            "is missing; it tells whether the answer is whole",
        )
    })?;
    // Checked here, so that an error names the field in the body.
    content(message)?;
    text(message, "refusal")?;
    let (reasoning, calls) = parts(message, settings)?;
    let raws = [reasoning, said(message)];
    Ok(Answer {
        id: id(body, "id")?,
        model: id(body, "model")?,
        items: items(raws.into_iter().flatten().chain(calls), settings)?,
        usage: usage(body)?,
        stop: checked(stop)?,
    })
}

/// The reasoning and the calls of a message, as JSON.
fn parts(
    message: Cursor<'_>,
    settings: &DecoderSettings,
) -> Result<(Option<String>, Vec<String>), ModelError> {
    let mut budget = Budget::new(&settings.limits);
    let mut reasoning = Reasoning::default();
    reasoning.take(message, &settings.limits, &mut budget, &mut Vec::new())?;
    let mut calls = Calls::new(settings);
    for entry in objects(message, "tool_calls")? {
        calls.whole(entry?, &mut budget)?;
    }
    if let Some(function) = member(message, "function_call").filter(|_| calls.is_empty()) {
        calls.legacy_delta(function, &mut budget, &mut Vec::new())?;
    }
    Ok((reasoning.finish(), calls.finish(&mut Vec::new())?))
}

/// The message without its reasoning and calls, if it says anything.
fn said(message: Cursor<'_>) -> Option<String> {
    let is_elsewhere = |key: &str| {
        REASONING_TEXTS.contains(&key)
            || matches!(key, REASONING_DETAILS | "tool_calls" | "function_call")
    };
    let mut json = String::new();
    let mut object = ObjectWriter::new(&mut json);
    if message.get("role").is_none() {
        object.string("role", "assistant");
    }
    let mut is_said = false;
    for (name, value) in message.members() {
        let key = name.key_text();
        if is_elsewhere(&key) {
            continue;
        }
        let is_blank = value.kind() == Kind::Null
            || (value.is_empty() && matches!(value.kind(), Kind::Array | Kind::Object))
            || value.equals("");
        is_said |= key != "role" && !is_blank;
        object.raw(&key, value.source());
    }
    object.end();
    is_said.then_some(json)
}

/// The failure in a body or an event that has no answer.
pub(super) fn failure(body: Cursor<'_>) -> Option<ModelError> {
    let says_error = |key: &str| body.get(key).is_some_and(|value| value.equals("error"));
    let is_failure = member(body, "error").is_some()
        || (body.get("choices").is_none()
            && (says_error("object")
                || says_error("type")
                || (body.get("message").is_some() && body.get("code").is_some())));
    is_failure.then(|| ModelError::provider(ProviderFailure::of(None, body)))
}

/// A reason that says that the provider failed is a failure.
pub(super) fn checked(stop: StopReason) -> Result<StopReason, ModelError> {
    match &stop {
        StopReason::Other(reason) if reason == "error" => Err(ModelError::provider(
            ProviderFailure::read(None, b"the answer ended with the finish reason \"error\""),
        )),
        _ => Ok(stop),
    }
}

/// A text member that names something; `None` if it is empty.
pub(super) fn id(body: Cursor<'_>, key: &str) -> Result<Option<String>, ModelError> {
    Ok(text(body, key)?.filter(|id| !id.is_empty()).map(Cow::into_owned))
}

/// The items of an answer from their JSON.
pub(super) fn items(
    raws: impl IntoIterator<Item = String>,
    settings: &DecoderSettings,
) -> Result<Vec<ModelItem>, ModelError> {
    raws.into_iter().map(|raw| ModelItem::read(Wire::Chat, &*settings.source, raw)).collect()
}

/// Whether an item is a message, which a conversation writes member by member.
pub(super) fn is_message(item: &ModelItem) -> bool {
    matches!(item.view(), View::Message { .. })
}
