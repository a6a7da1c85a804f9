//! The record of how a waiting call was resolved, and by whom.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Resolution, Suspension};
use crate::approval::{Decision, THE_HOST};
use crate::observability::audit::rfc3339;
use crate::storage::clock::Timestamp;

/// The record of a resolved call. Only one attempt to resolve a call succeeds; stores keep this record so
/// that the others learn who was first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolved {
    #[serde(rename = "deed")]
    kind: ResolutionKind,
    by: String,
    at: Timestamp,
    identity: String,
    tool: String,
    /// The stable name of what the call waited for.
    waited_for: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tenant: Option<Value>,
}

/// How a call was resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResolutionKind {
    /// It was approved.
    Approved,
    /// It was denied.
    Denied,
    /// The tool's question was answered.
    Answered,
    /// The output of the client's tool was submitted.
    OutputSubmitted,
    /// It was cancelled.
    Cancelled,
    /// It expired.
    Expired,
    /// Its client lost the right to make it.
    Revoked,
}

impl ResolutionKind {
    /// Its stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Answered => "answered",
            Self::OutputSubmitted => "output_submitted",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }

    pub(super) fn of(resolution: &Resolution) -> Self {
        match resolution {
            Resolution::Decision(Decision::Deny { .. }) => Self::Denied,
            Resolution::Decision(_) => Self::Approved,
            Resolution::Output(_) => Self::OutputSubmitted,
            Resolution::Answer(_) => Self::Answered,
            Resolution::Expire => Self::Expired,
            Resolution::Cancel => Self::Cancelled,
            Resolution::Revoke { .. } => Self::Revoked,
        }
    }
}

impl Resolved {
    /// A record that `by` resolved a suspended call in this way at that time.
    pub fn new(
        suspension: &Suspension,
        kind: ResolutionKind,
        by: impl Into<String>,
        at: Timestamp,
    ) -> Self {
        Self {
            kind,
            by: by.into(),
            at,
            identity: suspension.identity().to_owned(),
            tool: suspension.tool().to_owned(),
            waited_for: suspension.waiting().as_str().to_owned(),
            tenant: suspension.caller().tenant().cloned(),
        }
    }

    /// How the call was resolved.
    pub fn kind(&self) -> ResolutionKind {
        self.kind
    }

    /// Who resolved it: a client, an operator, or a name that the host gave.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// When.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// The identity on whose behalf the call was made; empty if the host named none.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The tool that the call was for.
    pub(crate) fn tool(&self) -> &str {
        &self.tool
    }

    /// Whether the call waited for approval.
    pub(crate) fn waited_for_approval(&self) -> bool {
        self.waited_for == "approval"
    }

    /// Whether a client cancelled the call, rather than the host because the call's server ended.
    pub(crate) fn is_cancelled_by_client(&self) -> bool {
        self.kind == ResolutionKind::Cancelled && self.by != THE_HOST
    }

    /// The tenant of the call.
    pub(crate) fn tenant(&self) -> Option<&Value> {
        self.tenant.as_ref()
    }
}

impl fmt::Display for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (by, at) =
            (&self.by, rfc3339(UNIX_EPOCH + Duration::from_millis(self.at.unix_millis())));
        match self.kind {
            ResolutionKind::Approved => write!(f, "the call was approved by {by} at {at}"),
            ResolutionKind::Denied => write!(f, "the call was denied by {by} at {at}"),
            ResolutionKind::Answered => {
                write!(f, "the tool's question was answered by {by} at {at}")
            }
            ResolutionKind::OutputSubmitted => {
                write!(f, "the call's output was submitted by {by} at {at}")
            }
            ResolutionKind::Cancelled => write!(f, "the call was cancelled by {by} at {at}"),
            ResolutionKind::Expired => write!(f, "the call expired at {at}"),
            ResolutionKind::Revoked => {
                write!(f, "the call was denied at {at}, because its client may no longer make it")
            }
        }
    }
}
