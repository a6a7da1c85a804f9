//! Links calls to the traces that their clients name, in `_meta` or in the request's headers.

use http::request::Parts;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use toolcrib_core::RemoteTrace;
use tracing::Span;

/// The span of a call that is part of a client's trace; none if traces are not collected.
pub(crate) fn span(trace: Option<RemoteTrace<'_>>) -> Option<Span> {
    let trace = trace.filter(|_| RemoteTrace::is_followed())?;
    let span = tracing::info_span!(
        parent: None,
        "tools/call",
        otel.kind = "server",
        mcp.method.name = "tools/call",
    );
    trace.take_over(&span);
    Some(span)
}

/// The trace that a request names. Headers count only within a session, whose requests run in
/// another task; for other requests the listener has already read the headers.
pub(crate) fn named(
    context: &RequestContext<RoleServer>,
    is_in_session: bool,
) -> Option<RemoteTrace<'_>> {
    if let Some(parent) = context.meta.get_traceparent() {
        return Some(RemoteTrace { parent, state: context.meta.get_tracestate() });
    }
    let headers = &context.extensions.get::<Parts>().filter(|_| is_in_session)?.headers;
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    Some(RemoteTrace { parent: text("traceparent")?, state: text("tracestate") })
}
