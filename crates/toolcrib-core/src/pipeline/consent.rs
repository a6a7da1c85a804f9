//! Whether a checked call may run: policy, approval, and calls that wait.

use std::sync::Arc;

use toolcrib_tool::{Arguments, ErrorKind, RawArguments, ToolError, ToolOutput};

use super::finish::check_data;
use super::ready::{Checked, OwnCheck, checked};
use super::{Leave, Way};
use crate::approval::{self, ApprovalRequest, Decision as Decided, Remember};
use crate::audit::Decision;
use crate::fingerprint::Fingerprint;
use crate::policy::{DecidedBy, Verdict};
use crate::redaction::redact;
use crate::registry::Slot;
use crate::suspension::{Grant, Granted, Suspension, Waiting, client_output};

impl<'a> Way<'a> {
    /// Whether anything but yes could be said to the call; if not, it is allowed.
    pub(super) fn needs_consent(&mut self, slot: &Slot) -> bool {
        let state = &self.turn.state;
        let needed = self.origin.grant.is_some() || state.needs_look(&slot.manner);
        if !needed {
            self.decision = Decision::Allowed;
        }
        needed
    }

    /// Passes a call that may run. Whoever approves it may change its arguments, which are checked
    /// like any others. `own` is the tool's own check, where there is a tool here.
    pub(super) async fn consent(
        &mut self,
        slot: &'a Slot,
        checked: &mut Checked<'a>,
        own: Option<OwnCheck<'_>>,
    ) -> Result<(), Leave> {
        let state = &self.turn.state;
        let (by, reason) = match state.verdict(&slot.entry, &checked.arguments) {
            Verdict::Deny { by, message } => return Err(self.denied(&by, &message).into()),
            Verdict::Allow { by } if self.origin.grant.is_none() => {
                self.decision = Decision::AllowedBy { by: by.to_string() };
                return Ok(());
            }
            Verdict::Allow { by } => (by, String::new()),
            Verdict::Ask { by, reason } => (by, reason),
        };
        if let Some(grant) = self.origin.grant {
            let now = state.shared.now();
            let identity = &state.identity;
            grant.check(self.id, slot.fingerprint(), &checked.arguments, identity, now)?;
            grant.spend()?;
            if let Granted::Run { remember } = grant.granted() {
                self.remember(slot, &checked.arguments, *remember);
            }
            let by = "a decision on the suspended call".to_owned();
            self.decision = Decision::Approved { by, changed: grant.is_changed() };
            return Ok(());
        }
        if self.is_remembered(slot, &checked.arguments) {
            let by = "an earlier approval in this session".to_owned();
            self.decision = Decision::Approved { by, changed: false };
            return Ok(());
        }
        let Some(approver) = state.approver() else {
            let waiting = Waiting::Approval { reason, rule: by.to_string() };
            let leave = self.suspend(slot, Some(&checked.arguments), waiting).await;
            self.decision = match &leave {
                Leave::Suspended(_) => Decision::Waiting,
                Leave::Failed(error) => {
                    Decision::Denied { reason: format!("{by}: {}", error.message()) }
                }
            };
            return Err(leave);
        };
        let timeout = state.shared.config.approval_timeout;
        let request = self.request(slot, &checked.arguments, &by, reason);
        match approval::ask(approver.as_ref(), &request, timeout).await {
            Decided::Approve { remember } => {
                self.remember(slot, &checked.arguments, remember);
                self.decision = Decision::Approved { by: by.to_string(), changed: false };
            }
            Decided::ApproveChanged { arguments } => {
                // Recorded even if they are refused: they are what was approved.
                self.changed = state.shared.audit.as_ref().map(|audit| {
                    let definition = &slot.entry.definition;
                    audit.arguments(Some(definition), &arguments, &state.shared.mask.load())
                });
                *checked = self::checked(self.turn, slot, RawArguments::from(arguments), None)?;
                if let Some(own) = own {
                    own.passes(&checked.arguments).await?;
                }
                // Who may approve may not allow what a rule denies.
                if let Verdict::Deny { by, message } =
                    state.verdict(&slot.entry, &checked.arguments)
                {
                    return Err(self.denied(&by, &message).into());
                }
                self.decision = Decision::Approved { by: by.to_string(), changed: true };
            }
            Decided::Deny { message } => return Err(self.denied(&by, &message).into()),
        }
        Ok(())
    }

    /// The end of a suspended call that needs no run any more: it was refused, or somebody else has
    /// done the work.
    pub(super) fn settled(
        &mut self,
        slot: &Slot,
        grant: &Grant,
    ) -> Option<Result<ToolOutput, ToolError>> {
        let kept = grant.suspension();
        if kept.identity() != &*self.turn.state.identity || kept.call_id() != self.id.as_str() {
            return Some(Err(ToolError::denied("the decision was about another call")));
        }
        if let Some(refusal) = grant.refusal() {
            let reason = "a decision on the suspended call".to_owned();
            self.decision = Decision::Denied { reason };
            return Some(Err(refusal));
        }
        let Granted::Output(output) = grant.granted() else { return None };
        self.decision = Decision::Allowed;
        Some(self.delivered(slot, output.clone()))
    }

    /// Holds what a client delivered against what the tool declares.
    fn delivered(&self, slot: &Slot, output: ToolOutput) -> Result<ToolOutput, ToolError> {
        let shared = &self.turn.state.shared;
        let output = client_output(&slot.entry.definition, output)?;
        let compiled = slot.compiled(shared.registry.schemas())?;
        check_data(compiled, output, shared.config.data_bytes)
    }

    fn denied(&mut self, by: &DecidedBy, message: &str) -> ToolError {
        self.decision = Decision::Denied { reason: format!("{by}: {message}") };
        approval::refused(message)
    }

    fn request(
        &self,
        slot: &Slot,
        arguments: &Arguments,
        by: &DecidedBy,
        reason: String,
    ) -> ApprovalRequest {
        let state = &self.turn.state;
        let now = state.shared.now();
        let definition = Arc::clone(&slot.entry.definition);
        ApprovalRequest {
            call_id: self.id.clone(),
            shown: redact(&definition, arguments.value(), &state.shared.mask.load()),
            definition,
            arguments: arguments.clone(),
            identity: Arc::clone(&state.identity),
            session: state.session.clone(),
            rule: by.to_string(),
            reason,
            expires_at: match state.shared.config.approval_timeout {
                Some(timeout) => now.after(timeout),
                None => crate::clock::Timestamp::NEVER,
            },
        }
    }

    fn remember(&self, slot: &Slot, arguments: &Arguments, scope: Remember) {
        let state = &self.turn.state;
        if let Some(session) = state.session.as_deref().filter(|_| scope != Remember::Nothing) {
            let definition = slot.fingerprint();
            let arguments = Fingerprint::of_arguments(arguments);
            let approvals = &state.shared.approvals;
            approvals.remember(session, &state.identity, definition, arguments, scope);
        }
    }

    fn is_remembered(&self, slot: &Slot, arguments: &Arguments) -> bool {
        let state = &self.turn.state;
        let Some(session) = state.session.as_deref() else { return false };
        let definition = slot.fingerprint();
        let arguments = || Fingerprint::of_arguments(arguments);
        state.shared.approvals.holds(session, &state.identity, definition, arguments)
    }

    /// Puts the call away until somebody resolves it; or it fails, where nobody could.
    pub(super) async fn suspend(
        &self,
        slot: &Slot,
        arguments: Option<&Arguments>,
        waiting: Waiting,
    ) -> Leave {
        let state = &self.turn.state;
        let (Some(store), Some(arguments)) = (&state.shared.suspensions, arguments) else {
            return nobody_waits(&waiting).into();
        };
        let config = &state.shared.config;
        let limit = match waiting {
            Waiting::Client => slot.entry.definition.timeout(),
            Waiting::Approval { .. } | Waiting::Input { .. } => config.approval_timeout,
            Waiting::Pending { .. } => None,
        };
        let now = state.shared.now();
        let expires_at = limit.map_or(crate::clock::Timestamp::NEVER, |limit| now.after(limit));
        let tool = (slot.entry.name(), slot.fingerprint());
        let suspended = Suspension::of(self.id, tool, arguments, waiting, (now, expires_at));
        let mut suspension = match suspended {
            Ok(suspension) => suspension.for_identity(&*state.identity),
            Err(error) => return unkept(error).into(),
        };
        if let Some(session) = &state.session {
            suspension = suspension.in_session(&**session);
        }
        match store.put(&suspension).await {
            Ok(()) => Leave::Suspended(Box::new(suspension)),
            Err(error) => unkept(error).into(),
        }
    }
}

fn unkept(error: impl std::error::Error + Send + Sync + 'static) -> ToolError {
    ToolError::unavailable("the call would have to wait for somebody, and could not be kept")
        .with_hint("Nothing was run. Tell the user.")
        .with_source(error)
}

fn nobody_waits(waiting: &Waiting) -> ToolError {
    let why = match waiting {
        Waiting::Approval { reason, .. } => {
            return approval::refused(&format!("{reason}, and nobody here can approve it"));
        }
        Waiting::Client => "it runs at the client, which cannot be asked here".to_owned(),
        Waiting::Input { message, .. } => format!(
            "it needs an answer from a person, and this host keeps no waiting calls: {message}"
        ),
        Waiting::Pending { ticket } => {
            format!("its work goes on elsewhere as {ticket}, and this host keeps no waiting calls")
        }
    };
    ToolError::unavailable(why)
}

/// What a call that waits says to those who cannot wait with it.
pub(super) fn waits(suspension: &Suspension) -> ToolError {
    let why = match suspension.waiting() {
        Waiting::Approval { reason, .. } => format!("it waits for approval: {reason}"),
        Waiting::Client => "it waits for the client to run it".to_owned(),
        Waiting::Input { message, .. } => format!("it waits for an answer: {message}"),
        Waiting::Pending { ticket } => format!("its work goes on elsewhere as {ticket}"),
    };
    ToolError::new(ErrorKind::RequiresApproval, why)
        .with_hint("It will be answered later; do not make the same call again.")
}
