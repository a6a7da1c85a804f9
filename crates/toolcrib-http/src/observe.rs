//! What is known of every request: its id, a line in the log, a count.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument as _;

use crate::traffic::Traffic;

/// The header that carries the id of a request, both ways.
pub(crate) const REQUEST_ID: &str = "x-request-id";

/// The longest id of a client's that is taken over.
const ID_MAX: usize = 128;

/// The path of the endpoint that has answered, as the routes have it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route(pub(crate) &'static str);

/// Who has asked.
#[derive(Debug, Clone)]
pub(crate) struct Caller(pub(crate) Arc<str>);

/// The id of the request being answered.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(pub(crate) Arc<str>);

/// Gives every request an id, and counts and logs how it was answered.
pub(crate) async fn observe(
    State(traffic): State<Arc<Traffic>>,
    mut request: Request<Body>,
    next: Next,
) -> Response {
    let began = Instant::now();
    let id = id_of(&request);
    let method = request.method().clone();
    let span = tracing::info_span!("request", id = %id);
    request.extensions_mut().insert(RequestId(Arc::clone(&id)));
    let under_way = traffic.begin();
    let mut response = next.run(request).instrument(span.clone()).await;
    drop(under_way);
    let took = began.elapsed();
    let route = response.extensions().get::<Route>().map_or("(other)", |route| route.0);
    let status = response.status().as_u16();
    traffic.answered(method_label(&method), route, status, took);
    let caller = response.extensions().get::<Caller>().map(|caller| Arc::clone(&caller.0));
    tracing::info!(
        parent: &span,
        method = %method,
        route,
        status,
        client = caller.as_deref(),
        milliseconds = took.as_secs_f64() * 1000.0,
        "answered"
    );
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// The client's own id, where it is one that a log can hold; else a new one.
fn id_of(request: &Request<Body>) -> Arc<str> {
    let given = request.headers().get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let fits = |id: &&str| {
        (1..=ID_MAX).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
    };
    match given.filter(fits) {
        Some(id) => id.into(),
        None => fresh_id(),
    }
}

/// 64 random bits: ids of requests are told apart in a log, and protect nothing.
fn fresh_id() -> Arc<str> {
    let bits = getrandom::u64().unwrap_or_default();
    format!("req_{bits:016x}").into()
}

/// Methods that nobody has heard of are one label.
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
