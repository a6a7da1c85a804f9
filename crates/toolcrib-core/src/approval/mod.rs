//! Approval: asking a person, or a program on a person's behalf, before a call runs.

mod ask;
mod caller_rights;
mod delegated;
mod pending;
pub mod policy;
mod remembered;
mod request;

use toolcrib_tool::{BoxFuture, ToolError};

pub(crate) use crate::approval::delegated::DelegatedCalls;
pub use ask::{APPROVAL_TIMEOUT, ask};
pub(crate) use caller_rights::CallerTables;
pub use caller_rights::{CallerRights, CallerStatus};
pub use pending::{Approvals, DecideError, Decided};
pub use remembered::{ApprovalKey, SessionApprovals};
pub(crate) use request::question_digest;
pub use request::{ApprovalRequest, Asker, ShownCall};

/// Decides on calls that wait for approval, while the caller waits.
///
/// If nobody can decide at once, a host uses a
/// [`SuspensionStore`](crate::suspension::SuspensionStore) instead: the call is stored, and a
/// decision can come from anywhere until it expires.
///
/// Any `Fn(&ApprovalRequest) -> Decision` is an approver:
///
/// ```
/// use toolcrib_core::approval::{ApprovalRequest, Approver, Decision};
///
/// fn only_in_the_sandbox(request: &ApprovalRequest) -> Decision {
///     match request.arguments.value()["path"].as_str() {
///         Some(path) if path.starts_with("sandbox/") => Decision::approve(),
///         _ => Decision::deny("write below sandbox/ only"),
///     }
/// }
/// let approver: &dyn Approver = &only_in_the_sandbox;
/// ```
pub trait Approver: Send + Sync {
    /// Decides. [`ask`] limits the time. If the future is dropped, the approver must withdraw its
    /// question.
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Decision>;

    /// The name of the decider in the audit log. Default: `the host`.
    fn name(&self) -> &str {
        THE_HOST
    }
}

impl<F: Fn(&ApprovalRequest) -> Decision + Send + Sync> Approver for F {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Decision> {
        Box::pin(async move { self(request) })
    }
}

/// The name of the decider if the host gives none.
pub(crate) const THE_HOST: &str = "the host";

/// A decision on a call.
///
/// ```
/// use toolcrib_core::approval::{Decision, Remember};
///
/// let always = Decision::approve().remembered(Remember::Tool);
/// assert_eq!(always.remember(), Remember::Tool);
/// assert_eq!(Decision::deny("no").remember(), Remember::Nothing);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// It runs.
    Approve {
        /// What else is approved with it.
        remember: Remember,
    },
    /// It runs with other arguments, which are checked like the original ones.
    ApproveChanged {
        /// The arguments, as JSON text.
        arguments: String,
    },
    /// It does not run.
    Deny {
        /// Why, for the model.
        message: String,
    },
}

/// How far an approval extends, as long as its session lasts and the tool does not change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Remember {
    /// This call.
    #[default]
    Nothing,
    /// Calls of this tool with the same arguments.
    SameCall,
    /// All calls of this tool.
    Tool,
}

impl Decision {
    /// The call runs.
    pub fn approve() -> Self {
        Self::Approve { remember: Remember::Nothing }
    }

    /// The call runs with other arguments: JSON text, checked like a model's.
    pub fn approve_changed(arguments: impl Into<String>) -> Self {
        Self::ApproveChanged { arguments: arguments.into() }
    }

    /// The call does not run; the message tells the model why.
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny { message: message.into() }
    }

    /// Extends an approval beyond this call. Denials and changed arguments are never remembered.
    #[must_use]
    pub fn remembered(self, scope: Remember) -> Self {
        match self {
            Self::Approve { .. } => Self::Approve { remember: scope },
            other => other,
        }
    }

    /// How far the decision extends beyond its call.
    pub fn remember(&self) -> Remember {
        match self {
            Self::Approve { remember } => *remember,
            Self::ApproveChanged { .. } | Self::Deny { .. } => Remember::Nothing,
        }
    }
}

/// The error of a call that was denied, by a rule or by an approver, or because nobody could
/// approve it.
pub(crate) fn refused(message: &str) -> ToolError {
    let message = if message.trim().is_empty() { "the call was not approved" } else { message };
    ToolError::denied(message)
        .with_hint("Do not make the same call again; ask the user, or go another way.")
}
