//! How it stands with an upstream, for people.

use std::time::Duration;

use serde_json::{Value, json};

use crate::upstream::connection::failure::Failure;

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
    /// How many of its tools are not taken because it lists more than [`UPSTREAM_TOOLS_MAX`](super::UPSTREAM_TOOLS_MAX), at least.
    pub left_out: usize,
}

impl UpstreamStatus {
    /// It as JSON, for operators: `name`, `state`, `tools`, `disabled`, `left_out`, and while it is down
    /// `reason`, `detail`, `said` and `retry_seconds`.
    pub fn to_value(&self) -> Value {
        let mut record = json!({
            "name": self.name,
            "state": self.state.as_str(),
            "tools": self.tools,
            "disabled": self.disabled,
            "left_out": self.left_out,
        });
        if let UpstreamState::Down { reason, detail, said, retry } = &self.state {
            record["reason"] = reason.as_str().into();
            record["detail"] = detail.as_deref().into();
            if !said.is_empty() {
                record["said"] = said.as_slice().into();
            }
            record["retry_seconds"] = retry.map(|retry| retry.as_secs_f64()).into();
        }
        record
    }
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
        /// The last lines that the server said, where they are several, for the operator only.
        said: Vec<String>,
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
        Self::Down { reason: failure.reason, detail: failure.detail, said: failure.said, retry }
    }
}
