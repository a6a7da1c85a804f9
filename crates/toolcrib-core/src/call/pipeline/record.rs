//! The record of every call, even of dropped ones: spans, log and audit.

use tokio::time::Instant;
use toolcrib_tool::{CallId, RawArguments};
use tracing::Span;

use super::interruption::{Interruption, ReachedStage};
use crate::call::cancellation::Cancellation;
use crate::call::turn::TurnState;
use crate::observability::audit::trail::{Audited, AuditedArguments, End};
use crate::observability::audit::{AuditOutcome, Decision};
use crate::observability::spans;
use crate::observability::spans::SpanCall;
use crate::output::sensitive_arguments::redact_text;
use crate::registry::ToolSlot;

/// The record of a running call. If it is dropped without an end, the call was withdrawn.
pub(super) struct CallRecord<'a> {
    state: &'a TurnState,
    id: &'a CallId,
    call: SpanCall<'a>,
    slot: Option<&'a ToolSlot>,
    started: Instant,
    cancellation: &'a Cancellation,
    span: Span,
    /// The arguments for the audit log, if there is one.
    pub(super) arguments: Option<AuditedArguments>,
    /// The decision on it.
    pub(super) decision: Decision,
    ended: bool,
}

impl<'a> CallRecord<'a> {
    pub(super) fn begin(
        state: &'a TurnState,
        id: &'a CallId,
        name: &'a str,
        slot: Option<&'a ToolSlot>,
        raw: &RawArguments,
        (started, cancellation): (Instant, &'a Cancellation),
    ) -> Self {
        let mask = &state.shared.mask;
        let call = SpanCall { name, known: slot.is_some(), id: id.as_str(), mask: Some(mask) };
        // Evaluated lazily: usually nobody reads it.
        let definition = || slot.map(|slot| &*slot.entry.definition);
        let span = spans::span(call);
        let redacted = || redact_text(definition(), raw.as_str(), &mask.load());
        span.in_scope(|| spans::started(call, redacted));
        let audit = state.shared.audit.as_ref();
        let arguments =
            audit.map(|audit| audit.arguments(definition(), raw.as_str(), &mask.load()));
        let decision = Decision::Undecided;
        let ended = false;
        Self { state, id, call, slot, started, cancellation, span, arguments, decision, ended }
    }

    /// When the call arrived.
    pub(super) fn started(&self) -> Instant {
        self.started
    }

    /// The span of the call.
    pub(super) fn span(&self) -> &Span {
        &self.span
    }

    /// The call has been answered.
    pub(super) fn end(mut self, end: End<'_>) {
        self.ended = true;
        self.write(end);
    }

    fn write(&mut self, end: End<'_>) {
        let waits = end.outcome == AuditOutcome::Waiting;
        spans::ended(&self.span, self.call, end.duration, end.error.filter(|_| !waits));
        if let (Some(audit), Some(arguments)) = (&self.state.shared.audit, self.arguments.take()) {
            audit.record(Audited {
                tool: self.slot.map(|slot| (&slot.entry, slot.fingerprint())),
                values: &self.state.values,
                client: self.state.client.as_deref(),
                session: self.state.session.as_deref(),
                arguments,
                decision: std::mem::take(&mut self.decision),
                id: self.id.as_str(),
                end,
                mask: &self.state.shared.mask.load(),
            });
        }
    }
}

impl Drop for CallRecord<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let definition = self.slot.map(|slot| &*slot.entry.definition);
            let interruption = Interruption::of(self.cancellation);
            let error = &interruption.error(ReachedStage::Work, self.started, definition);
            let end = End::failed(error, self.started.elapsed());
            self.write(end.revoked_if(interruption == Interruption::Revoked));
        }
    }
}
