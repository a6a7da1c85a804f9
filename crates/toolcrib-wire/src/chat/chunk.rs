//! Writes a chat completion, in chunks or at once.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolcrib_tool::CallId;

use super::completion::{ChatCall, FinishReason, usage_value};
use crate::api::{ApiError, SSE_DONE};
use crate::model::Usage;

/// Writes one chat completion.
///
/// Every method returns the server-sent events to send, each whole: write each with one write. For an answer that is not
/// streamed, the same methods collect it, and [`into_completion`](Self::into_completion) gives it.
///
/// ```
/// use toolcrib_wire::chat::{ChatWriter, FinishReason};
///
/// let mut writer = ChatWriter::new("chatcmpl-1", 0, "coder", false);
/// let chunks = writer.text("Hello.");
/// assert_eq!(chunks.len(), 2); // the role comes first
/// assert!(chunks[1].starts_with("data: {") && chunks[1].ends_with("}\n\n"));
/// let end = writer.finish(FinishReason::Stop, None);
/// assert_eq!(end[1], "data: [DONE]\n\n");
/// ```
#[derive(Debug, Clone)]
pub struct ChatWriter {
    id: String,
    created: u64,
    model: String,
    include_usage: bool,
    has_begun: bool,
    is_over: bool,
    text: String,
    refusal: String,
    reasoning: String,
    /// The calls for the client, in order.
    calls: Vec<ChatCall>,
    /// Their positions.
    positions: HashMap<CallId, usize>,
}

impl ChatWriter {
    /// A writer for an answer that was begun at this time, in Unix seconds.
    pub fn new(
        id: impl Into<String>,
        created: u64,
        model: impl Into<String>,
        include_usage: bool,
    ) -> Self {
        Self {
            id: id.into(),
            created,
            model: model.into(),
            include_usage,
            has_begun: false,
            is_over: false,
            text: String::new(),
            refusal: String::new(),
            reasoning: String::new(),
            calls: Vec::new(),
            positions: HashMap::new(),
        }
    }

    /// The answer begins. Every other method does it too.
    pub fn begin(&mut self) -> Vec<String> {
        let mut out = Vec::new();
        self.start(&mut out);
        out
    }

    fn start(&mut self, out: &mut Vec<String>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            out.push(self.delta(&json!({"role": "assistant", "content": ""}), None));
        }
    }

    /// A piece of the text.
    pub fn text(&mut self, delta: &str) -> Vec<String> {
        self.piece("content", delta)
    }

    /// A piece of the text with which the model refuses.
    pub fn refusal(&mut self, delta: &str) -> Vec<String> {
        self.piece("refusal", delta)
    }

    /// A piece of the model's reasoning, in the member that many servers and clients have for it.
    pub fn reasoning(&mut self, delta: &str) -> Vec<String> {
        self.piece("reasoning_content", delta)
    }

    fn piece(&mut self, key: &'static str, delta: &str) -> Vec<String> {
        let mut out = Vec::new();
        if delta.is_empty() || self.is_over {
            return out;
        }
        self.start(&mut out);
        match key {
            "content" => self.text.push_str(delta),
            "refusal" => self.refusal.push_str(delta),
            _ => self.reasoning.push_str(delta),
        }
        out.push(self.delta(&json!({ key: delta }), None));
        out
    }

    /// The model calls a function of the client.
    pub fn call(&mut self, call_id: &CallId, name: &str) -> Vec<String> {
        self.begin_call(call_id, name, false)
    }

    /// The model calls a custom tool of the client.
    pub fn custom_call(&mut self, call_id: &CallId, name: &str) -> Vec<String> {
        self.begin_call(call_id, name, true)
    }

    fn begin_call(&mut self, call_id: &CallId, name: &str, is_custom: bool) -> Vec<String> {
        let mut out = Vec::new();
        if self.is_over || self.positions.contains_key(call_id) {
            return out;
        }
        self.start(&mut out);
        let index = self.calls.len();
        let call = ChatCall {
            id: call_id.as_str().to_owned(),
            name: name.to_owned(),
            text: String::new(),
            is_custom,
        };
        let mut value = call.to_value("");
        value["index"] = index.into();
        self.positions.insert(call_id.clone(), index);
        self.calls.push(call);
        out.push(self.delta(&json!({"tool_calls": [value]}), None));
        out
    }

    /// A piece of the arguments of a call that has begun, or of the text of a custom tool.
    pub fn call_arguments(&mut self, call_id: &CallId, delta: &str) -> Vec<String> {
        let Some(&index) = self.positions.get(call_id) else { return Vec::new() };
        if self.is_over || delta.is_empty() {
            return Vec::new();
        }
        let Some(call) = self.calls.get_mut(index) else { return Vec::new() };
        call.text.push_str(delta);
        let (kind, key) = call.keys();
        let delta = json!({"tool_calls": [{"index": index, kind: {key: delta}}]});
        vec![self.delta(&delta, None)]
    }

    /// The arguments of a call are complete; what was not sent of them follows. Should they have been corrected since, the
    /// client keeps what it has.
    pub fn end_arguments(&mut self, call_id: &CallId, arguments: &str) -> Vec<String> {
        let position = self.positions.get(call_id).copied();
        let Some(call) = position.and_then(|index| self.calls.get(index)) else {
            return Vec::new();
        };
        let rest = arguments.strip_prefix(call.text.as_str()).unwrap_or_default().to_owned();
        self.call_arguments(call_id, &rest)
    }

    /// The answer is over: its reason, the tokens if the client wants them, and the last line.
    pub fn finish(&mut self, reason: FinishReason, usage: Option<&Usage>) -> Vec<String> {
        let mut out = Vec::new();
        if self.is_over {
            return out;
        }
        self.start(&mut out);
        self.is_over = true;
        out.push(self.delta(&json!({}), Some(reason)));
        if self.include_usage {
            let mut chunk = self.envelope("chat.completion.chunk");
            chunk["choices"] = json!([]);
            chunk["usage"] = usage.map(usage_value).into();
            out.push(frame(&chunk));
        }
        out.push(SSE_DONE.to_owned());
        out
    }

    /// The answer fails. The line that ends a whole answer does not follow.
    pub fn fail(&mut self, error: &ApiError) -> Vec<String> {
        if std::mem::replace(&mut self.is_over, true) {
            return Vec::new();
        }
        vec![frame(&error.to_value())]
    }

    /// The completion as one object.
    pub fn into_completion(self, reason: FinishReason, usage: Option<&Usage>) -> Value {
        let text = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
        let has_content = !self.text.is_empty() || self.calls.is_empty() && self.refusal.is_empty();
        let mut message = json!({
            "role": "assistant",
            "content": has_content.then_some(&self.text),
            "refusal": text(&self.refusal),
            "annotations": [],
        });
        if !self.reasoning.is_empty() {
            message["reasoning_content"] = self.reasoning.as_str().into();
        }
        if !self.calls.is_empty() {
            message["tool_calls"] =
                self.calls.iter().map(|call| call.to_value(&call.text)).collect();
        }
        let mut completion = self.envelope("chat.completion");
        completion["choices"] = json!([{
            "index": 0,
            "message": message,
            "logprobs": null,
            "finish_reason": reason.as_str(),
        }]);
        completion["usage"] = usage.map(usage_value).into();
        completion
    }

    fn envelope(&self, object: &str) -> Value {
        json!({"id": self.id, "object": object, "created": self.created, "model": self.model})
    }

    fn delta(&self, delta: &Value, reason: Option<FinishReason>) -> String {
        let mut chunk = self.envelope("chat.completion.chunk");
        chunk["choices"] = json!([{
            "index": 0,
            "delta": delta,
            "logprobs": null,
            "finish_reason": reason.map(FinishReason::as_str),
        }]);
        if self.include_usage {
            chunk["usage"] = Value::Null;
        }
        frame(&chunk)
    }
}

/// A server-sent event with this data.
fn frame(data: &Value) -> String {
    format!("data: {data}\n\n")
}
