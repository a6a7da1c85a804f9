//! Whether a checked call may run: policy, approval, and calls that wait.

use std::sync::Arc;

use toolcrib_tool::{Arguments, ErrorKind, RawArguments, ToolError, ToolOutput};

use super::finish::check_data;
use super::ready::{Checked, OwnCheck, checked};
use super::{Leave, Way};
use crate::approval::{
    self, ApprovalRequest, Approved, Asker, Decision as Decided, Remember, ShownCall,
};
use crate::arguments::mending::Mending;
use crate::audit::Decision;
use crate::bounds::Full;
use crate::fingerprint::Fingerprint;
use crate::policy::{DecidedBy, Verdict};
use crate::redaction::{REDACTED, redact_injected, redact_whole, sensitive_texts};
use crate::registry::Slot;
use crate::suspension::{Grant, Granted, StoreError, Suspension, Waiting, client_output};

impl<'a> Way<'a> {
    /// Whether anything but yes could be said to the call; if not, it is allowed.
    pub(super) fn needs_consent(&mut self, slot: &Slot) -> bool {
        let state = &self.turn.state;
        let needed = self.origin.grant.is_some() || state.needs_look(&slot.entry.definition);
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
            let (identity, arguments) = (&state.identity, &checked.arguments);
            let injected = self.injected(slot);
            grant.check(self.id, slot.fingerprint(), arguments, injected, identity, now)?;
            if matches!(grant.suspension().waiting(), Waiting::Approval { .. }) {
                same_code(grant.suspension().shown().code.as_deref(), own)?;
            }
            grant.spend()?;
            if let Granted::Run { remember } = grant.granted() {
                self.remember(slot, &checked.arguments, *remember);
            }
            self.decision = approved_by(grant);
            return Ok(());
        }
        if self.is_remembered(slot, &checked.arguments) {
            let by = "an earlier approval in this session".to_owned();
            self.decision = Decision::Approved { by, rule: None, changed: false, shown: None };
            return Ok(());
        }
        // Whoever decides sees what would run; a call that could not run is not asked about.
        let shown = self.shown(slot, &checked.arguments, own)?;
        let Some(approver) = state.approver() else {
            let waiting = Waiting::Approval { reason, rule: by.to_string() };
            let leave = self.suspend_showing(slot, &checked.arguments, waiting, shown).await;
            self.decision = match &leave {
                Leave::Suspended(_) => Decision::Waiting,
                Leave::Failed(error) => {
                    let reason = format!("{by}: {}", error.message());
                    Decision::Denied { reason, by: None, shown: None }
                }
            };
            return Err(leave);
        };
        let timeout = state.shared.config.approval_timeout;
        let code = shown.code.clone();
        let request = self.request(slot, &checked.arguments, shown, &by, reason);
        let asked = Asked {
            who: approver.name().to_owned(),
            rule: by.to_string(),
            shown: request.digest().to_string(),
        };
        match approval::ask(approver.as_ref(), &request, timeout).await {
            Decided::Approve { remember } => {
                self.remember(slot, &checked.arguments, remember);
                self.decision = asked.approved(false);
                same_code(code.as_deref(), own)?;
            }
            Decided::ApproveChanged { arguments } => {
                // Recorded even if they are refused: they are what was approved.
                self.changed = state.shared.audit.as_ref().map(|audit| {
                    let definition = &slot.entry.definition;
                    audit.arguments(Some(definition), &arguments, &state.shared.mask.load())
                });
                self.mending = Mending::default();
                let arguments = RawArguments::from(arguments);
                *checked = self::checked(self.turn, slot, arguments, &mut self.mending)?;
                if let Some(own) = own {
                    own.passes(&checked.arguments).await?;
                }
                // Who may approve may not allow what a rule denies.
                if let Verdict::Deny { by, message } =
                    state.verdict(&slot.entry, &checked.arguments)
                {
                    return Err(self.denied(&by, &message).into());
                }
                self.decision = asked.approved(true);
                same_code(code.as_deref(), own)?;
            }
            Decided::Deny { message } => {
                self.decision = asked.denied(&message);
                return Err(approval::refused(&message).into());
            }
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
            let reason = refusal.message().to_owned();
            let by = grant.decider().map(str::to_owned);
            self.decision = Decision::Denied { reason, by, shown: grant.shown() };
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
        // Before it is held against its schema, which quotes parts of what does not fit.
        let output = shared.mask.outcome(Ok(output))?;
        let schemas = shared.registry.schemas();
        check_data(&slot.entry.definition, schemas, output, shared.config.data_bytes)
    }

    fn denied(&mut self, by: &DecidedBy, message: &str) -> ToolError {
        self.decision =
            Decision::Denied { reason: format!("{by}: {message}"), by: None, shown: None };
        approval::refused(message)
    }

    fn request(
        &self,
        slot: &Slot,
        arguments: &Arguments,
        shown: ShownCall,
        by: &DecidedBy,
        reason: String,
    ) -> ApprovalRequest {
        let state = &self.turn.state;
        let now = state.shared.now();
        ApprovalRequest {
            id: None,
            call_id: self.id.clone(),
            tool: slot.entry.name().to_owned(),
            definition: Some(Arc::clone(&slot.entry.definition)),
            arguments: arguments.clone(),
            shown,
            asker: Asker {
                tenant: state.values.get("tenant").cloned(),
                user: state.values.get("user").cloned(),
                client: state.client.as_deref().map(str::to_owned),
            },
            created_at: now,
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
            let arguments = Fingerprint::of_arguments(arguments);
            let approved = self.approved(slot, session);
            state.shared.approvals.remember(approved, arguments, scope);
        }
    }

    fn is_remembered(&self, slot: &Slot, arguments: &Arguments) -> bool {
        let state = &self.turn.state;
        let Some(session) = state.session.as_deref() else { return false };
        let arguments = || Fingerprint::of_arguments(arguments);
        state.shared.approvals.holds(self.approved(slot, session), arguments)
    }

    fn approved<'s>(&'s self, slot: &Slot, session: &'s str) -> Approved<'s> {
        Approved {
            session,
            identity: &self.turn.state.identity,
            definition: slot.fingerprint(),
            injected: self.injected(slot),
        }
    }

    /// The fingerprint of what the host injects into this call.
    fn injected(&self, slot: &Slot) -> Fingerprint {
        Fingerprint::of_injected(&slot.entry.definition, &self.turn.state.values)
    }

    /// What a person may see of the call. Fails where the tool cannot even say what it would do: the
    /// call would fail as well.
    fn shown(
        &self,
        slot: &Slot,
        arguments: &Arguments,
        own: Option<OwnCheck<'_>>,
    ) -> Result<ShownCall, ToolError> {
        let state = &self.turn.state;
        let (definition, mask) = (&slot.entry.definition, state.shared.mask.load());
        let plan = own.map(|own| own.plan(arguments)).transpose()?.flatten();
        let injected = definition.injections().iter().filter_map(|injection| {
            let value = state.values.get(injection.context_key())?;
            let parameter = injection.parameter();
            Some((parameter.to_owned(), redact_injected(definition, parameter, value, &mask)))
        });
        let sensitive = sensitive_texts(definition, arguments.value());
        let hidden = |text: String| {
            let replaced = |text: String, hidden: &String| text.replace(hidden, REDACTED);
            let text = sensitive.iter().fold(text, replaced);
            mask.text(&text).into_owned()
        };
        Ok(ShownCall {
            arguments: redact_whole(definition, arguments.value(), &mask),
            injected: injected.collect(),
            plan: plan.map(|plan| plan.map(hidden).to_value()),
            code: own.and_then(OwnCheck::code),
        })
    }

    /// Puts the call away until somebody resolves it; or it fails, where nobody could.
    pub(super) async fn suspend(
        &self,
        slot: &Slot,
        arguments: Option<&Arguments>,
        waiting: Waiting,
    ) -> Leave {
        match arguments {
            Some(arguments) => {
                self.suspend_showing(slot, arguments, waiting, ShownCall::default()).await
            }
            None => nobody_waits(&waiting).into(),
        }
    }

    /// The same with what whoever decides is shown.
    async fn suspend_showing(
        &self,
        slot: &Slot,
        arguments: &Arguments,
        waiting: Waiting,
        shown: ShownCall,
    ) -> Leave {
        let state = &self.turn.state;
        let Some(store) = &state.shared.suspensions else {
            return nobody_waits(&waiting).into();
        };
        if self.origin.lineage.depth() > 0 {
            // The call that made this one has its answer before anybody could resolve it.
            return waits_within(&waiting, self.name).into();
        }
        let caller = match state.caller(&slot.entry.definition) {
            Ok(caller) => caller,
            Err(error) => return unkept(error).into(),
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
            Ok(suspension) => suspension.for_identity(&*state.identity).by(caller).showing(shown),
            Err(error) => return unkept(error).into(),
        };
        if let Some(session) = &state.session {
            suspension = suspension.in_session(&**session);
        }
        match store.put(&suspension).await {
            Ok(()) => Leave::Suspended(Box::new(suspension)),
            Err(StoreError::Full(full)) => too_many_wait(full).into(),
            Err(error) => unkept(error).into(),
        }
    }
}

/// The failure of a call that cannot wait because too many do.
fn too_many_wait(full: Full) -> ToolError {
    let mut error = ToolError::unavailable(format!("the call would have to wait, and {full}"))
        .with_hint("Nothing was run. Resolve or cancel calls that wait, or let them expire first.")
        .with_retryable(true);
    if let Some(wait) = full.retry_after {
        error = error.with_retry_after(wait);
    }
    error.with_source(full)
}

/// Fails if the code that would run is not the code that was approved.
fn same_code(approved: Option<&str>, own: Option<OwnCheck<'_>>) -> Result<(), ToolError> {
    if own.and_then(OwnCheck::code).as_deref() == approved {
        return Ok(());
    }
    Err(ToolError::denied("the tool changed since it was approved: a file that it runs is another")
        .with_hint("Make the call again."))
}

/// A question that was asked while the caller waited, for the audit log.
struct Asked {
    who: String,
    rule: String,
    shown: String,
}

impl Asked {
    fn approved(self, changed: bool) -> Decision {
        let Self { who, rule, shown } = self;
        Decision::Approved { by: who, rule: Some(rule), changed, shown: Some(shown) }
    }

    fn denied(self, message: &str) -> Decision {
        let Self { who, rule, shown } = self;
        let reason = format!("{rule}: {message}");
        Decision::Denied { reason, by: Some(who), shown: Some(shown) }
    }
}

/// What was decided on a call that waited, for the audit log.
pub(super) fn approved_by(grant: &Grant) -> Decision {
    let rule = match grant.suspension().waiting() {
        Waiting::Approval { rule, .. } => Some(rule.clone()),
        _ => None,
    };
    Decision::Approved {
        by: grant.decider().unwrap_or(approval::THE_HOST).to_owned(),
        rule,
        changed: grant.is_changed(),
        shown: grant.shown(),
    }
}

fn unkept(error: impl std::error::Error + Send + Sync + 'static) -> ToolError {
    ToolError::unavailable("the call would have to wait for somebody, and could not be kept")
        .with_hint("Nothing was run. Tell the user.")
        .with_source(error)
}

/// The failure of a call that would have to wait, and was made by another call.
fn waits_within(waiting: &Waiting, tool: &str) -> ToolError {
    let why = match waiting {
        Waiting::Approval { reason, .. } => format!("it needs approval: {reason}"),
        Waiting::Client => "it runs at the client".to_owned(),
        Waiting::Input { message, .. } => format!("it needs an answer from a person: {message}"),
        Waiting::Pending { ticket } => format!("its work goes on elsewhere as {ticket}"),
    };
    let kind = match waiting {
        Waiting::Approval { .. } => ErrorKind::RequiresApproval,
        _ => ErrorKind::Unavailable,
    };
    ToolError::new(kind, format!("{why}; a call that another tool makes cannot wait for that"))
        .with_hint(format!("Nothing was run. Call `{tool}` itself."))
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
