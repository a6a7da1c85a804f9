//! What items, stop reasons and usage mean.

use toolcrib_json::Cursor;

use super::super::item::{ModelCall, View};
use super::super::json::{member, object, objects, required_text, text, whole};
use super::super::{ModelError, ProviderFailure, StopReason, Usage};

/// The view of an output item.
pub(in super::super) fn view(item: Cursor<'_>) -> Result<View, ModelError> {
    let kind = match text(item, "type")? {
        Some(kind) => kind,
        // The short form of a message has no type.
        None if item.get("role").is_some() => "message".into(),
        None => return Err(ModelError::member(item, "type", "is missing; it must be a string")),
    };
    Ok(match &*kind {
        "message" => message(item)?,
        "reasoning" => {
            let mut all = String::new();
            for list in ["summary", "content"] {
                for part in objects(item, list)? {
                    all.push_str(&text(part?, "text")?.unwrap_or_default());
                }
            }
            View::Reasoning { text: all }
        }
        "function_call" => {
            let arguments = text(item, "arguments")?.unwrap_or_default();
            let arguments =
                if arguments.trim().is_empty() { "{}".to_owned() } else { arguments.into_owned() };
            View::Call(call(item, arguments, false)?)
        }
        "custom_tool_call" => {
            View::Call(call(item, text(item, "input")?.unwrap_or_default().into_owned(), true)?)
        }
        _ => View::Other { kind: kind.into_owned() },
    })
}

fn call(item: Cursor<'_>, arguments: String, is_custom: bool) -> Result<ModelCall, ModelError> {
    Ok(ModelCall {
        id: required_text(item, "call_id")?.into_owned().into(),
        name: required_text(item, "name")?.into_owned(),
        arguments,
        is_custom,
    })
}

fn message(item: Cursor<'_>) -> Result<View, ModelError> {
    let phase = text(item, "phase")?.map(Into::into);
    if let Some(plain) = item.get("content").and_then(Cursor::as_str) {
        return Ok(View::Message { text: plain.into_owned(), phase, is_refusal: false });
    }
    let mut said = String::new();
    let mut refused = String::new();
    for part in objects(item, "content")? {
        let part = part?;
        said.push_str(&text(part, "text")?.unwrap_or_default());
        refused.push_str(&text(part, "refusal")?.unwrap_or_default());
    }
    let is_refusal = said.is_empty() && !refused.is_empty();
    Ok(View::Message { text: if is_refusal { refused } else { said }, phase, is_refusal })
}

/// Whether the item is a call for us.
pub(super) fn is_call(item: Cursor<'_>) -> bool {
    item.get("type")
        .is_some_and(|kind| kind.equals("function_call") || kind.equals("custom_tool_call"))
}

/// Why a response ended, from its status. A failure is an error.
pub(super) fn stop(response: Cursor<'_>) -> Result<StopReason, ModelError> {
    if member(response, "error").is_some() {
        return Err(ModelError::provider(ProviderFailure::of(None, response)));
    }
    let status = required_text(response, "status")?;
    match &*status {
        "completed" => Ok(StopReason::End),
        "incomplete" => {
            let reason = match member(response, "incomplete_details") {
                Some(details) => text(object(details)?, "reason")?,
                None => None,
            };
            Ok(match reason.as_deref() {
                Some("max_output_tokens") => StopReason::Length,
                Some("content_filter") => StopReason::Filter,
                Some(other) => StopReason::Other(other.to_owned()),
                None => StopReason::Other("incomplete".to_owned()),
            })
        }
        "failed" | "cancelled" => {
            let message = format!("the response has the status \"{status}\"");
            Err(ModelError::provider(ProviderFailure::read(None, message.as_bytes())))
        }
        _ => Err(ModelError::member(
            response,
            "status",
            "must be completed, incomplete, failed or cancelled when the response ends",
        )),
    }
}

/// The tokens of a response.
pub(super) fn usage(response: Cursor<'_>) -> Result<Option<Usage>, ModelError> {
    let Some(usage) = member(response, "usage") else { return Ok(None) };
    let usage = object(usage)?;
    let detail = |place: &str, key: &str| match member(usage, place) {
        Some(place) => whole(place, key),
        None => Ok(None),
    };
    Ok(Some(Usage {
        input: whole(usage, "input_tokens")?.unwrap_or_default(),
        cached_input: detail("input_tokens_details", "cached_tokens")?.unwrap_or_default(),
        cache_write: detail("input_tokens_details", "cache_write_tokens")?.unwrap_or_default(),
        output: whole(usage, "output_tokens")?.unwrap_or_default(),
        reasoning: detail("output_tokens_details", "reasoning_tokens")?.unwrap_or_default(),
    }))
}
