//! The consent station: policy and approval.

use std::sync::Arc;
use std::time::Duration;

use toolcrib_tool::{Arguments, Body, RawArguments, ToolError, ToolOutput};

use super::checks::{OwnCheck, checked};
use super::pipeline_run::ApprovedCode;
use super::{Candidate, PipelineExit, PipelineRun};
use crate::approval::policy::{DecidedBy, Verdict};
use crate::approval::{
    self, ApprovalKey, ApprovalRequest, Asker, Decision as Decided, Remember, ShownCall,
};
use crate::arguments::corrections::Corrections;
use crate::call::pipeline::output::check_data;
use crate::identity::fingerprint::Fingerprint;
use crate::lifecycle::Instance;
use crate::observability::audit::Decision;
use crate::output::sensitive_arguments::{
    REDACTED, exact_value, redact_injected, redact_whole, sensitive_texts,
};
use crate::registry::ToolSlot;
use crate::suspension::{Grant, Granted, Waiting, client_output};

impl<'a> PipelineRun<'a> {
    /// Passes calls that may run. An approver may change the arguments, which are then checked
    /// again.
    pub(super) async fn consent(
        &mut self,
        slot: &'a ToolSlot,
        call: &mut Candidate<'a>,
    ) -> Result<(), PipelineExit> {
        let state = self.state();
        if self.origin.grant.is_none() && !state.needs_look(&slot.entry.definition) {
            self.record.decision = Decision::Allowed;
            return Ok(());
        }
        // Few calls are asked about, and what asking takes would make every call's state larger.
        Box::pin(self.decide(slot, call)).await
    }

    /// Decides on a call that a rule may be about.
    async fn decide(
        &mut self,
        slot: &'a ToolSlot,
        call: &mut Candidate<'a>,
    ) -> Result<(), PipelineExit> {
        let state = self.state();
        let (by, reason) = match state.verdict(&slot.entry, &call.checked.arguments) {
            Verdict::Deny { by, message } => {
                let refusal = self.denied(&by, &message);
                if let (Some(grant), Decision::Denied { by, shown, .. }) =
                    (self.origin.grant, &mut self.record.decision)
                {
                    // It was approved before a rule was added that denies it.
                    *by = grant.decider().map(str::to_owned);
                    *shown = grant.shown();
                }
                return Err(refusal.into());
            }
            Verdict::Allow { by } if self.origin.grant.is_none() => {
                self.record.decision = Decision::AllowedBy { by: by.to_string() };
                return Ok(());
            }
            Verdict::Allow { by } => (by, String::new()),
            Verdict::Ask { by, reason } => (by, reason),
        };
        if self.is_decided(slot, &call.checked.arguments)? {
            return Ok(());
        }
        let shown = self.shown_to_a_person(slot, call).await?;
        let Some(approver) = state.approver() else {
            let waiting = Waiting::Approval { reason, rule: by.to_string() };
            let leave = self.suspend_showing(slot, &call.checked.arguments, waiting, shown).await;
            self.record.decision = match &leave {
                PipelineExit::Failed(error) => {
                    let reason = format!("{by}: {}", error.message());
                    Decision::Denied { reason, by: None, shown: None }
                }
                _ => Decision::Waiting,
            };
            return Err(leave);
        };
        let timeout = self.config.approval_timeout;
        self.approved_code = Some(ApprovedCode(shown.code.clone()));
        let request = self.request(slot, &call.checked.arguments, shown, &by, reason);
        let asked = AuditedQuestion {
            who: approver.name().to_owned(),
            rule: by.to_string(),
            shown: request.digest().to_string(),
        };
        match approval::ask(approver.as_ref(), &request, timeout).await {
            Decided::Approve { remember } => {
                self.remember(slot, &call.checked.arguments, remember, true);
                self.record.decision = asked.approved(false);
            }
            Decided::ApproveChanged { arguments } => {
                // Recorded even if they are refused, because they are what was approved.
                self.record.arguments = state.shared.audit.as_ref().map(|audit| {
                    let definition = &slot.entry.definition;
                    audit.arguments(Some(definition), &arguments, &state.shared.mask.load())
                });
                self.mending = Corrections::default();
                let arguments = RawArguments::from(arguments);
                call.checked = checked(self.turn, slot, arguments, &mut self.mending)?;
                if let Some(own_check) = call.own_check() {
                    own_check.passes(&call.checked.arguments).await?;
                }
                // An approver cannot override a rule that denies.
                if let Verdict::Deny { by, message } =
                    state.verdict(&slot.entry, &call.checked.arguments)
                {
                    self.record.decision = asked.denied(&format!("{by}: {message}"));
                    return Err(approval::refused(&message).into());
                }
                self.note_change(slot, &call.checked.arguments);
                self.record.decision = asked.approved(true);
            }
            Decided::Deny { message } => {
                self.record.decision = asked.denied(&message);
                return Err(approval::refused(&message).into());
            }
        }
        Ok(())
    }

    /// What the approver is shown. Fails for calls that could not run, which need no approval.
    async fn shown_to_a_person(
        &self,
        slot: &ToolSlot,
        call: &Candidate<'_>,
    ) -> Result<ShownCall, ToolError> {
        let arguments = &call.checked.arguments;
        match &slot.entry.body {
            Body::PerUse(factory) if factory.is_asked_first() => {
                // Closed before the question, so that nothing stays open while a person decides.
                let instance = Instance::own(&slot.entry.body, &call.cx, call.limit).await?;
                let own_check = call.check_of(&instance);
                own_check.passes(arguments).await?;
                self.shown(slot, arguments, Some(own_check))
            }
            _ => self.shown(slot, arguments, call.own_check()),
        }
    }

    /// Whether the call was already approved, by a grant or in its session.
    fn is_decided(&mut self, slot: &ToolSlot, arguments: &Arguments) -> Result<bool, ToolError> {
        let state = self.state();
        if let Some(grant) = self.origin.grant {
            let now = state.shared.now();
            let identity = &state.identity;
            let injected = self.injected(slot);
            grant.check(self.id, slot.fingerprint(), arguments, injected, identity, now)?;
            if waits_for_approval(grant) {
                self.approved_code = Some(ApprovedCode(grant.suspension().shown().code.clone()));
            }
            grant.spend()?;
            if let Granted::Run { remember } = grant.granted() {
                let own = grant.decider().is_none_or(|who| who == self.turn.name());
                self.remember(slot, arguments, *remember, own);
            }
            if grant.has_changed_arguments() {
                self.note_change(slot, arguments);
            }
            self.record.decision = decision_of(grant);
            return Ok(true);
        }
        if let Some(repetition) = self.origin.repetition {
            // It was approved before it began to wait for its nested call.
            if repetition.grant().is_changed() {
                self.note_change(slot, arguments);
            }
            self.record.decision = decision_of(repetition.grant());
            return Ok(true);
        }
        if !state.asks_anew() && self.is_remembered(slot, arguments) {
            let by = "an earlier approval in this session".to_owned();
            self.record.decision =
                Decision::Approved { by, rule: None, changed: false, shown: None };
            return Ok(true);
        }
        Ok(false)
    }

    /// Notes for whoever reads the answer that the call's approver has changed its arguments.
    fn note_change(&mut self, slot: &ToolSlot, arguments: &Arguments) {
        let mask = self.state().shared.mask.load();
        let arguments = redact_whole(&slot.entry.definition, &exact_value(arguments), &mask);
        self.mending.changed(arguments);
    }

    /// Fails if the code changed since it was approved.
    pub(super) fn check_code(&self, own: Option<OwnCheck<'_>>) -> Result<(), ToolError> {
        let (Some(own), Some(ApprovedCode(approved))) = (own, &self.approved_code) else {
            return Ok(());
        };
        if own.code() == *approved {
            return Ok(());
        }
        let message = "the tool changed since the call was made: a file that it runs was changed";
        Err(ToolError::denied(message).with_hint("Make the call again."))
    }

    /// Ends a suspended call that was cancelled. This comes first: whether its tool was changed or
    /// removed meanwhile makes no difference to a call that does not run.
    pub(super) fn apply_cancellation(&mut self) -> Result<(), ToolError> {
        let grant = self.origin.grant;
        let Some(grant) = grant.filter(|one| matches!(one.granted(), Granted::Cancelled)) else {
            return Ok(());
        };
        self.check_call(grant)?;
        let by = grant.decider().map(str::to_owned);
        self.record.decision = Decision::Cancelled { by, shown: grant.shown() };
        self.worked = self.worked_before(grant);
        grant.refusal().map_or(Ok(()), Err)
    }

    /// The duration for the statistics of a call that ends here; `None` if it waited for an approval
    /// and so has not run.
    fn worked_before(&self, grant: &Grant) -> Option<Duration> {
        (!waits_for_approval(grant)).then(|| self.started.elapsed())
    }

    /// Fails if the grant is for another call.
    fn check_call(&self, grant: &Grant) -> Result<(), ToolError> {
        let kept = grant.suspension();
        if kept.identity() != &*self.turn.state.identity || kept.bound_call_id() != self.id.as_str()
        {
            return Err(ToolError::denied("the decision was about another call"));
        }
        Ok(())
    }

    /// Ends a suspended call whose decision was about another definition, or needs no run. This
    /// comes early, so that a changed tool is reported before problems of the arguments.
    pub(super) fn apply_decision(&mut self, slot: &ToolSlot) -> Result<(), PipelineExit> {
        let fingerprint = slot.fingerprint();
        if let Some(repetition) = self.origin.repetition {
            repetition.check_definition(fingerprint)?;
        }
        let Some(grant) = self.origin.grant else { return Ok(()) };
        if grant.is_approved() {
            // The audit log names the approver even if the call is refused now.
            self.record.decision = decision_of(grant);
        }
        grant.check_definition(fingerprint)?;
        match self.settled(slot, grant) {
            None => Ok(()),
            Some(outcome) => {
                self.worked = self.worked_before(grant);
                Err(outcome.into())
            }
        }
    }

    /// The answer of a suspended call that does not run: it was denied, or its output was
    /// submitted.
    fn settled(&mut self, slot: &ToolSlot, grant: &Grant) -> Option<Result<ToolOutput, ToolError>> {
        if let Err(refusal) = self.check_call(grant) {
            return Some(Err(refusal));
        }
        if let Some(refusal) = grant.refusal() {
            let reason = refusal.message().to_owned();
            let by = grant.decider().map(str::to_owned);
            self.record.decision = Decision::Denied { reason, by, shown: grant.shown() };
            return Some(Err(refusal));
        }
        let Granted::Output(output) = grant.granted() else { return None };
        if grant.has_changed_arguments() {
            let arguments = grant.suspension().arguments().to_owned();
            self.note_change(slot, &Arguments::from_validated(arguments));
        }
        self.record.decision = Decision::Allowed;
        Some(self.delivered(slot, output.clone()))
    }

    /// Validates a client's output against the tool's output schema.
    fn delivered(&self, slot: &ToolSlot, output: ToolOutput) -> Result<ToolOutput, ToolError> {
        let shared = &self.turn.state.shared;
        let output = client_output(&slot.entry.definition, output)?;
        // Masked before validation, because validation errors quote parts of the value.
        let output = shared.mask.outcome(Ok(output))?;
        let schemas = shared.registry.schemas();
        check_data(&slot.entry.definition, schemas, output, self.config.data_bytes)
    }

    fn denied(&mut self, by: &DecidedBy, message: &str) -> ToolError {
        self.record.decision =
            Decision::Denied { reason: format!("{by}: {message}"), by: None, shown: None };
        approval::refused(message)
    }

    fn request(
        &self,
        slot: &ToolSlot,
        arguments: &Arguments,
        shown: ShownCall,
        by: &DecidedBy,
        reason: String,
    ) -> ApprovalRequest {
        let state = self.state();
        let now = state.shared.now();
        ApprovalRequest {
            id: None,
            call_id: self.id.clone(),
            tool: slot.entry.name().to_owned(),
            definition: Some(Arc::clone(&slot.entry.definition)),
            arguments: arguments.clone(),
            shown,
            asker: Asker {
                tenant: state.values.tenant().cloned(),
                user: state.values.user().cloned(),
                client: state.client.as_deref().map(str::to_owned),
            },
            created_at: now,
            identity: Arc::clone(&state.identity),
            session: state.session.clone(),
            rule: by.to_string(),
            reason,
            obstacle: None,
            expires_at: match self.config.approval_timeout {
                Some(timeout) => now.after(timeout),
                None => crate::storage::clock::Timestamp::NEVER,
            },
        }
    }

    /// `own` states whether the caller itself decided.
    fn remember(&self, slot: &ToolSlot, arguments: &Arguments, scope: Remember, own: bool) {
        let state = self.state();
        if let Some(session) = state.session.as_deref().filter(|_| scope != Remember::Nothing) {
            let arguments = Fingerprint::of_arguments(arguments);
            let approved = self.approved(slot, session, own);
            state.shared.approvals.remember(approved, arguments, scope);
        }
    }

    fn is_remembered(&self, slot: &ToolSlot, arguments: &Arguments) -> bool {
        let state = self.state();
        let Some(session) = state.session.as_deref() else { return false };
        let arguments = || Fingerprint::of_arguments(arguments);
        let holds =
            |own| state.shared.approvals.holds(self.approved(slot, session, own), arguments);
        holds(false) || state.may_approve && holds(true)
    }

    fn approved<'s>(&'s self, slot: &ToolSlot, session: &'s str, own: bool) -> ApprovalKey<'s> {
        ApprovalKey {
            session,
            identity: &self.turn.state.identity,
            definition: slot.fingerprint(),
            injected: self.injected(slot),
            own,
        }
    }

    /// The fingerprint of the values injected into this call.
    fn injected(&self, slot: &ToolSlot) -> Fingerprint {
        Fingerprint::of_injected(&slot.entry.definition, &self.turn.state.values)
    }

    /// What an approver may see of the call. Fails if the tool cannot plan the call: the call would
    /// fail as well.
    fn shown(
        &self,
        slot: &ToolSlot,
        arguments: &Arguments,
        own: Option<OwnCheck<'_>>,
    ) -> Result<ShownCall, ToolError> {
        let state = self.state();
        let (definition, mask) = (&slot.entry.definition, state.shared.mask.load());
        let plan = own.map(|own| own.plan(arguments)).transpose()?.flatten();
        let injected = definition.injections().iter().filter_map(|injection| {
            let value = state.values.get(injection.context_key())?;
            let parameter = injection.parameter();
            Some((parameter.to_owned(), redact_injected(definition, parameter, value, &mask)))
        });
        let arguments = exact_value(arguments);
        let sensitive = sensitive_texts(definition, &arguments);
        let hidden = |text: String| {
            let replaced = |text: String, hidden: &String| text.replace(hidden, REDACTED);
            let text = sensitive.iter().fold(text, replaced);
            mask.text(&text).into_owned()
        };
        Ok(ShownCall {
            arguments: redact_whole(definition, &arguments, &mask),
            injected: injected.collect(),
            plan: plan.map(|plan| plan.map(hidden).to_value()),
            code: own.and_then(OwnCheck::code),
            called_by: self.origin.lineage.callers(),
        })
    }
}

/// A question that an approver answered while the caller waited, for the audit log.
struct AuditedQuestion {
    who: String,
    rule: String,
    shown: String,
}

impl AuditedQuestion {
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

/// The decision on a call that waited, for the audit log.
fn decision_of(grant: &Grant) -> Decision {
    let Waiting::Approval { rule, .. } = grant.suspension().waiting() else {
        // An answer to the tool's question approves nothing.
        return Decision::Allowed;
    };
    Decision::Approved {
        by: grant.decider().unwrap_or(approval::THE_HOST).to_owned(),
        rule: Some(rule.clone()),
        changed: grant.is_changed(),
        shown: grant.shown(),
    }
}

fn waits_for_approval(grant: &Grant) -> bool {
    matches!(grant.suspension().waiting(), Waiting::Approval { .. })
}
