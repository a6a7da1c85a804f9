//! What the parts of a message mean: items, stop reasons and usage.

use std::borrow::Cow;

use toolcrib_json::Cursor;

use super::super::item::{ModelCall, View};
use super::super::json::{member, object, objects, required_text, text, whole};
use super::super::{ModelError, StopReason, Usage};
use super::{REASONING_DETAILS, REASONING_TEXTS};

/// The view of a fragment: a call, a message, or the members for reasoning.
pub(in super::super) fn view(item: Cursor<'_>) -> Result<View, ModelError> {
    if let Some((body, key)) = call_body(item) {
        let body = object(body)?;
        let arguments = arguments(body, key)?.unwrap_or_default();
        let is_custom = key == "input";
        return Ok(View::Call(ModelCall {
            id: required_text(item, "id")?.into_owned().into(),
            name: required_text(body, "name")?.into_owned(),
            arguments: if arguments.trim().is_empty() && !is_custom {
                "{}".to_owned()
            } else {
                arguments.into_owned()
            },
            is_custom,
        }));
    }
    if item.get("role").is_none() {
        return Ok(View::Reasoning { text: reasoning_text(item)? });
    }
    let content = content(item)?;
    let refusal = text(item, "refusal")?.filter(|refusal| !refusal.is_empty());
    let is_refusal = content.is_empty() && refusal.is_some();
    let text = if is_refusal { refusal.unwrap_or_default().into_owned() } else { content };
    Ok(View::Message { text, phase: None, is_refusal })
}

/// The member with a call's name and arguments, and the key of its arguments.
pub(super) fn call_body(call: Cursor<'_>) -> Option<(Cursor<'_>, &'static str)> {
    let function = member(call, "function").map(|body| (body, "arguments"));
    function.or_else(|| member(call, "custom").map(|body| (body, "input")))
}

/// A call's arguments: a string, or, from some servers, the JSON itself.
pub(super) fn arguments<'a>(
    body: Cursor<'a>,
    key: &str,
) -> Result<Option<Cow<'a, str>>, ModelError> {
    let Some(arguments) = member(body, key) else { return Ok(None) };
    match arguments.as_str() {
        Some(text) => Ok(Some(text)),
        None => object(arguments)
            .map(|object| Some(object.source().into()))
            .map_err(|_| ModelError::field(arguments, "must be a string with JSON, or an object")),
    }
}

/// The text of `content`: a string, or the texts of a list of parts.
pub(super) fn content(message: Cursor<'_>) -> Result<String, ModelError> {
    let mut all = String::new();
    parts(message, |part| match part {
        Part::Text(text) => all.push_str(&text),
        Part::Reasoning(_) => {}
    })?;
    Ok(all)
}

/// A part of `content`.
pub(super) enum Part<'a> {
    Text(Cow<'a, str>),
    Reasoning(Cow<'a, str>),
}

/// The parts of `content`; a string is one part.
pub(super) fn parts<'a>(
    message: Cursor<'a>,
    mut each: impl FnMut(Part<'a>),
) -> Result<(), ModelError> {
    let Some(content) = member(message, "content") else { return Ok(()) };
    if let Some(text) = content.as_str() {
        each(Part::Text(text));
        return Ok(());
    }
    let parts = objects(message, "content")
        .map_err(|_| ModelError::field(content, "must be a string or a list of parts"))?;
    for part in parts {
        let part = part?;
        if let Some(text) = text(part, "text")? {
            each(Part::Text(text));
        }
        // Mistral's models think in parts of their own.
        for thought in objects(part, "thinking")? {
            if let Some(text) = text(thought?, "text")? {
                each(Part::Reasoning(text));
            }
        }
    }
    Ok(())
}

/// The reasoning of a message as text.
fn reasoning_text(message: Cursor<'_>) -> Result<String, ModelError> {
    for key in REASONING_TEXTS {
        if let Some(text) = text(message, key)? {
            return Ok(text.into_owned());
        }
    }
    let mut all = String::new();
    for detail in objects(message, REASONING_DETAILS)? {
        let detail = detail?;
        for key in ["text", "summary"] {
            all.push_str(&text(detail, key)?.unwrap_or_default());
        }
    }
    Ok(all)
}

/// The reason that a choice names; `None` while the model still writes.
pub(super) fn stop(choice: Cursor<'_>) -> Result<Option<StopReason>, ModelError> {
    let Some(reason) = text(choice, "finish_reason")? else { return Ok(None) };
    Ok(Some(match reason.to_ascii_lowercase().as_str() {
        "" | "null" => return Ok(None),
        "stop" | "end_turn" | "stop_sequence" | "eos" | "eos_token" | "complete" | "completed" => {
            StopReason::End
        }
        "tool_calls" | "tool_call" | "tool_use" | "function_call" => StopReason::Calls,
        "length" | "max_tokens" | "model_length" => StopReason::Length,
        "content_filter" | "safety" | "recitation" => StopReason::Filter,
        "refusal" => StopReason::Refused,
        _ => StopReason::Other(reason.into_owned()),
    }))
}

/// The tokens of a body or an event.
pub(super) fn usage(body: Cursor<'_>) -> Result<Option<Usage>, ModelError> {
    let place = member(body, "usage").or_else(|| member(member(body, "x_groq")?, "usage"));
    let Some(usage) = place else { return Ok(None) };
    let usage = object(usage)?;
    let input = member(usage, "prompt_tokens_details");
    let output = member(usage, "completion_tokens_details");
    let detail = |place: Option<Cursor<'_>>, key: &str| match place {
        Some(place) => whole(place, key),
        None => Ok(None),
    };
    let cached = match detail(input, "cached_tokens")? {
        Some(cached) => Some(cached),
        None => whole(usage, "prompt_cache_hit_tokens")?,
    };
    Ok(Some(Usage {
        input: whole(usage, "prompt_tokens")?.unwrap_or_default(),
        cached_input: cached.unwrap_or_default(),
        cache_write: detail(input, "cache_write_tokens")?.unwrap_or_default(),
        output: whole(usage, "completion_tokens")?.unwrap_or_default(),
        reasoning: detail(output, "reasoning_tokens")?.unwrap_or_default(),
    }))
}
