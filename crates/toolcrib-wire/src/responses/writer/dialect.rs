//! What differs between OpenAI's API and the Open Responses specification, and what clients see only if they ask.

use serde_json::{Map, Value};

use super::super::kind::CallKind;
use super::super::request::Include;

/// Which of two specifications a response follows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// OpenAI's API, with all its types.
    #[default]
    OpenAi,
    /// The Open Responses specification: a call that ran here is a `function_call` with its `function_call_output`, and
    /// types that the specification does not have begin with `toolcrib:`.
    Open,
}

/// The types of items that the Open Responses specification has.
const OPEN_ITEMS: [&str; 5] =
    ["message", "function_call", "function_call_output", "reasoning", "compaction"];

impl Dialect {
    /// As which item a call appears.
    pub(super) fn kind(self, kind: CallKind) -> CallKind {
        match (self, kind) {
            (Self::Open, CallKind::Mcp { .. }) => CallKind::Function,
            (_, kind) => kind,
        }
    }

    /// The name of an event.
    pub(super) fn event_name(self, name: &str) -> String {
        let is_common = name.starts_with("response.output_item.")
            || name.starts_with("response.function_call_arguments.");
        match self {
            Self::Open if !is_common => {
                format!("toolcrib:{}", name.strip_prefix("response.").unwrap_or(name))
            }
            _ => name.to_owned(),
        }
    }

    /// The item as this client sees it.
    pub(super) fn item(self, mut item: Value, include: Include) -> Value {
        let Some(members) = item.as_object_mut() else { return item };
        match members.get("type").and_then(Value::as_str) {
            Some("file_search_call") if !include.file_search_results => clear(members, "results"),
            Some("code_interpreter_call") if !include.code_outputs => clear(members, "outputs"),
            Some("web_search_call") if !include.web_search_sources => {
                if let Some(action) = members.get_mut("action").and_then(Value::as_object_mut) {
                    action.remove("sources");
                }
            }
            Some("reasoning") if !include.encrypted_reasoning => {
                members.remove("encrypted_content");
            }
            Some("mcp_call") => {
                members.entry("approval_request_id").or_insert(Value::Null);
            }
            _ => {}
        }
        if self == Self::Open
            && let Some(Value::String(kind)) = members.get_mut("type")
            && !OPEN_ITEMS.contains(&kind.as_str())
        {
            kind.insert_str(0, "toolcrib:");
        }
        item
    }
}

fn clear(members: &mut Map<String, Value>, key: &str) {
    members.insert(key.to_owned(), Value::Null);
}
