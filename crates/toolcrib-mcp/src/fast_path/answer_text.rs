//! Writes answers as JSON text.

use bytes::Bytes;
use rmcp::model::{CallToolResponse, ErrorCode, ErrorData, ListToolsResult, ServerResult};
use serde::Serialize;
use toolcrib_core::Turn;
use toolcrib_tool::{Data, ToolResult};
use toolcrib_wire::{McpCallToolResult, McpData};

use super::answer::CallAnswer;
use crate::call::unknown_name;
use crate::transport::exact_numbers;

/// The capacity that suffices for most answers, in bytes.
const USUAL_LENGTH: usize = 512;

/// The answer to a completed call, for a client that accepts structured data as `data_form` says.
pub(super) fn call(id: &str, turn: &Turn, result: &ToolResult, data_form: McpData) -> CallAnswer {
    if let Some(error) = unknown_name(turn, result) {
        return failed(id, &error);
    }
    let schema = turn.describe(result.tool()).and_then(|known| known.output_schema());
    let content = McpCallToolResult::new(result, schema, data_form);
    if result.exact_data().is_some_and(Data::is_rounded) {
        return with_exact_numbers(succeeded(id, &content.protected()));
    }
    succeeded(id, &content)
}

/// The answer to a call that was suspended.
pub(super) fn settled(
    id: &str,
    response: Result<CallToolResponse, ErrorData>,
    data_form: McpData,
) -> CallAnswer {
    match response {
        Ok(response) => {
            let mut result = ServerResult::from(response);
            fit(&mut result, data_form);
            with_exact_numbers(succeeded(id, &result))
        }
        Err(error) => {
            // Clients of earlier revisions do not state their capabilities with each request.
            let is_bad_request = data_form == McpData::Any
                && error.code == ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY;
            CallAnswer { is_bad_request, ..failed(id, &error) }
        }
    }
}

/// The answer to a call that ended with a protocol error.
pub(super) fn failed(id: &str, error: &ErrorData) -> CallAnswer {
    // A number and two strings always serialise.
    let text = written(id, "error", error).unwrap_or_default();
    CallAnswer { text, is_bad_request: false }
}

fn succeeded(id: &str, result: &impl Serialize) -> CallAnswer {
    match written(id, "result", result) {
        Ok(text) => CallAnswer { text, is_bad_request: false },
        Err(error) => {
            let error = format!("the result cannot be sent: {error}");
            failed(id, &ErrorData::internal_error(error, None))
        }
    }
}

fn with_exact_numbers(mut answer: CallAnswer) -> CallAnswer {
    if let Some(restored) = exact_numbers::restored(&answer.text) {
        answer.text = restored.into_bytes();
    }
    answer
}

fn written(id: &str, member: &str, value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut text = opening(id, member);
    serde_json::to_writer(&mut text, value)?;
    text.push(b'}');
    Ok(text)
}

/// The start of an answer, up to the value of `result` or `error`.
fn opening(id: &str, member: &str) -> Vec<u8> {
    let mut text = Vec::with_capacity(USUAL_LENGTH);
    for part in [r#"{"jsonrpc":"2.0","id":"#, id, ",\"", member, "\":"] {
        text.extend_from_slice(part.as_bytes());
    }
    text
}

/// Adds the members that the client's revision expects to a result, as the library does.
fn fit(result: &mut ServerResult, data_form: McpData) {
    match data_form {
        McpData::Objects => result.strip_result_type_for_legacy_peer(),
        McpData::Any => result.fill_missing_cache_hints(),
    }
}

/// A page of a tool list as text, if it can be written.
pub(crate) fn page(page: ListToolsResult, data_form: McpData) -> Option<Bytes> {
    let mut result = ServerResult::ListToolsResult(page);
    fit(&mut result, data_form);
    serde_json::to_vec(&result).ok().map(Bytes::from)
}

/// The answer to a list request in three pieces, so that the page is not copied.
pub(super) fn list(id: &str, page: Bytes) -> [Bytes; 3] {
    [opening(id, "result").into(), page, Bytes::from_static(b"}")]
}
