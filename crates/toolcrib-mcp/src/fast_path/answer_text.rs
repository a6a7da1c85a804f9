//! Answers as they are sent.

use std::sync::OnceLock;

use bytes::Bytes;
use rmcp::model::{ErrorData, ListToolsResult, ServerResult};
use serde::Serialize;
use toolcrib_core::Turn;
use toolcrib_tool::{Data, ToolResult};
use toolcrib_wire::{McpCallToolResult, McpData};

use crate::call::unknown_name;
use crate::transport::exact_numbers;

/// Appends the answer to a call, for a client whose revision takes `takes`.
pub(crate) fn call(text: &mut Vec<u8>, id: &str, turn: &Turn, result: &ToolResult, takes: McpData) {
    if let Some(error) = unknown_name(turn, result) {
        return answer(text, id, "error", &error);
    }
    let schema = turn.describe(result.tool()).and_then(|known| known.output_schema());
    let said = McpCallToolResult::new(result, schema, takes);
    if result.exact_data().is_some_and(Data::is_rounded) {
        let begun = text.len();
        answer(text, id, "result", &said.protected());
        if let Some(restored) = exact_numbers::restored(&text[begun..]) {
            text.truncate(begun);
            text.extend_from_slice(restored.as_bytes());
        }
        return;
    }
    answer(text, id, "result", &said);
}

fn answer(text: &mut Vec<u8>, id: &str, what: &str, said: &impl Serialize) {
    let begun = text.len();
    open(text, id, what);
    if let Err(error) = serde_json::to_writer(&mut *text, said) {
        text.truncate(begun);
        open(text, id, "error");
        let error = ErrorData::internal_error(format!("the result cannot be sent: {error}"), None);
        // A number and two texts always serialise.
        let _ = serde_json::to_writer(&mut *text, &error);
    }
    text.push(b'}');
}

/// Appends an answer up to what is said.
fn open(text: &mut Vec<u8>, id: &str, what: &str) {
    for part in [r#"{"jsonrpc":"2.0","id":"#, id, ",\"", what, "\":"] {
        text.extend_from_slice(part.as_bytes());
    }
}

/// The first page of a list of tools as it is written, made at its first use.
#[derive(Debug, Default)]
pub(crate) struct WrittenList(OnceLock<Option<Bytes>>);

impl WrittenList {
    /// The page's text; `None` if there is none, or it cannot be written.
    pub(crate) fn get(
        &self,
        takes: McpData,
        page: impl FnOnce() -> Option<ListToolsResult>,
    ) -> Option<Bytes> {
        let write = || {
            let mut result = ServerResult::ListToolsResult(page()?);
            // As the library does where an answer passes it.
            match takes {
                McpData::Objects => result.strip_result_type_for_legacy_peer(),
                McpData::Any => result.fill_missing_cache_hints(),
            }
            serde_json::to_vec(&result).ok().map(Bytes::from)
        };
        self.0.get_or_init(write).clone()
    }
}

/// The answer to a list, in its three pieces.
pub(crate) fn list(id: &str, page: Bytes) -> [Bytes; 3] {
    let mut opening = Vec::new();
    open(&mut opening, id, "result");
    [opening.into(), page, Bytes::from_static(b"}")]
}
