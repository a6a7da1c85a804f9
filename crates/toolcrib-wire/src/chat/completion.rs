//! A chat completion as one object.

use serde_json::{Value, json};

use crate::model::{StopReason, Usage};

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FinishReason {
    /// It is whole.
    Stop,
    /// A limit was reached.
    Length,
    /// The client has to run the calls.
    ToolCalls,
    /// A content filter stopped it.
    ContentFilter,
}

impl FinishReason {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
        }
    }

    /// The reason for why a model stopped. Whether there are calls for the client is to be looked up first.
    pub const fn of_stop(stop: &StopReason) -> Self {
        match stop {
            StopReason::Length | StopReason::ContextExceeded => Self::Length,
            StopReason::Filter => Self::ContentFilter,
            _ => Self::Stop,
        }
    }
}

/// A call for the client.
#[derive(Debug, Clone)]
pub(super) struct ChatCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) text: String,
    pub(super) is_custom: bool,
}

impl ChatCall {
    /// The kind of the call, and the key of the model's text.
    pub(super) const fn keys(&self) -> (&'static str, &'static str) {
        if self.is_custom { ("custom", "input") } else { ("function", "arguments") }
    }

    /// The call with this text.
    pub(super) fn to_value(&self, text: &str) -> Value {
        let (kind, key) = self.keys();
        let mut call = json!({"id": self.id, "type": kind});
        call[kind] = json!({"name": self.name});
        call[kind][key] = text.into();
        call
    }
}

/// The tokens as chat completions write them.
pub(super) fn usage_value(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total(),
        "prompt_tokens_details": {"cached_tokens": usage.cached_input},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}
