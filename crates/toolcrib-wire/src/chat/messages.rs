//! The messages of a chat as items of the Responses API.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolcrib_json::{Cursor, Kind};
use toolcrib_tool::{CallId, Content, ToolOutput};

use super::request::old_call;
use crate::api::ApiError;
use crate::api::fields::{
    data, list, member, members, missing, object, one_of, param, required_id, text, unknown,
    unsupported, wrong_type, wrong_value,
};
use crate::model::{Input, ModelCall, Role};
use crate::responses::request::{Inputs, part_at};
use crate::responses::{InputItem, InputKind, Submission, SubmissionKind, ToolAnswer};

/// Reads the messages. Members without effect are added to `unused`.
pub(super) fn messages(
    value: Cursor<'_>,
    unused: &mut Vec<String>,
) -> Result<Vec<InputItem>, ApiError> {
    if list(value)?.next().is_none() {
        return Err(wrong_value(value, "must have at least one message"));
    }
    let mut inputs = Inputs::default();
    for (index, message) in list(value)?.enumerate() {
        let message = object(message)?;
        let role = member(message, "role").ok_or_else(|| missing(message, "role"))?;
        let role = one_of(role, &["system", "developer", "user", "assistant", "tool", "function"])?;
        check_members(message, role, unused)?;
        let items = match role {
            "assistant" => assistant(message)?,
            "tool" => vec![tool(index, message, &inputs)?],
            "user" => vec![said(message, role, Role::User)?],
            _ => vec![said(message, role, Role::System)?],
        };
        for (kind, raw) in items {
            inputs
                .push(index, kind, raw.to_string())
                .map_err(|problem| wrong_value(message, problem))?;
        }
    }
    Ok(inputs.into_items())
}

/// The members that a message of this role may have.
fn check_members(
    message: Cursor<'_>,
    role: &str,
    unused: &mut Vec<String>,
) -> Result<(), ApiError> {
    for (key, value) in members(message)? {
        match (&*key, role) {
            ("role", "function") => {
                return Err(unsupported(value, "send outputs with the role `tool`"));
            }
            ("role" | "content", _)
            | ("tool_calls" | "refusal", "assistant")
            | ("tool_call_id", "tool") => {}
            ("function_call", "assistant") => return Err(old_call(message, value)),
            ("audio", "assistant") => {
                return Err(unsupported(value, "send its transcript as `content`"));
            }
            // A name of the speaker has no place in other APIs, and reasoning goes back to nobody.
            ("name", _)
            | (
                "reasoning" | "reasoning_content" | "reasoning_details" | "annotations",
                "assistant",
            ) => {
                let place = format!("messages.{key}");
                if !unused.contains(&place) {
                    unused.push(place);
                }
            }
            _ => return Err(unknown(value)),
        }
    }
    Ok(())
}

type Read = (InputKind, Value);

fn said(message: Cursor<'_>, name: &str, role: Role) -> Result<Read, ApiError> {
    let value = member(message, "content").ok_or_else(|| missing(message, "content"))?;
    let (content, parts) = content(value)?;
    let raw = json!({"type": "message", "role": name, "content": parts});
    Ok((InputKind::Message(Input { role, content }), raw))
}

/// The content, and the same as the Responses API writes it.
fn content(value: Cursor<'_>) -> Result<(Vec<Content>, Value), ApiError> {
    if let Some(text) = value.as_str() {
        return Ok((vec![Content::text(&*text)], text.into()));
    }
    if value.kind() != Kind::Array {
        return Err(wrong_type(value, "a string or a list of parts"));
    }
    let mut all = Vec::with_capacity(value.len());
    let mut parts = Vec::with_capacity(value.len());
    for part in list(value)? {
        let (content, part) = content_part(part)?;
        all.push(content);
        parts.push(part);
    }
    Ok((all, parts.into()))
}

fn content_part(part: Cursor<'_>) -> Result<(Content, Value), ApiError> {
    let part = object(part)?;
    let kind = member(part, "type").ok_or_else(|| missing(part, "type"))?;
    let inner = |key: &'static str| {
        let inner = member(part, key).ok_or_else(|| missing(part, key))?;
        Ok::<_, ApiError>((inner, data(object(inner)?)?))
    };
    let value = match one_of(kind, &["text", "image_url", "input_audio", "file"])? {
        "text" => {
            let words = text(member(part, "text").ok_or_else(|| missing(part, "text"))?)?;
            json!({"type": "input_text", "text": words})
        }
        "image_url" => {
            let (_, image) = inner("image_url")?;
            json!({"type": "input_image", "image_url": image["url"], "detail": image["detail"]})
        }
        "input_audio" => {
            let (at, audio) = inner("input_audio")?;
            let bytes = audio["data"].as_str().and_then(|data| STANDARD.decode(data).ok());
            let bytes = bytes.ok_or_else(|| wrong_value(at, "must have `data` in base64"))?;
            let format = audio["format"].as_str().filter(|format| matches!(*format, "wav" | "mp3"));
            let format =
                format.ok_or_else(|| wrong_value(at, "must have the `format` wav or mp3"))?;
            let mime_type = if format == "mp3" { "audio/mpeg" } else { "audio/wav" };
            let content = Content::Audio { data: bytes, mime_type: mime_type.to_owned() };
            return Ok((content, json!({"type": "input_audio", "input_audio": audio})));
        }
        _ => {
            let (_, mut file) = inner("file")?;
            file["type"] = "input_file".into();
            file
        }
    };
    Ok((part_at(&value, &param(part))?, value))
}

/// The words of a message, and its calls.
fn assistant(message: Cursor<'_>) -> Result<Vec<Read>, ApiError> {
    let (mut words, mut refused) = (String::new(), String::new());
    if let Some(refusal) = member(message, "refusal") {
        refused = text(refusal)?;
    }
    if let Some(value) = member(message, "content") {
        if value.kind().is_string() {
            words = text(value)?;
        } else {
            for part in list(value)? {
                let part = object(part)?;
                let kind = member(part, "type").ok_or_else(|| missing(part, "type"))?;
                let key = one_of(kind, &["text", "refusal"])?;
                let piece = text(member(part, key).ok_or_else(|| missing(part, key))?)?;
                if key == "text" { words.push_str(&piece) } else { refused.push_str(&piece) }
            }
        }
    }
    let mut items = Vec::new();
    let is_refusal = words.is_empty() && !refused.is_empty();
    let said = if is_refusal { refused } else { words };
    let calls = member(message, "tool_calls");
    if calls.is_none() && member(message, "content").is_none() && !is_refusal {
        return Err(missing(message, "content"));
    }
    if !said.is_empty() {
        let part = if is_refusal {
            json!({"type": "refusal", "refusal": said})
        } else {
            json!({"type": "output_text", "text": said, "annotations": [], "logprobs": []})
        };
        let raw = json!({"type": "message", "role": "assistant", "content": [part]});
        items.push((InputKind::Assistant { text: said, phase: None, is_refusal }, raw));
    }
    if let Some(calls) = calls {
        for call in list(calls)? {
            items.push(self::call(call)?);
        }
    }
    Ok(items)
}

fn call(call: Cursor<'_>) -> Result<Read, ApiError> {
    let call = object(call)?;
    let id = required_id(call, "id")?;
    let kind = match member(call, "type") {
        Some(kind) => one_of(kind, &["function", "custom"])?,
        None => "function",
    };
    let of = object(member(call, kind).ok_or_else(|| missing(call, kind))?)?;
    let name = required_id(of, "name")?;
    let is_custom = kind == "custom";
    let (item, key) =
        if is_custom { ("custom_tool_call", "input") } else { ("function_call", "arguments") };
    let mut arguments = member(of, key).map(text).transpose()?.unwrap_or_default();
    if !is_custom && arguments.trim().is_empty() {
        "{}".clone_into(&mut arguments);
    }
    let mut raw = json!({"type": item, "call_id": id, "name": name});
    raw[key] = arguments.as_str().into();
    let call = ModelCall { id: CallId::new(id.as_str()), name, arguments, is_custom };
    Ok((InputKind::Call(call), raw))
}

fn tool(index: usize, message: Cursor<'_>, before: &Inputs) -> Result<Read, ApiError> {
    let id = required_id(message, "tool_call_id")?;
    let value = member(message, "content").ok_or_else(|| missing(message, "content"))?;
    let (content, parts) = content(value)?;
    let raw = json!({"type": "function_call_output", "call_id": id, "output": parts});
    let output = match <[Content; 1]>::try_from(content) {
        Ok([Content::Text(text)]) => ToolOutput::from(text),
        Ok([only]) => ToolOutput::new().with_content(only),
        Err(several) => several.into_iter().fold(ToolOutput::new(), ToolOutput::with_content),
    };
    let submission = Submission {
        index,
        kind: SubmissionKind::Function,
        tool: before.tool_of(&id),
        answer: ToolAnswer { call_id: CallId::new(id.as_str()), output },
    };
    Ok((InputKind::Output(submission), raw))
}
