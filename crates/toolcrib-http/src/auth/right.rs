//! What clients may do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One of the things that a client may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Right {
    /// List, search, describe and call tools, over MCP too, and hand in the outputs of client tools.
    Call,
    /// Approve and deny calls that wait, whoever made them, within its own tenant and toolset; be asked
    /// for approval over MCP; and answer the questions of tools in runs of its own identity.
    Approve,
    /// See metrics, statistics, the state of files and servers, and the audit log.
    Observe,
    /// Have the config and the declarations of tools read again, end reservations of names and pauses
    /// of tools, and watch the events of everybody's calls, within its own tenant and toolset.
    Operate,
}

impl Right {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Call, Self::Approve, Self::Observe, Self::Operate];

    /// The word for it in a config.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Approve => "approve",
            Self::Observe => "observe",
            Self::Operate => "operate",
        }
    }
}

/// Who may ask for a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Anybody who gets past Host and Origin.
    Open,
    /// Clients with this right.
    With(Right),
    /// Clients with one of these rights.
    WithOneOf(&'static [Right]),
}

impl Access {
    /// The rights of which a client needs one; none where it is open.
    pub(crate) fn rights(&self) -> &[Right] {
        match self {
            Self::Open => &[],
            Self::With(right) => std::slice::from_ref(right),
            Self::WithOneOf(rights) => rights,
        }
    }
}
