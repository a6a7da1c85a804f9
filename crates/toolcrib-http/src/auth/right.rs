//! The rights of clients.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A right of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Right {
    /// List, search, describe and call tools, also over MCP; and in runs of its own identity,
    /// submit the outputs of client tools and answer the questions of tools.
    Call,
    /// Approve and deny waiting calls of any client within its own tenant and toolset; be asked for
    /// approval over MCP; and resolve any waiting call in runs of its own identity.
    Approve,
    /// Read metrics, statistics, the status of files and servers, and the audit log.
    Observe,
    /// Reload the config and the manifests, end reservations of names and pauses of tools, and
    /// watch the events of all calls within its own tenant and toolset.
    Operate,
}

impl Right {
    /// All rights.
    pub const ALL: [Self; 4] = [Self::Call, Self::Approve, Self::Observe, Self::Operate];

    /// The name of the right in a config.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Approve => "approve",
            Self::Observe => "observe",
            Self::Operate => "operate",
        }
    }
}

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everybody who passes the checks of Host and Origin.
    Open,
    /// Clients with this right.
    With(Right),
    /// Clients with one of these rights.
    WithOneOf(&'static [Right]),
}

impl Access {
    /// The rights of which a client needs one; empty if the route is open.
    pub(crate) fn rights(&self) -> &[Right] {
        match self {
            Self::Open => &[],
            Self::With(right) => std::slice::from_ref(right),
            Self::WithOneOf(rights) => rights,
        }
    }
}
