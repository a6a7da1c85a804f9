//! The events of a response as they are sent.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, Uri};
use axum::response::Response;
use futures_util::stream;
use tokio::time::timeout;
use tokio_util::sync::DropGuard;
use toolcrib_wire::api::{ApiError, SSE_DONE};
use toolcrib_wire::responses::Include;

use crate::{ResponseLog, ShownResponse};

/// The interval of comments on a silent stream.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How a client wants a response.
pub(super) struct Wanted {
    pub(super) is_stream: bool,
    /// The number of the last event that it has.
    pub(super) after: Option<u64>,
    /// What it wants to see beyond what the request has said.
    pub(super) include: Include,
}

/// Whether a parameter asks for parts of items.
pub(super) fn is_include(key: &str) -> bool {
    key == "include" || key.starts_with("include[")
}

impl Wanted {
    pub(super) fn of(uri: &Uri) -> Result<Self, ApiError> {
        let mut wanted = Self { is_stream: false, after: None, include: Include::default() };
        let wrong = |key: &str, problem: String| {
            ApiError::invalid(problem).with_code("invalid_value").with_param(key)
        };
        for (key, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
            match &*key {
                "stream" => match &*value {
                    "true" => wanted.is_stream = true,
                    "false" => wanted.is_stream = false,
                    _ => return Err(wrong(&key, "`stream` must be true or false".to_owned())),
                },
                "starting_after" => {
                    let number = value.parse().map_err(|_| {
                        let problem = "`starting_after` must be the `sequence_number` of an event";
                        wrong(&key, problem.to_owned())
                    })?;
                    wanted.after = Some(number);
                }
                "include_obfuscation" => {}
                key if is_include(key) => {
                    wanted.include = wanted.include.and(Include::from_names([&*value])?);
                }
                key => {
                    let problem = format!("there is no parameter `{key}`; remove it");
                    return Err(wrong(key, problem).with_code("unknown_parameter"));
                }
            }
        }
        Ok(wanted)
    }
}

/// The log of a response that nobody works on.
pub(super) fn log_of(response: ShownResponse) -> ResponseLog {
    let log = ResponseLog::default();
    log.push(response.events);
    log.end(response.value);
    log
}

/// A stream of events and what ends when its client leaves.
struct Feed {
    log: ResponseLog,
    after: Option<u64>,
    is_done: bool,
    _guard: Option<DropGuard>,
}

/// Sends the events after number `after`, each with one write: there are clients that lose an event that arrives in two
/// pieces.
pub(super) fn events(log: ResponseLog, after: Option<u64>, guard: Option<DropGuard>) -> Response {
    let feed = Feed { log, after, is_done: false, _guard: guard };
    let frames = stream::unfold(feed, async |mut feed| {
        let frame = feed.next().await?;
        Some((Ok::<_, Infallible>(frame), feed))
    });
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // A buffering proxy would delay the events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl Feed {
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_done {
            return None;
        }
        match timeout(KEEP_ALIVE, self.log.next(self.after)).await {
            Err(_) => Some(Bytes::from_static(b": keep-alive\n\n")),
            Ok(Some(event)) => {
                self.after = Some(event.number);
                Some(event.frame)
            }
            Ok(None) => {
                self.is_done = true;
                Some(Bytes::from_static(SSE_DONE.as_bytes()))
            }
        }
    }
}
