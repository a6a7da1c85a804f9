//! What a stream of events refuses to say.

use std::error::Error;
use std::fmt;

use toolcrib_tool::CallId;

/// A step that would have made the stream untrue. The stream is as it was before, and goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamError {
    /// The call.
    pub call_id: CallId,
    /// What is wrong with the step.
    pub reason: StreamErrorKind,
}

/// Why a step was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamErrorKind {
    /// The call has no item: it was never prepared.
    NotPrepared,
    /// The call has an item already.
    AlreadyPrepared,
    /// The call's item is done.
    AlreadyDone,
    /// The call's arguments are complete, and more of them came.
    ArgumentsDone,
    /// The call was to go on before its arguments were complete.
    ArgumentsOpen,
    /// An item of this type has no such step.
    NoSuchStep {
        /// The item's `type`.
        item: &'static str,
        /// The step.
        step: &'static str,
    },
    /// The arguments of a `local_shell_call` are no command.
    Command(String),
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {:?}: ", self.call_id.as_str())?;
        match &self.reason {
            StreamErrorKind::NotPrepared => {
                f.write_str("it has no item yet; prepare it before anything else")
            }
            StreamErrorKind::AlreadyPrepared => {
                f.write_str("it has an item already; give every call an id of its own")
            }
            StreamErrorKind::AlreadyDone => {
                f.write_str("its item is done; nothing more can be said of it")
            }
            StreamErrorKind::ArgumentsDone => f.write_str("its arguments are complete already"),
            StreamErrorKind::ArgumentsOpen => {
                f.write_str("its arguments are not complete; say so before the call goes on")
            }
            StreamErrorKind::NoSuchStep { item, step } => {
                write!(f, "a {item} {step}")
            }
            StreamErrorKind::Command(why) => write!(f, "its arguments are no command: {why}"),
        }
    }
}

impl Error for StreamError {}
