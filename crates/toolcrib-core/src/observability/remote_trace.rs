//! Traces that began elsewhere, and that a call is part of.
//!
//! Which trace a span belongs to is for whoever exports spans to know; this says what a caller has
//! named. It decides where a span is shown, and nothing else: it is nobody's identity.

use std::sync::OnceLock;

use tracing::Span;

/// A place in a trace, as the W3C writes it in `traceparent` and `tracestate`. It may be anything: callers
/// write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteTrace<'a> {
    /// The trace and the span in it.
    pub parent: &'a str,
    /// What the systems on the way have noted.
    pub state: Option<&'a str>,
}

/// Makes a span that has just begun part of a trace. What names no trace changes nothing.
pub type FollowTrace = fn(&Span, RemoteTrace<'_>);

static FOLLOW: OnceLock<FollowTrace> = OnceLock::new();

impl RemoteTrace<'_> {
    /// Has traces followed from now on, by the one exporter of this process; the first call counts.
    pub fn follow_by(follow: FollowTrace) {
        let _ = FOLLOW.set(follow);
    }

    /// Whether somebody would follow a trace: if not, nothing need be read that names one.
    pub fn is_followed() -> bool {
        FOLLOW.get().is_some()
    }

    /// Makes a span part of this trace, where somebody follows it. The span must not have been entered.
    pub fn take_over(self, span: &Span) {
        if let Some(follow) = FOLLOW.get().filter(|_| !span.is_disabled()) {
            follow(span, self);
        }
    }
}
