//! What is written down of every call, also of one that is dropped: spans, log and audit.

use tokio::time::Instant;
use toolcrib_tool::{CallId, RawArguments};
use tracing::Span;

use super::interruption::{Interruption, Reached};
use crate::audit::Decision;
use crate::audit::trail::{Audited, AuditedArguments, End};
use crate::redaction::redact_text;
use crate::registry::Slot;
use crate::telemetry::{self, Call};
use crate::turn::State;

/// The record of a call under way. Dropped without an end, the call was withdrawn.
pub(super) struct Record<'a> {
    state: &'a State,
    id: &'a CallId,
    call: Call<'a>,
    slot: Option<&'a Slot>,
    started: Instant,
    span: Span,
    /// What the audit log says of the arguments, where there is one.
    pub(super) arguments: Option<AuditedArguments>,
    /// What was decided about it.
    pub(super) decision: Decision,
    ended: bool,
}

impl<'a> Record<'a> {
    pub(super) fn begin(
        state: &'a State,
        id: &'a CallId,
        name: &'a str,
        slot: Option<&'a Slot>,
        raw: &RawArguments,
        started: Instant,
    ) -> Self {
        let mask = &state.shared.mask;
        let call = Call { name, known: slot.is_some(), id: id.as_str(), mask: Some(mask) };
        // Not looked at where nobody reads it: it has to come from far away.
        let definition = || slot.map(|slot| &*slot.entry.definition);
        let span = telemetry::span(call);
        let redacted = || redact_text(definition(), raw.as_str(), &mask.load());
        span.in_scope(|| telemetry::started(call, redacted));
        let audit = state.shared.audit.as_ref();
        let arguments =
            audit.map(|audit| audit.arguments(definition(), raw.as_str(), &mask.load()));
        let decision = Decision::Undecided;
        Self { state, id, call, slot, started, span, arguments, decision, ended: false }
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
        telemetry::ended(&self.span, self.call, end.duration, end.error);
        if let (Some(audit), Some(arguments)) = (&self.state.shared.audit, self.arguments.take()) {
            audit.record(Audited {
                tool: self.slot.map(|slot| (&slot.entry, slot.fingerprint())),
                values: &self.state.values,
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

impl Drop for Record<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let definition = self.slot.map(|slot| &*slot.entry.definition);
            let error = &Interruption::Cancelled.error(Reached::Work, self.started, definition);
            self.write(End::failed(error, self.started.elapsed()));
        }
    }
}
