//! How it stands with an upstream, for people.

use std::time::Duration;

use super::failure::Failure;

/// How it stands with an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpstreamStatus {
    /// Its name.
    pub name: String,
    /// Whether it is connected.
    pub state: UpstreamState,
    /// How many tools of it are known, those that cannot be called now included.
    pub tools: usize,
    /// How many of these were refused, or changed since they were first seen.
    pub disabled: usize,
}

/// Whether an upstream is connected.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamState {
    /// The first connection is being made.
    Connecting,
    /// Its tools can be called.
    Connected,
    /// It cannot be used now.
    Down {
        /// Why, as a clause about the server.
        reason: String,
        /// What the server itself or the system said, for the operator only.
        detail: Option<String>,
        /// How long after that it is tried again; never, where there is none.
        retry: Option<Duration>,
    },
}

impl UpstreamState {
    /// A stable word: `connecting`, `connected` or `down`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Down { .. } => "down",
        }
    }

    pub(crate) fn down(failure: Failure, retry: Option<Duration>) -> Self {
        Self::Down { reason: failure.reason, detail: failure.detail, retry }
    }
}
