//! Approval: asking a person, or whoever stands for one, before a call runs.

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
pub use caller_rights::{CallerRights, Standing};
pub use pending::{Approvals, DecideError, Decided};
pub use remembered::{Approved, SessionApprovals};
pub(crate) use request::question_digest;
pub use request::{ApprovalRequest, Asker, ShownCall};

/// Decides on calls that wait for approval, while the caller waits.
///
/// Where nobody can decide at once, a host keeps a
/// [`SuspensionStore`](crate::suspension::SuspensionStore) instead: the call is put away, and a
/// decision may come from anywhere at any time before it expires.
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
    /// Decides. Its time is limited by [`ask`]; dropped, it must take its question back.
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Decision>;

    /// Who decides, as the audit log names it. Default: `the host`.
    fn name(&self) -> &str {
        THE_HOST
    }
}

impl<F: Fn(&ApprovalRequest) -> Decision + Send + Sync> Approver for F {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Decision> {
        Box::pin(async move { self(request) })
    }
}

/// Who has decided, where the host named nobody.
pub(crate) const THE_HOST: &str = "the host";

/// What was decided on a call.
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
    /// It runs with other arguments, which are checked like the first.
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

/// What an approval holds for, as long as its session lasts and the tool does not change.
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

    /// The call does not run; the model is told why.
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny { message: message.into() }
    }

    /// Lets an approval hold for more than this call. Nothing else is ever remembered.
    #[must_use]
    pub fn remembered(self, scope: Remember) -> Self {
        match self {
            Self::Approve { .. } => Self::Approve { remember: scope },
            other => other,
        }
    }

    /// What the decision holds for beyond its call.
    pub fn remember(&self) -> Remember {
        match self {
            Self::Approve { remember } => *remember,
            Self::ApproveChanged { .. } | Self::Deny { .. } => Remember::Nothing,
        }
    }
}

/// The failure of a call that a rule, an approver or nobody at all has refused.
pub(crate) fn refused(message: &str) -> ToolError {
    let message = if message.trim().is_empty() { "the call was not approved" } else { message };
    ToolError::denied(message)
        .with_hint("Do not make the same call again; ask the user, or go another way.")
}
