//! What a request contains beside the conversation.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::Export;

/// The part of a request that stays the same during a conversation. It is written before the conversation, so that
/// consecutive requests begin with the same bytes and the provider's prompt cache applies.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RequestHead {
    /// The model, under the provider's name for it.
    pub model: String,
    /// Where the request goes, as in [`DecoderSettings::source`](super::DecoderSettings::source).
    pub source: Arc<str>,
    /// Whether the answer is streamed (default true).
    pub stream: bool,
    /// The instructions at the start of the conversation.
    pub instructions: Option<String>,
    /// The tools, exported for [`Wire::target`](super::Wire::target) or its strict form. Those that the export refused
    /// are absent.
    pub tools: Vec<Value>,
    /// Whether the model may make several calls at once; `None` leaves it to the provider.
    pub parallel_calls: Option<bool>,
    /// The most tokens of an answer; `None` leaves it to the provider, or is 8,192 for Anthropic, which needs a limit.
    pub max_output_tokens: Option<u64>,
    /// The sampling temperature; `None` leaves it to the provider.
    pub temperature: Option<f64>,
    /// How much the model reasons, in the provider's words, for example `low` or `high`. `None` leaves it to the
    /// provider; an older model of Anthropic takes a budget as `thinking` in [`extra`](Self::extra) instead.
    pub reasoning_effort: Option<String>,
    /// A key that is the same for all requests of the conversation and helps OpenAI to find its cache.
    pub cache_key: Option<String>,
    /// Whether Anthropic is asked to cache the tools, the instructions and the conversation (default true). Other
    /// providers cache without being asked.
    pub prompt_cache: bool,
    /// Whether the model reads pictures, sounds and files (default true). If not, they are named in brackets.
    pub accepts_media: bool,
    /// What differs between servers of chat completions.
    pub chat: ChatDialect,
    /// Further members of the request, for example `top_p` or `service_tier`. They cannot replace members that this
    /// crate writes.
    pub extra: Map<String, Value>,
}

/// What differs between servers of chat completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch in a provider's settings")]
pub struct ChatDialect {
    /// The role of the instructions is `developer` instead of `system` (default false).
    pub developer_role: bool,
    /// The limit on tokens is called `max_tokens` instead of `max_completion_tokens` (default false).
    pub max_tokens: bool,
    /// A streamed answer is asked to end with its usage by `stream_options` (default true).
    pub stream_usage: bool,
    /// Reasoning is sent back to its source (default true). Some servers need it between calls, others refuse it.
    pub send_reasoning: bool,
}

impl Default for ChatDialect {
    fn default() -> Self {
        Self { developer_role: false, max_tokens: false, stream_usage: true, send_reasoning: true }
    }
}

impl RequestHead {
    /// A head for `model`; the request goes to `source`.
    pub fn new(model: impl Into<String>, source: impl Into<Arc<str>>) -> Self {
        Self {
            model: model.into(),
            source: source.into(),
            stream: true,
            instructions: None,
            tools: Vec::new(),
            parallel_calls: None,
            max_output_tokens: None,
            temperature: None,
            reasoning_effort: None,
            cache_key: None,
            prompt_cache: true,
            accepts_media: true,
            chat: ChatDialect::default(),
            extra: Map::new(),
        }
    }

    /// The head with these tools.
    #[must_use]
    pub fn with_tools(mut self, export: &Export) -> Self {
        self.tools.clone_from(&export.tools);
        self
    }

    /// The head with these instructions.
    #[must_use]
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }
}

/// Whether the model may, must or must not make calls. It may change from request to request without touching the
/// bytes before it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must answer without calls.
    None,
    /// The model must make at least one call.
    Required,
    /// The model must call this tool, under the provider's name for it.
    Tool(String),
}

/// Why a request cannot be made. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestError {
    /// Where: a JSON pointer into the pushed items or the head's extra members; empty for the whole conversation.
    pub at: String,
    /// The problem and what to do.
    pub message: String,
}

impl RequestError {
    pub(super) fn new(at: impl Into<String>, message: impl Into<String>) -> Self {
        Self { at: at.into(), message: message.into() }
    }

    /// An extra member would replace one that this crate writes.
    pub(super) fn own_member(key: &str) -> Self {
        let key = key.replace('~', "~0").replace('/', "~1");
        Self::new(format!("/extra/{key}"), "is written from another field of the head; remove it")
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "`{}`: {}", self.at, self.message)
        }
    }
}

impl Error for RequestError {}
