//! Grants: one-time proofs that a suspended call was resolved.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use toolcrib_tool::{Arguments, CallId, ErrorKind, ToolCall, ToolError, ToolOutput};

use super::{ResolutionKind, Resolved, Suspension, Waiting};
use crate::approval::{Remember, question_digest, refused};
use crate::identity::fingerprint::Fingerprint;
use crate::storage::clock::Timestamp;

/// Proof that one suspended call was resolved, and how.
///
/// Only [`redeem`](super::redeem) creates it: it has no constructor and cannot be cloned or
/// deserialized. It is bound to the call's id, the tool's definition, the arguments, the injected
/// values, the identity and a time.
///
/// ```compile_fail
/// fn twice(grant: toolcrib_core::suspension::Grant) {
///     let copy = grant.clone();
/// }
/// ```
///
/// ```compile_fail
/// let forged: toolcrib_core::suspension::Grant = serde_json::from_str("{}").unwrap();
/// ```
#[derive(Debug)]
#[must_use = "dropping a grant leaves its call without an answer"]
pub struct Grant {
    suspension: Suspension,
    granted: Granted,
    /// The approver's changed arguments, if any.
    changed: Option<String>,
    redeemed_at: Timestamp,
    /// Who decided, if known.
    decided_by: Option<Arc<str>>,
    spent: AtomicBool,
}

/// What was granted.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Granted {
    /// The call may run.
    Run {
        /// What else was approved with it.
        remember: Remember,
    },
    /// The call runs again with the answer to its question.
    Answer(Value),
    /// The output was submitted; nothing runs.
    Output(ToolOutput),
    /// The call was denied.
    Denied {
        /// Why, for the model.
        message: String,
    },
    /// The call expired.
    Expired,
    /// The call was cancelled.
    Cancelled,
}

impl Grant {
    pub(super) fn new(
        suspension: Suspension,
        granted: Granted,
        changed: Option<String>,
        redeemed_at: Timestamp,
    ) -> Self {
        Self {
            suspension,
            granted,
            changed,
            redeemed_at,
            decided_by: None,
            spent: AtomicBool::new(false),
        }
    }

    /// The error that answers a call whose process ended after the call was resolved in this way;
    /// `None` if the call may have run.
    pub(super) fn refusal_after(suspension: &Suspension, resolved: &Resolved) -> Option<ToolError> {
        let granted = match resolved.kind() {
            ResolutionKind::Cancelled => Granted::Cancelled,
            ResolutionKind::Expired => Granted::Expired,
            // The approver's message was lost with the process.
            ResolutionKind::Denied => Granted::Denied { message: String::new() },
            ResolutionKind::Revoked => Granted::Denied { message: resolved.to_string() },
            _ => return None,
        };
        Self::new(suspension.clone(), granted, None, resolved.at()).refusal()
    }

    /// Sets who decided, for the audit log.
    pub(super) fn decided_by(mut self, who: impl Into<Arc<str>>) -> Self {
        self.decided_by = Some(who.into());
        self
    }

    /// Who resolved the call, if the host named the resolver and the call did not expire.
    pub(crate) fn decider(&self) -> Option<&str> {
        match self.granted {
            Granted::Expired => None,
            _ => self.decided_by.as_deref(),
        }
    }

    /// The digest of the question, if the call waited for approval.
    pub(crate) fn shown(&self) -> Option<String> {
        let kept = &self.suspension;
        let Waiting::Approval { reason, rule } = kept.waiting() else { return None };
        Some(question_digest(kept.tool(), kept.shown(), rule, reason).to_string())
    }

    /// The suspended call as stored.
    pub fn suspension(&self) -> &Suspension {
        &self.suspension
    }

    /// What was granted.
    pub fn granted(&self) -> &Granted {
        &self.granted
    }

    /// Whether the call needs no further approval: it was approved, now or before it waited for an
    /// answer. A rule can still deny it.
    pub fn is_approved(&self) -> bool {
        matches!(self.granted, Granted::Run { .. } | Granted::Answer(_))
    }

    /// Whether the approver changed the arguments.
    pub fn is_changed(&self) -> bool {
        self.changed.is_some()
    }

    /// Whether the arguments of the call are not the model's: an approver has changed them now, or before the call
    /// began to wait for something else.
    pub(crate) fn has_changed_arguments(&self) -> bool {
        self.is_changed() || self.suspension.has_changed_arguments()
    }

    /// Whether the call would run or use a submitted output.
    pub(crate) fn lets_go_on(&self) -> bool {
        matches!(self.granted, Granted::Run { .. } | Granted::Answer(_) | Granted::Output(_))
    }

    /// Turns the grant into a denial.
    pub(crate) fn denied(mut self, message: String) -> Self {
        self.granted = Granted::Denied { message };
        self
    }

    /// The call to make: with the checked arguments, or with the approver's changed ones, which are
    /// not checked yet.
    pub fn call(&self) -> ToolCall {
        let arguments = self.changed.as_deref().unwrap_or(self.suspension.arguments());
        ToolCall::new(self.suspension.bound_call_id(), self.suspension.tool(), arguments)
    }

    /// Checks that the grant matches this call: the tool's fingerprint, the checked arguments, the
    /// injected values ([`Fingerprint::of_injected`]), the identity, and the time. The error, of
    /// kind `denied`, is the call's answer.
    ///
    /// Changed arguments come from the grant itself ([`call`](Self::call)) and are normalized
    /// before this check, so their fingerprint is not compared.
    pub fn check(
        &self,
        call: &CallId,
        definition: Fingerprint,
        arguments: &Arguments,
        injected: Fingerprint,
        identity: &str,
        now: Timestamp,
    ) -> Result<(), ToolError> {
        let kept = &self.suspension;
        // A grant has to be used soon after it was redeemed.
        if now.since(self.redeemed_at) > GRANT_LIFE {
            return Err(ToolError::denied("the decision on this call has expired")
                .with_hint("Make the call again."));
        }
        if kept.identity() != identity || kept.bound_call_id() != call.as_str() {
            return Err(ToolError::denied("the decision was about another call"));
        }
        self.check_definition(definition)?;
        if injected != kept.caller().injected() {
            return Err(ToolError::denied(
                "the values the host injects are not those that were decided on",
            )
            .with_hint("Make the call again."));
        }
        let same =
            self.changed.is_some() || Fingerprint::of_arguments(arguments) == kept.argument_hash();
        if !same {
            return Err(ToolError::denied("the arguments are not those that were decided on")
                .with_hint("Make the call again."));
        }
        Ok(())
    }

    /// Uses up the grant. Middleware may run a call more than once, but only one of them uses the
    /// grant.
    pub(crate) fn spend(&self) -> Result<(), ToolError> {
        if self.spent.swap(true, Ordering::AcqRel) {
            return Err(ToolError::denied("the decision was for one run, which has been made")
                .with_hint("Make the call again."));
        }
        Ok(())
    }

    /// The part of [`check`](Self::check) that needs no arguments: whether the tool is unchanged.
    pub fn check_definition(&self, definition: Fingerprint) -> Result<(), ToolError> {
        if definition == self.suspension.definition_hash() {
            return Ok(());
        }
        let what = match self.suspension.waiting() {
            Waiting::Approval { .. } => "the tool changed since the call was made",
            _ => "the tool changed while the call waited",
        };
        Err(ToolError::denied(what).with_hint("Make the call again."))
    }

    /// The error that answers a call that was not granted.
    pub fn refusal(&self) -> Option<ToolError> {
        let kept = &self.suspension;
        let waited = readable(self.redeemed_at.since(kept.created_at()));
        // The configured wait, not the time at which the expiry was noticed.
        let limit = readable(kept.expires_at().since(kept.created_at()));
        match &self.granted {
            Granted::Run { .. } | Granted::Answer(_) | Granted::Output(_) => None,
            Granted::Denied { message } => Some(refused(message)),
            Granted::Cancelled => Some(ToolError::new(
                ErrorKind::Cancelled,
                format!("the call was cancelled after it had waited {waited}"),
            )),
            Granted::Expired => Some(match kept.waiting() {
                Waiting::Approval { .. } => ToolError::denied(format!(
                    "nobody approved the call within {limit}, which counts as no"
                ))
                .with_hint("Ask the user before you make the call again."),
                Waiting::Client => ToolError::new(
                    ErrorKind::Timeout,
                    format!("expired: the client has not answered within {limit}"),
                )
                .with_hint("Whether it has done the work is unknown."),
                Waiting::Input { .. } => ToolError::new(
                    ErrorKind::Timeout,
                    format!("expired: nobody answered the tool's question within {limit}"),
                ),
                Waiting::Pending { .. } => ToolError::new(
                    ErrorKind::Timeout,
                    format!("expired: the work was not finished within {limit}"),
                )
                .with_hint("Whether it goes on elsewhere is unknown."),
            }),
        }
    }

    /// Takes the decision out of the grant, which ends it.
    pub fn into_granted(self) -> Granted {
        self.granted
    }
}

/// How long a grant is valid.
const GRANT_LIFE: Duration = Duration::from_secs(60);

/// Rounds to whole seconds from one second up.
pub(crate) fn readable(waited: Duration) -> String {
    if waited.as_secs() > 0 {
        format!("{} s", waited.as_secs())
    } else {
        format!("{} ms", waited.as_millis())
    }
}
