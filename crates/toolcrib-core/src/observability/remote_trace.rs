//! Distributed traces that a call is part of.
//!
//! The exporter of spans decides which trace a span belongs to; this passes on what the caller has
//! named. It only affects where a span is shown, and is not an identity.

use std::sync::OnceLock;

use tracing::Span;

/// A position in a trace, in the W3C format of `traceparent` and `tracestate`. Callers write it, so
/// it is untrusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteTrace<'a> {
    /// The trace and the span in it.
    pub parent: &'a str,
    /// The vendor-specific state.
    pub state: Option<&'a str>,
}

/// Makes a new span part of a trace. Invalid values are ignored.
pub type FollowTrace = fn(&Span, RemoteTrace<'_>);

static FOLLOW: OnceLock<FollowTrace> = OnceLock::new();

impl RemoteTrace<'_> {
    /// Sets the exporter of this process that follows traces; only the first call has an effect.
    pub fn follow_by(follow: FollowTrace) {
        let _ = FOLLOW.set(follow);
    }

    /// Whether traces are followed; if not, they need not be parsed.
    pub fn is_followed() -> bool {
        FOLLOW.get().is_some()
    }

    /// Makes a span part of this trace, if traces are followed. The span must not have been
    /// entered.
    pub fn take_over(self, span: &Span) {
        if let Some(follow) = FOLLOW.get().filter(|_| !span.is_disabled()) {
            follow(span, self);
        }
    }
}
