//! The id, log line and counters of every request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use toolcrib_core::RemoteTrace;
use toolcrib_core::masking::LiveMask;
use tracing::Instrument as _;

use crate::api::problem;
use crate::observability::traffic::Traffic;

/// The header with the id of a request, in both directions.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The W3C headers of a distributed trace.
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

/// The route of a request that matched none.
const NO_ROUTE: &str = "(other)";

/// The longest client-supplied id that is accepted.
const ID_MAX: usize = 128;

/// The route's path, attached to a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route(pub(crate) &'static str);

/// The client's name, attached to a response.
#[derive(Debug, Clone)]
pub(crate) struct Caller(pub(crate) Arc<str>);

/// The id of the current request.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(pub(crate) Arc<str>);

/// What every request passes on its way in and out.
#[derive(Debug, Clone)]
pub(crate) struct Observer {
    pub(crate) traffic: Arc<Traffic>,
    /// Masks secrets that a client has sent where they would be repeated to it or logged: in the id and in problems.
    pub(crate) mask: LiveMask,
}

/// Gives every request an id, counts it, logs its answer, masks problems, and adds the id to the response.
pub(crate) async fn observe(
    State(Observer { traffic, mask }): State<Observer>,
    mut request: Request<Body>,
    next: Next,
) -> Response {
    let began = Instant::now();
    let under_way = traffic.begin();
    let method = request.method().clone();
    let id = id_of(request.headers(), &mask);
    let span = tracing::info_span!("request", id = %id);
    if RemoteTrace::is_followed()
        && let Some(trace) = trace_of(request.headers())
    {
        trace.take_over(&span);
    }
    request.extensions_mut().insert(RequestId(Arc::clone(&id)));
    let response = next.run(request).instrument(span.clone()).await;
    let mut response = problem::masked(response, &mask).await;
    drop(under_way);
    let took = began.elapsed();
    let status = response.status().as_u16();
    let route = response.extensions().get::<Route>().map_or(NO_ROUTE, |route| route.0);
    let caller = response.extensions().get::<Caller>().map(|caller| &*caller.0);
    traffic.answered(method_label(&method), route, status, took);
    tracing::info!(
        parent: &span,
        method = %method,
        route,
        status,
        client = caller,
        milliseconds = took.as_secs_f64() * 1000.0,
        "answered"
    );
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// The client's own id if it is suitable for a log, else a new one.
fn id_of(headers: &HeaderMap, mask: &LiveMask) -> Arc<str> {
    let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let fits = |id: &&str| {
        (1..=ID_MAX).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
    };
    match given.filter(fits) {
        Some(id) => mask.text(id.to_owned()).into(),
        None => fresh_id(),
    }
}

/// The trace of a request, if its client names exactly one.
fn trace_of(headers: &HeaderMap) -> Option<RemoteTrace<'_>> {
    let mut parents = headers.get_all(TRACE_PARENT).iter();
    let parent = parents.next().filter(|_| parents.next().is_none())?.to_str().ok()?;
    let state = headers.get(TRACE_STATE).and_then(|state| state.to_str().ok());
    Some(RemoteTrace { parent, state })
}

/// 64 bits, unique within a process and very likely across processes. The ids distinguish requests
/// in a log and protect nothing.
fn fresh_id() -> Arc<str> {
    static FIRST: LazyLock<u64> = LazyLock::new(|| getrandom::u64().unwrap_or_default());
    static MADE: AtomicU64 = AtomicU64::new(0);
    named(mixed(FIRST.wrapping_add(MADE.fetch_add(1, Ordering::Relaxed))))
}

/// `req_` and sixteen hexadecimal digits. Written without `format!`, since every request needs one.
fn named(number: u64) -> Arc<str> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut name = *b"req_0000000000000000";
    for (digits, byte) in name[4..].chunks_exact_mut(2).zip(number.to_be_bytes()) {
        digits[0] = DIGITS[usize::from(byte >> 4)];
        digits[1] = DIGITS[usize::from(byte & 15)];
    }
    std::str::from_utf8(&name).unwrap_or_default().into()
}

/// A bijection that makes consecutive numbers look unrelated (the mixing of `SplitMix64`).
fn mixed(number: u64) -> u64 {
    let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let once = (spread ^ (spread >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let twice = (once ^ (once >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    twice ^ (twice >> 31)
}

/// Unknown methods share one label.
fn method_label(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "DELETE" => "DELETE",
        "HEAD" => "HEAD",
        "OPTIONS" => "OPTIONS",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        _ => "(other)",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_requests_have_the_same_id() {
        let ids: BTreeSet<_> = (0..10_000).map(|_| fresh_id()).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.iter().all(|id| id.len() == 20), "{ids:?}");
        for number in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
            assert_eq!(*named(number), format!("req_{number:016x}"));
        }
    }
}
