//! What is remembered of a client as long as it is connected.
#![expect(deprecated, reason = "older revisions have log levels, and clients that set them")]

use std::sync::{Mutex, PoisonError};

use rmcp::model::LoggingLevel;
use tokio_util::sync::{CancellationToken, DropGuard};

/// One connection, or one session of several.
pub(crate) struct Connection {
    ended: CancellationToken,
    _ended_when_dropped: DropGuard,
    level: Mutex<Option<LoggingLevel>>,
}

impl Connection {
    /// One that ends at the latest when the server does.
    pub(crate) fn new(closing: &CancellationToken) -> Self {
        let ended = closing.child_token();
        let guard = ended.clone().drop_guard();
        Self { ended, _ended_when_dropped: guard, level: Mutex::new(None) }
    }

    /// Cancelled when it is over.
    pub(crate) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// From how bad on the client wants to be told; `None` where it never said.
    pub(crate) fn level(&self) -> Option<LoggingLevel> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_level(&self, level: LoggingLevel) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }
}
