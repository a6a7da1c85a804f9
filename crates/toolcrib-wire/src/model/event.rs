//! What a stream reports while the model still writes.

use toolcrib_tool::CallId;

use super::{StopReason, Usage};

/// A step of an answer that is being streamed, for display only.
///
/// Nothing may run because of an event: a stream that is cut has had events too. The calls of a complete answer are in
/// [`Answer`](super::Answer).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// The answer has begun.
    Started {
        /// The provider's id of the answer, if it has one.
        id: Option<String>,
        /// The exact model that answers, if the provider names it.
        model: Option<String>,
    },
    /// A piece of the answer's text.
    Text {
        /// The piece.
        delta: String,
    },
    /// A piece of the model's reasoning, or of a summary of it.
    Reasoning {
        /// The piece.
        delta: String,
    },
    /// A piece of the text with which the model refuses.
    Refusal {
        /// The piece.
        delta: String,
    },
    /// The model has begun a call.
    CallStarted {
        /// The position of the call among the calls of this answer, from 0.
        call: usize,
        /// The id of the call.
        id: CallId,
        /// The tool, under the provider's name for it.
        name: String,
    },
    /// A piece of a call's arguments.
    Arguments {
        /// The position of the call.
        call: usize,
        /// The piece of JSON text, or of free text for a custom tool.
        delta: String,
    },
    /// The arguments of a call are complete. The call may still be lost if the stream is cut.
    CallFinished {
        /// The position of the call.
        call: usize,
    },
    /// The tokens so far. Each report replaces the one before.
    Usage(Usage),
    /// The model stopped, for this reason.
    Stopped(StopReason),
}
