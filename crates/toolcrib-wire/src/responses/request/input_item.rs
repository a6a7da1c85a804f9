//! One item of a request's input.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolcrib_tool::{CallId, ErrorKind, ToolError, ToolResult};

use super::super::ToolAnswer;
use super::super::prefixes::prefix_of;
use crate::model::{Input, Item, ModelCall, ModelItem, Wire};

/// One item of a request's input: the client's JSON, and what it means.
///
/// Nothing in it is trusted: calls are history, whoever made them, and are never run; an approval counts only if the
/// request for it is in our own journal.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct InputItem {
    /// The item's position in the input, from 0.
    pub index: usize,
    /// What it means.
    pub kind: InputKind,
    raw: Arc<str>,
}

/// What an [`InputItem`] means.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum InputKind {
    /// A message from a user or from the program.
    Message(Input),
    /// What the model said before.
    Assistant {
        /// The text.
        text: String,
        /// `commentary` or `final_answer`, if it is marked.
        phase: Option<String>,
        /// Whether the text is a refusal.
        is_refusal: bool,
    },
    /// The model's reasoning. It goes back only to the provider from which it came, and only encrypted.
    Reasoning {
        /// Whether it has encrypted content.
        is_encrypted: bool,
    },
    /// A call that the model made before, to a function, a custom tool or the client's shell.
    Call(ModelCall),
    /// The output of a call that the client ran.
    Output(Submission),
    /// A decision about a call that waits for approval.
    Approval(ApprovalAnswer),
    /// An earlier conversation in short, sealed by the server that compacted it.
    Compaction {
        /// The sealed content.
        encrypted_content: String,
    },
    /// An item of an earlier response.
    Reference {
        /// Its id.
        id: String,
    },
    /// A call that a server ran before, with its answer.
    Ran {
        /// The id of the call's item.
        id: String,
        /// The tool.
        name: String,
        /// The arguments as JSON text.
        arguments: String,
        /// The output, or the text of the error.
        output: String,
        /// Whether it failed.
        is_error: bool,
    },
    /// Anything else. It is listed, but goes to no model.
    Other {
        /// Its `type`.
        kind: String,
    },
}

/// The output of a call that the client ran.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Submission {
    /// The item's position in the input.
    pub index: usize,
    /// Which item it is.
    pub kind: SubmissionKind,
    /// The call's id and the output.
    pub answer: ToolAnswer,
    /// The tool, if the call is in the same input: then both are history. Without it, the call has to be an
    /// outstanding one of an earlier response.
    pub tool: Option<String>,
}

/// The item in which an output came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubmissionKind {
    /// `function_call_output`, or a message with the role `tool`.
    Function,
    /// `custom_tool_call_output`.
    Custom,
    /// `local_shell_call_output`.
    LocalShell,
}

/// A decision about a call that waits for approval.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalAnswer {
    /// The item's position in the input.
    pub index: usize,
    /// The id of the request for approval.
    pub request_id: String,
    /// Whether the call may run.
    pub approve: bool,
    /// Words for the model.
    pub reason: Option<String>,
}

impl InputItem {
    pub(crate) fn new(index: usize, kind: InputKind, raw: impl Into<Arc<str>>) -> Self {
        Self { index, kind, raw: raw.into() }
    }

    /// The client's JSON. A text input, and a message of chat completions, have become an item of the Responses API.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// The item as it is listed: with an id, a type, a status where the type has one, and content in parts. `new_id`
    /// makes an id with this prefix for an item that has none.
    pub fn to_value(&self, new_id: &mut dyn FnMut(&str) -> String) -> Value {
        let mut item: Map<String, Value> = serde_json::from_str(&self.raw).unwrap_or_default();
        let kind = match item.get("type").and_then(Value::as_str) {
            Some(kind) => kind.to_owned(),
            None => "message".to_owned(),
        };
        let kind = kind.strip_prefix("toolcrib:").unwrap_or(&kind);
        item.insert("type".to_owned(), kind.into());
        let has_id = item.get("id").and_then(Value::as_str).is_some_and(|id| !id.is_empty());
        if !has_id {
            item.insert("id".to_owned(), new_id(prefix_of(kind)).into());
        }
        let has_status = !matches!(
            kind,
            "reasoning"
                | "compaction"
                | "item_reference"
                | "mcp_list_tools"
                | "mcp_approval_request"
                | "mcp_approval_response"
        );
        if has_status && item.get("status").is_none_or(Value::is_null) {
            item.insert("status".to_owned(), "completed".into());
        }
        if kind == "message"
            && let Some(Value::String(text)) = item.get("content")
        {
            let part = if matches!(self.kind, InputKind::Assistant { .. }) {
                json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
            } else {
                json!({"type": "input_text", "text": text})
            };
            item.insert("content".to_owned(), json!([part]));
        }
        Value::Object(item)
    }

    /// The item for a conversation with a model. None for what the caller has to look after itself: outputs of calls
    /// that are not in the same input, approvals, compactions and references.
    ///
    /// `source` is that of the request to the model
    /// ([`RequestHead::source`](crate::model::RequestHead::source)): encrypted reasoning goes back to it. Everything else
    /// becomes what it means.
    pub fn items(&self, source: &str) -> Vec<Item> {
        match &self.kind {
            InputKind::Message(input) => vec![Item::Input(input.clone())],
            InputKind::Assistant { text, phase, is_refusal } => {
                said(&assistant(text, phase.as_deref(), *is_refusal)).into_iter().collect()
            }
            InputKind::Reasoning { is_encrypted: true } => {
                let item = ModelItem::read(Wire::Responses, source, Arc::clone(&self.raw));
                item.map(Item::Model).into_iter().collect()
            }
            InputKind::Call(call) => said(&call_value(call)).into_iter().collect(),
            InputKind::Output(Submission { answer, tool: Some(tool), .. }) => {
                vec![result(&answer.call_id, tool, Ok(answer.output.clone()))]
            }
            InputKind::Ran { id, name, arguments, output, is_error } => {
                let call = ModelCall {
                    id: CallId::new(id.as_str()),
                    name: name.clone(),
                    arguments: arguments.clone(),
                    is_custom: false,
                };
                let outcome = if *is_error {
                    Err(ToolError::new(ErrorKind::Execution, output.clone()))
                } else {
                    Ok(output.as_str().into())
                };
                let answer = result(&call.id, name, outcome);
                said(&call_value(&call)).into_iter().chain([answer]).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// What a model said, without a source: every provider receives what it means.
fn said(value: &Value) -> Option<Item> {
    let item = ModelItem::read(Wire::Responses, "client", value.to_string());
    item.ok().map(Item::Model)
}

fn assistant(text: &str, phase: Option<&str>, is_refusal: bool) -> Value {
    let part = if is_refusal {
        json!({"type": "refusal", "refusal": text})
    } else {
        json!({"type": "output_text", "text": text})
    };
    let mut item = json!({"type": "message", "role": "assistant", "content": [part]});
    if let Some(phase) = phase {
        item["phase"] = phase.into();
    }
    item
}

fn call_value(call: &ModelCall) -> Value {
    let (kind, key) =
        if call.is_custom { ("custom_tool_call", "input") } else { ("function_call", "arguments") };
    let mut item = json!({"type": kind, "call_id": call.id.as_str(), "name": call.name});
    item[key] = call.arguments.as_str().into();
    item
}

fn result(id: &CallId, tool: &str, outcome: Result<toolcrib_tool::ToolOutput, ToolError>) -> Item {
    let (id, tool) = (id.clone(), tool.to_owned());
    match outcome {
        Ok(output) => ToolResult::success(id, tool, output, Duration::ZERO).into(),
        Err(error) => ToolResult::failure(id, tool, error, Duration::ZERO).into(),
    }
}
