//! The status of an upstream, for people.

use std::time::Duration;

use serde_json::{Value, json};

use crate::upstream::connection::failure::Failure;
use crate::upstream::settings::selection::UnmatchedSetting;

/// The status of an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpstreamStatus {
    /// Its name.
    pub name: String,
    /// Whether the upstream is connected.
    pub state: UpstreamState,
    /// How many of its tools are known, including those that cannot be called now.
    pub tools: usize,
    /// How many of these were refused or have changed since they were first seen.
    pub disabled: usize,
    /// A lower bound of how many tools are left out because it lists more than
    /// [`UPSTREAM_TOOLS_MAX`](super::UPSTREAM_TOOLS_MAX).
    pub left_out: usize,
    /// Filters and overrides that match nothing of what the server lists.
    pub unmatched: Vec<UnmatchedSetting>,
}

impl UpstreamStatus {
    /// The status as JSON, for operators: `name`, `state`, `tools`, `disabled`, `left_out`, `unmatched`
    /// (filters and overrides that match nothing, as texts with their places), and while it is down
    /// `reason`, `detail`, `said` and `retry_seconds`.
    pub fn to_value(&self) -> Value {
        let mut record = json!({
            "name": self.name,
            "state": self.state.as_str(),
            "tools": self.tools,
            "disabled": self.disabled,
            "left_out": self.left_out,
        });
        if !self.unmatched.is_empty() {
            record["unmatched"] = self.unmatched.iter().map(ToString::to_string).collect();
        }
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
    /// The first connection attempt is under way, or an earlier upstream that may offer names of its tools
    /// is still connecting.
    Connecting,
    /// Its tools can be called.
    Connected,
    /// The upstream cannot be used now.
    Down {
        /// Why, as a clause about the server.
        reason: String,
        /// What the server or the system reported, for the operator only.
        detail: Option<String>,
        /// The last lines that the server wrote, if there are several; for the operator only.
        said: Vec<String>,
        /// How long after that the next attempt is made; `None` if there is none.
        retry: Option<Duration>,
    },
}

impl UpstreamState {
    /// A stable identifier: `connecting`, `connected` or `down`.
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
