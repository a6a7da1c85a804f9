//! What is written down of every call, also of one that is dropped: spans, log and audit.

use std::time::Duration;

use tokio::time::Instant;
use toolcrib_tool::{CallId, RawArguments, ToolError};
use tracing::Span;

use super::{Source, Withdrawn};
use crate::audit::{AuditArguments, AuditOutcome, AuditRecord, Decision, arguments_hash};
use crate::redaction::redact_text;
use crate::registry::Slot;
use crate::telemetry::{self, Call};
use crate::turn::State;

/// The record of a call under way. Dropped without an end, the call was withdrawn.
pub(super) struct Record<'a> {
    state: &'a State,
    call: Call<'a>,
    slot: Option<&'a Slot>,
    started: Instant,
    span: Span,
    /// What the audit log says of the arguments, where there is one.
    arguments: Option<Arguments>,
    /// What was decided about it.
    pub(super) decision: Decision,
    ended: bool,
}

enum Arguments {
    Hash(String),
    Redacted(serde_json::Value),
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
        let call = Call { name, known: slot.is_some(), id: id.as_str() };
        let redacted = || {
            let definition = slot.map(|slot| &*slot.entry.definition);
            redact_text(definition, raw.as_str(), &state.shared.mask)
        };
        let span = telemetry::span(call);
        span.in_scope(|| telemetry::started(call, redacted));
        let arguments = state.shared.audit.as_ref().map(|audit| match audit.arguments {
            AuditArguments::Hash => Arguments::Hash(arguments_hash(raw.as_str())),
            AuditArguments::Redacted => Arguments::Redacted(redacted()),
        });
        let decision = Decision::Undecided;
        Self { state, call, slot, started, span, arguments, decision, ended: false }
    }

    /// The span of the call.
    pub(super) fn span(&self) -> &Span {
        &self.span
    }

    /// The call has ended; how long it took.
    pub(super) fn end(mut self, error: Option<&ToolError>, source: Source) -> Duration {
        self.ended = true;
        self.write(error, source)
    }

    fn write(&mut self, error: Option<&ToolError>, source: Source) -> Duration {
        let duration = self.started.elapsed();
        telemetry::ended(&self.span, self.call, duration, error);
        let Some(audit) = &self.state.shared.audit else { return duration };
        let mut record =
            AuditRecord::new(self.state.shared.now().into(), self.call.id, self.call.label())
                .with_caller(&self.state.values, self.state.session.as_deref());
        if let Some(slot) = self.slot {
            record.source = Some(slot.entry.source.to_string());
            record.version = slot.entry.definition.version().map(str::to_owned);
            record.definition = slot.fingerprint();
        }
        match self.arguments.take() {
            Some(Arguments::Hash(hash)) => record.arguments_hash = Some(hash),
            Some(Arguments::Redacted(arguments)) => record.arguments = Some(arguments),
            None => {}
        }
        record.decision = std::mem::take(&mut self.decision);
        record.outcome =
            error.map_or(AuditOutcome::Success, |error| AuditOutcome::Failure(error.kind()));
        record.cached = source == Source::Kept;
        record.skipped = source == Source::Shared;
        record.duration = duration;
        audit.sink.record(&record);
        duration
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let error = Withdrawn::ByCaller.error(self.started, self.slot);
            self.write(Some(&error), Source::Own);
        }
    }
}
