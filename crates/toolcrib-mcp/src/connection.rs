//! What is remembered of a client as long as it is connected.
#![expect(deprecated, reason = "older revisions have log levels, and clients that set them")]

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use rmcp::model::LoggingLevel;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Resources that one client may follow.
const FOLLOWED_MAX: usize = 1_000;

/// One connection, or one session of several.
pub(crate) struct Connection {
    ended: CancellationToken,
    _ended_when_dropped: DropGuard,
    level: Mutex<Option<LoggingLevel>>,
    followed: Mutex<BTreeSet<String>>,
}

impl Connection {
    /// One that ends at the latest when the server does.
    pub(crate) fn new(closing: &CancellationToken) -> Self {
        let ended = closing.child_token();
        let guard = ended.clone().drop_guard();
        Self {
            ended,
            _ended_when_dropped: guard,
            level: Mutex::new(None),
            followed: Mutex::default(),
        }
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

    /// The resources whose changes the client is told of.
    pub(crate) fn followed(&self) -> BTreeSet<String> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Follows a resource from now on; false where it follows as many as it may.
    pub(crate) fn follow(&self, uri: String) -> bool {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.contains(&uri) || (followed.len() < FOLLOWED_MAX && followed.insert(uri))
    }

    /// Follows a resource no longer.
    pub(crate) fn unfollow(&self, uri: &str) {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }
}
