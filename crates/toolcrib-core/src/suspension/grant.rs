//! The one-shot proof that a suspended call was resolved.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use toolcrib_tool::{Arguments, CallId, ErrorKind, ToolCall, ToolError, ToolOutput};

use super::{Suspension, Waiting};
use crate::approval::{Remember, question_digest, refused};
use crate::identity::fingerprint::Fingerprint;
use crate::storage::clock::Timestamp;

/// Proof that one suspended call was resolved, and how.
///
/// Made by [`redeem`](super::redeem) only: it has no constructor, cannot be cloned and cannot be
/// deserialised. It is bound to the call's id, to the tool as it was defined, to the arguments, to
/// the values the host injects, to the identity and to a time.
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
#[must_use = "a grant that is dropped leaves its call without an answer"]
pub struct Grant {
    suspension: Suspension,
    granted: Granted,
    /// The approver's own arguments, in place of the call's.
    changed: Option<String>,
    redeemed_at: Timestamp,
    /// Who has decided, if anybody has.
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
    /// The call runs again, knowing the answer to its question.
    Answer(Value),
    /// Somebody else has done the work: the output is there, and nothing runs.
    Output(ToolOutput),
    /// The call may not run, or has no answer to wait for.
    Denied {
        /// Why, for the model.
        message: String,
    },
    /// Nobody resolved the call in time.
    Expired,
    /// Nobody wants the answer any more.
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

    /// Notes who has decided, for the audit log.
    pub(super) fn decided_by(mut self, who: impl Into<Arc<str>>) -> Self {
        self.decided_by = Some(who.into());
        self
    }

    /// Who has decided, if the host said it and it was a decision.
    pub(crate) fn decider(&self) -> Option<&str> {
        match self.granted {
            Granted::Expired | Granted::Cancelled => None,
            _ => self.decided_by.as_deref(),
        }
    }

    /// The digest of the question that was decided on, where the call waited for approval.
    pub(crate) fn shown(&self) -> Option<String> {
        let kept = &self.suspension;
        let Waiting::Approval { reason, rule } = kept.waiting() else { return None };
        Some(question_digest(kept.tool(), kept.shown(), rule, reason).to_string())
    }

    /// The suspended call as it was kept.
    pub fn suspension(&self) -> &Suspension {
        &self.suspension
    }

    /// What was granted.
    pub fn granted(&self) -> &Granted {
        &self.granted
    }

    /// Whether the call needs no further approval: it was approved, or had been before it waited for
    /// an answer. A rule that denies it still does.
    pub fn is_approved(&self) -> bool {
        matches!(self.granted, Granted::Run { .. } | Granted::Answer(_))
    }

    /// Whether whoever approved has changed the arguments.
    pub fn is_changed(&self) -> bool {
        self.changed.is_some()
    }

    /// Whether the call would run, or its output be taken over.
    pub(crate) fn lets_go_on(&self) -> bool {
        matches!(self.granted, Granted::Run { .. } | Granted::Answer(_) | Granted::Output(_))
    }

    /// The same grant, which now denies the call.
    pub(crate) fn denied(mut self, message: String) -> Self {
        self.granted = Granted::Denied { message };
        self
    }

    /// The call to make: the arguments that were checked, or those the approver put in their place,
    /// which nobody has checked yet.
    pub fn call(&self) -> ToolCall {
        let arguments = self.changed.as_deref().unwrap_or(self.suspension.arguments());
        ToolCall::new(self.suspension.bound_call_id(), self.suspension.tool(), arguments)
    }

    /// Whether the grant is for this call of the tool of this fingerprint, with these arguments,
    /// which have passed every check, with these injected values
    /// ([`Fingerprint::of_injected`]), for this identity, at this time. The error, of kind
    /// `denied`, is the call's answer.
    ///
    /// Arguments that the approver changed come from the grant itself ([`call`](Self::call)) and
    /// get defaults and normal spelling on their way here, so they have no fingerprint to hold
    /// them against.
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
        // An answer that came in time may be used a little later; a grant is not a stock.
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

    /// Uses the grant up. A call is lent its grant, and middleware may send a call on more than
    /// once: only one of them runs.
    pub(crate) fn spend(&self) -> Result<(), ToolError> {
        if self.spent.swap(true, Ordering::AcqRel) {
            return Err(ToolError::denied("the decision was for one run, which has been made")
                .with_hint("Make the call again."));
        }
        Ok(())
    }

    /// The part of [`check`](Self::check) that needs no arguments: whether the tool is still the
    /// one that was decided on.
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

    /// The failure the call is answered with, where it was not granted anything.
    pub fn refusal(&self) -> Option<ToolError> {
        let kept = &self.suspension;
        let waited = readable(self.redeemed_at.since(kept.created_at()));
        // How long it could wait. When somebody noticed that its time was over is another matter.
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

    /// Takes the grant apart. Spending it ends it.
    pub fn into_granted(self) -> Granted {
        self.granted
    }
}

/// How long after its making a grant may be used.
const GRANT_LIFE: Duration = Duration::from_secs(60);

/// Whole seconds from one second up: nobody waits for milliseconds.
pub(crate) fn readable(waited: Duration) -> String {
    if waited.as_secs() > 0 {
        format!("{} s", waited.as_secs())
    } else {
        format!("{} ms", waited.as_millis())
    }
}
