//! One call as an item of a response's output.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolcrib_tool::CallId;

use super::kind::{CallKind, Status};
use super::numbering::ItemPosition;

/// `container_id` of a code interpreter's item. The API runs code in containers and clients expect the field; here code
/// runs in a process that leaves nothing behind.
const CONTAINER: &str = "local";

/// The key of a custom tool's input.
const CUSTOM_INPUT: &str = "input_data";

/// An item that is not finished.
#[derive(Debug, Clone)]
pub(super) struct CallItem {
    pub(super) place: ItemPosition,
    pub(super) call_id: CallId,
    pub(super) name: Arc<str>,
    pub(super) kind: CallKind,
    pub(super) status: Status,
    /// The model's text, in the form in which this kind streams it.
    pub(super) written: String,
    /// The arguments as JSON text; absent until they are complete.
    pub(super) arguments: Option<String>,
    /// A local shell's command.
    pub(super) action: Option<Value>,
    /// How many intermediate pictures were sent.
    pub(super) partial_images: u64,
    /// The result of the call, if the item has a field for it.
    pub(super) outcome: Option<Value>,
    /// The request for approval that allowed the call.
    pub(super) approval: Option<String>,
    /// Whether the server runs the call, whatever its kind.
    pub(super) runs_here: bool,
}

impl CallItem {
    /// The item as JSON.
    pub(super) fn to_value(&self) -> Value {
        let mut item = Map::new();
        let mut put = |key: &str, value: Value| {
            item.insert(key.to_owned(), value);
        };
        put("id", (&*self.place.item_id).into());
        put("type", self.kind.as_str().into());
        put("status", self.status.as_str().into());
        let written = || Value::from(self.written.as_str());
        let outcome = || self.outcome.clone().unwrap_or_default();
        match &self.kind {
            CallKind::Function => {
                put("call_id", self.call_id.as_str().into());
                put("name", (&*self.name).into());
                put("arguments", written());
            }
            CallKind::Custom => {
                put("call_id", self.call_id.as_str().into());
                put("name", (&*self.name).into());
                put("input", written());
            }
            CallKind::FileSearch => {
                put("queries", self.queries().into());
                put("results", outcome());
            }
            CallKind::WebSearch => {
                let queries = self.queries();
                let mut action = json!({
                    "type": "search",
                    "query": queries.first().cloned().unwrap_or_default(),
                    "queries": queries,
                });
                if let Some(sources) = &self.outcome {
                    action["sources"] = sources.clone();
                }
                put("action", action);
            }
            CallKind::ImageGeneration => put("result", outcome()),
            CallKind::CodeInterpreter => {
                put("code", written());
                put("container_id", CONTAINER.into());
                put("outputs", outcome());
            }
            CallKind::Mcp { server_label } => {
                put("server_label", (&**server_label).into());
                put("name", (&*self.name).into());
                put("arguments", written());
                let failed = matches!(self.status, Status::Failed | Status::Incomplete);
                put("output", if failed { Value::Null } else { outcome() });
                put("error", if failed { outcome() } else { Value::Null });
                put("approval_request_id", self.approval.as_deref().into());
            }
            CallKind::LocalShell => {
                put("call_id", self.call_id.as_str().into());
                put("action", self.action.clone().unwrap_or_default());
            }
        }
        Value::Object(item)
    }

    /// The queries of a search: the arguments' `query`, and each of their `queries`.
    fn queries(&self) -> Vec<String> {
        let Some(arguments) = self.arguments.as_deref().and_then(object) else {
            return Vec::new();
        };
        let one = arguments.get("query");
        let several = arguments.get("queries").and_then(Value::as_array).into_iter().flatten();
        one.into_iter().chain(several).filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// The known arguments as JSON text.
    pub(super) fn arguments_text(&self) -> String {
        match (&self.arguments, &self.kind) {
            (Some(arguments), _) => arguments.clone(),
            (None, CallKind::Function | CallKind::Mcp { .. }) => self.written.clone(),
            (None, _) => String::new(),
        }
    }
}

/// Complete arguments in the form in which this kind streams them.
pub(super) fn written(kind: &CallKind, arguments: &str) -> String {
    let text_at =
        |key: &str| object(arguments).and_then(|given| Some(given.get(key)?.as_str()?.to_owned()));
    match kind {
        CallKind::Custom => text_at(CUSTOM_INPUT).unwrap_or_else(|| arguments.to_owned()),
        CallKind::CodeInterpreter => text_at("code").unwrap_or_else(|| arguments.to_owned()),
        _ => arguments.to_owned(),
    }
}

fn object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}
