//! The message of a caught panic.

use std::any::Any;
use std::fmt;

use toolcrib_tool::{ErrorKind, ToolError};

/// A panic's message, for the operator's log.
#[derive(Debug)]
pub(crate) struct PanicMessage(String);

impl PanicMessage {
    pub(crate) fn of(panic: &(dyn Any + Send)) -> Self {
        let said = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no message");
        Self(said.to_owned())
    }

    /// The error for a call, with a text for the model and the message for the operator.
    pub(crate) fn into_error(self, kind: ErrorKind, text: &str) -> ToolError {
        ToolError::new(kind, text).with_source(self)
    }
}

impl fmt::Display for PanicMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "panicked: {}", self.0)
    }
}

impl std::error::Error for PanicMessage {}
