//! Errors of a stream of events.

use std::error::Error;
use std::fmt;

use toolcrib_tool::CallId;

/// A step that would make the stream inconsistent. The stream stays unchanged and can continue.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamError {
    /// The call.
    pub call_id: CallId,
    /// The reason.
    pub reason: StreamErrorKind,
}

/// Why a step was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamErrorKind {
    /// The call was never prepared and has no item.
    NotPrepared,
    /// The call already has an item.
    AlreadyPrepared,
    /// The call's item is done.
    AlreadyDone,
    /// More arguments came after they were complete.
    ArgumentsDone,
    /// The next step came before the arguments were complete.
    ArgumentsOpen,
    /// An item of this type does not have this step.
    NoSuchStep {
        /// The item's `type`.
        item: &'static str,
        /// The step.
        step: &'static str,
    },
    /// The arguments of a `local_shell_call` are not a valid command.
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
                f.write_str("it already has an item; give every call a unique id")
            }
            StreamErrorKind::AlreadyDone => {
                f.write_str("its item is done; it takes no more events")
            }
            StreamErrorKind::ArgumentsDone => f.write_str("its arguments are complete already"),
            StreamErrorKind::ArgumentsOpen => {
                f.write_str("its arguments are not complete; complete them before the next step")
            }
            StreamErrorKind::NoSuchStep { item, step } => {
                write!(f, "a {item} {step}")
            }
            StreamErrorKind::Command(why) => write!(
                f,
                "its arguments are not a valid command: \
                 {why}"
            ),
        }
    }
}

impl Error for StreamError {}
