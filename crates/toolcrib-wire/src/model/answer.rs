//! A complete answer of a model.

use serde::{Deserialize, Serialize};

use super::item::{ModelCall, ModelItem, View};

/// A complete answer: a stream that was cut never becomes one.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// The provider's id of the answer, if it has one.
    pub id: Option<String>,
    /// The exact model that answered, if the provider names it.
    pub model: Option<String>,
    /// What the model said, in order. Push them into the [`Conversation`](super::Conversation) unchanged.
    pub items: Vec<ModelItem>,
    /// The tokens, if the provider counted them.
    pub usage: Option<Usage>,
    /// Why the model stopped.
    pub stop: StopReason,
}

impl Answer {
    /// Every call that the model made. Whether they may run is in [`runnable_calls`](Self::runnable_calls).
    pub fn calls(&self) -> impl Iterator<Item = &ModelCall> {
        self.items.iter().filter_map(|item| match item.view() {
            View::Call(call) => Some(call),
            _ => None,
        })
    }

    /// The calls that may run: all of them after a regular end, none if the answer was stopped (by its length, a
    /// filter or an unknown reason), because the last ones may be incomplete.
    pub fn runnable_calls(&self) -> impl Iterator<Item = &ModelCall> {
        let all = self.stop.completes_calls();
        self.calls().filter(move |_| all)
    }

    /// The text of all messages.
    pub fn text(&self) -> String {
        let texts = self.items.iter().filter_map(|item| match item.view() {
            View::Message { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// It had said everything, or met a stop sequence.
    End,
    /// It waits for the results of its calls. Some providers report [`End`](Self::End) although there are calls: read
    /// them from the items.
    Calls,
    /// The limit on output tokens was reached.
    Length,
    /// The conversation filled the model's context.
    ContextExceeded,
    /// A content filter of the provider stopped it.
    Filter,
    /// The model refused to answer.
    Refused,
    /// The provider paused a long answer: send the conversation again, and it goes on.
    Paused,
    /// A reason that this crate does not know, as the provider spells it.
    Other(String),
}

impl StopReason {
    /// Whether calls of an answer that stopped for this reason are complete.
    pub fn completes_calls(&self) -> bool {
        matches!(self, Self::End | Self::Calls)
    }
}

/// The tokens of one answer, counted alike for every provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the request, cached ones included.
    pub input: u64,
    /// Tokens of the request that came from the provider's cache.
    pub cached_input: u64,
    /// Tokens of the request that were written to the provider's cache.
    pub cache_write: u64,
    /// Tokens of the answer, reasoning included.
    pub output: u64,
    /// Tokens of the answer that are reasoning, where the provider tells them apart.
    pub reasoning: u64,
}

impl Usage {
    /// Tokens of the request and the answer.
    pub const fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}
