//! What the items of an input mean.

use std::collections::HashMap;

use serde_json::json;
use toolcrib_json::{Cursor, Kind};
use toolcrib_tool::CallId;

use super::super::ToolAnswer;
use super::content::{content, output};
use super::input_item::{ApprovalAnswer, InputKind, Submission, SubmissionKind};
use crate::api::ApiError;
use crate::api::fields::{
    flag, id, list, member, missing, object, one_of, param, required_id, text, unsupported,
    wrong_type,
};
use crate::model::{Input, ModelCall, Role};

/// The names of the tools by the ids of their calls in this input.
pub(super) type Calls = HashMap<String, String>;

/// What an item with a type means; `calls` are those before it.
pub(super) fn kind_of(
    index: usize,
    item: Cursor<'_>,
    calls: &Calls,
) -> Result<InputKind, ApiError> {
    let item = object(item)?;
    let kind = match member(item, "type") {
        Some(kind) => text(kind)?,
        None if item.get("role").is_some() => "message".to_owned(),
        None if item.get("id").is_some() => "item_reference".to_owned(),
        None => return Err(missing(item, "type")),
    };
    Ok(match kind.strip_prefix("toolcrib:").unwrap_or(&kind) {
        "message" => message(item)?,
        "reasoning" => InputKind::Reasoning {
            is_encrypted: member(item, "encrypted_content")
                .is_some_and(|content| content.kind().is_string()),
        },
        "function_call" => InputKind::Call(ModelCall {
            id: call_id(item)?,
            name: required_id(item, "name")?,
            arguments: arguments(item)?,
            is_custom: false,
        }),
        "custom_tool_call" => InputKind::Call(ModelCall {
            id: call_id(item)?,
            name: required_id(item, "name")?,
            arguments: member(item, "input").map(text).transpose()?.unwrap_or_default(),
            is_custom: true,
        }),
        "local_shell_call" => InputKind::Call(shell_call(item)?),
        "function_call_output" => submission(index, item, SubmissionKind::Function, calls)?,
        "custom_tool_call_output" => submission(index, item, SubmissionKind::Custom, calls)?,
        "local_shell_call_output" => submission(index, item, SubmissionKind::LocalShell, calls)?,
        "mcp_approval_response" => InputKind::Approval(ApprovalAnswer {
            index,
            request_id: required_id(item, "approval_request_id")?,
            approve: flag(member(item, "approve").ok_or_else(|| missing(item, "approve"))?)?,
            reason: member(item, "reason").map(text).transpose()?,
        }),
        "compaction" | "compaction_summary" => {
            InputKind::Compaction { encrypted_content: required_id(item, "encrypted_content")? }
        }
        "item_reference" => InputKind::Reference { id: required_id(item, "id")? },
        "mcp_call" => ran(item)?,
        _ => InputKind::Other { kind },
    })
}

fn message(item: Cursor<'_>) -> Result<InputKind, ApiError> {
    let role = member(item, "role").ok_or_else(|| missing(item, "role"))?;
    let said = member(item, "content").ok_or_else(|| missing(item, "content"))?;
    let role = match one_of(role, &["user", "system", "developer", "assistant"])? {
        "user" => Role::User,
        "assistant" => return assistant(item, said),
        _ => Role::System,
    };
    Ok(InputKind::Message(Input { role, content: content(said)? }))
}

fn assistant(item: Cursor<'_>, said: Cursor<'_>) -> Result<InputKind, ApiError> {
    let phase = member(item, "phase")
        .map(|phase| one_of(phase, &["commentary", "final_answer"]))
        .transpose()?
        .map(str::to_owned);
    if let Some(text) = said.as_str() {
        return Ok(InputKind::Assistant { text: text.into_owned(), phase, is_refusal: false });
    }
    if said.kind() != Kind::Array {
        return Err(wrong_type(said, "a string or a list of parts"));
    }
    let (mut words, mut refused) = (String::new(), String::new());
    for part in list(said)? {
        let part = object(part)?;
        let kind = member(part, "type").ok_or_else(|| missing(part, "type"))?;
        let (to, key) = match one_of(kind, &["output_text", "input_text", "text", "refusal"])? {
            "refusal" => (&mut refused, "refusal"),
            _ => (&mut words, "text"),
        };
        to.push_str(&text(member(part, key).ok_or_else(|| missing(part, key))?)?);
    }
    let is_refusal = words.is_empty() && !refused.is_empty();
    Ok(InputKind::Assistant { text: if is_refusal { refused } else { words }, phase, is_refusal })
}

fn call_id(item: Cursor<'_>) -> Result<CallId, ApiError> {
    required_id(item, "call_id").map(|id| CallId::new(id.as_str()))
}

fn arguments(item: Cursor<'_>) -> Result<String, ApiError> {
    let arguments = member(item, "arguments").map(text).transpose()?.unwrap_or_default();
    Ok(if arguments.trim().is_empty() { "{}".to_owned() } else { arguments })
}

fn shell_call(item: Cursor<'_>) -> Result<ModelCall, ApiError> {
    let action = object(member(item, "action").ok_or_else(|| missing(item, "action"))?)?;
    let mut arguments = serde_json::Map::new();
    for (key, value) in crate::api::fields::members(action)? {
        if key != "type" {
            arguments.insert(key.into_owned(), crate::api::fields::data(value)?);
        }
    }
    Ok(ModelCall {
        id: call_id(item)?,
        name: "local_shell".to_owned(),
        arguments: json!(arguments).to_string(),
        is_custom: false,
    })
}

fn submission(
    index: usize,
    item: Cursor<'_>,
    kind: SubmissionKind,
    calls: &Calls,
) -> Result<InputKind, ApiError> {
    // The API names a local shell's call by `id`.
    let named = member(item, "call_id")
        .or_else(|| member(item, "id").filter(|_| kind == SubmissionKind::LocalShell));
    let call_id = id(named.ok_or_else(|| missing(item, "call_id"))?)?;
    let given = member(item, "output").ok_or_else(|| missing(item, "output"))?;
    let tool = calls.get(&call_id).cloned();
    let answer = ToolAnswer { call_id: CallId::new(call_id.as_str()), output: output(given)? };
    Ok(InputKind::Output(Submission { index, kind, answer, tool }))
}

/// A call that a server ran, with its answer; without one it is nothing that a model can read.
fn ran(item: Cursor<'_>) -> Result<InputKind, ApiError> {
    let said = member(item, "output").map(text).transpose()?;
    let error = member(item, "error").map(error_text).transpose()?;
    let (output, is_error) = match (said, error) {
        (_, Some(error)) => (error, true),
        (Some(output), None) => (output, false),
        (None, None) => return Ok(InputKind::Other { kind: "mcp_call".to_owned() }),
    };
    Ok(InputKind::Ran {
        id: required_id(item, "id")?,
        name: required_id(item, "name")?,
        arguments: arguments(item)?,
        output,
        is_error,
    })
}

/// The text of an error: as it is, in its `message`, or in the parts of its `content`.
fn error_text(error: Cursor<'_>) -> Result<String, ApiError> {
    if let Some(text) = error.as_str() {
        return Ok(text.into_owned());
    }
    let error = object(error)?;
    if let Some(message) = member(error, "message") {
        return text(message);
    }
    let mut all = String::new();
    for part in member(error, "content").into_iter().flat_map(Cursor::items) {
        if let Some(part) = member(part, "text") {
            all.push_str(&text(part)?);
        }
    }
    Ok(all)
}

/// Items that ask the server for something that it does not do.
pub(super) fn refuse(item: Cursor<'_>) -> Result<(), ApiError> {
    let kind = member(item, "type").and_then(|kind| Some(kind.as_str()?.into_owned()));
    match kind.as_deref() {
        Some("compaction_trigger") => Err(unsupported(
            item,
            "compact the conversation with POST /v1/responses/compact, or set `context_management`",
        )),
        Some("additional_tools") => Err(unsupported(
            item,
            &format!("send the tools in `tools` instead of `{}`", param(item)),
        )),
        _ => Ok(()),
    }
}
