//! Reads request bodies within a size and time limit, and parses unambiguous JSON.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use toolcrib_json::{Cursor, Kind, Tape};

use crate::api::problem::Problem;

/// Limits of request bodies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimits {
    pub(crate) bytes: usize,
    pub(crate) time: Duration,
}

/// Reads the body before the request is handled.
pub(crate) async fn collect(
    State(limits): State<BodyLimits>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    // Messages of a WebSocket have the same limit.
    parts.extensions.insert(limits);
    match read(body, limits).await {
        Ok(bytes) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Err(problem) => problem.into_response(),
    }
}

/// Reads a whole body.
async fn read<B>(body: B, limits: BodyLimits) -> Result<Bytes, Problem>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>>,
{
    // A body that announces its length is refused before it is sent.
    if body.size_hint().lower() > limits.bytes as u64 {
        return Err(too_large(limits));
    }
    let mut whole = pin!(Limited::new(body, limits.bytes).collect());
    // Most bodies arrive with the headers and need no timer.
    let collected = match poll_fn(|cx| Poll::Ready(whole.as_mut().poll(cx))).await {
        Poll::Ready(collected) => collected,
        Poll::Pending => tokio::time::timeout(limits.time, whole).await.map_err(|_| {
            let detail = format!("the body did not arrive within {:?}", limits.time);
            Problem::new(StatusCode::REQUEST_TIMEOUT, detail)
        })?,
    };
    match collected {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large(limits)),
        Err(error) => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            format!("the request body ended early: {error}"),
        )),
    }
}

fn too_large(limits: BodyLimits) -> Problem {
    let detail =
        format!("the request body is longer than {} bytes: send a smaller body", limits.bytes);
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

/// A JSON body, parsed once and strictly: no duplicate keys, no lone surrogates, bounded depth.
pub(crate) struct JsonBody(Tape<'static>);

impl JsonBody {
    /// Parses a body. An empty one is an empty object.
    pub(crate) fn parse(headers: &HeaderMap, body: &Bytes) -> Result<Self, Problem> {
        let text = if body.is_empty() { "{}" } else { text(headers, body)? };
        match toolcrib_json::parse_owned(text.to_owned()) {
            Ok(tape) => {
                object("the body", tape.root())?;
                Ok(Self(tape))
            }
            Err((error, _)) => {
                let detail = format!("the body is not unambiguous JSON: {error}");
                Err(Problem::new(StatusCode::BAD_REQUEST, detail).kind("invalid_json"))
            }
        }
    }

    /// Deserializes the body.
    pub(crate) fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Problem> {
        T::deserialize(self.0.root()).map_err(|error| {
            let place = if error.pointer().is_empty() { "the body" } else { error.pointer() };
            Problem::unprocessable(format!("{place}: {}", error.message()))
        })
    }

    /// The root value.
    pub(crate) fn root(&self) -> Cursor<'_> {
        self.0.root()
    }
}

/// Refuses anything but an object: serde would also read a struct from a list.
pub(crate) fn object(place: &str, value: Cursor<'_>) -> Result<(), Problem> {
    if value.kind() == Kind::Object {
        return Ok(());
    }
    Err(Problem::unprocessable(format!("{place}: an object is expected")))
}

fn text<'a>(headers: &HeaderMap, body: &'a Bytes) -> Result<&'a str, Problem> {
    let declared = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = declared.map(|value| value.split(';').next().unwrap_or(value).trim());
    if !essence.is_some_and(|essence| essence.eq_ignore_ascii_case("application/json")) {
        let detail = "send JSON, with the header `Content-Type: application/json`";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    std::str::from_utf8(body).map_err(|error| {
        let detail = format!("the body is not UTF-8 text: {error}");
        Problem::new(StatusCode::BAD_REQUEST, detail).kind("invalid_json")
    })
}

/// The arguments of a call, whose text is taken from the body unchanged ([`arguments_at`]), so that
/// validation sees exactly what was sent.
#[derive(Debug, Default)]
pub(crate) struct RawArguments;

impl<'de> Deserialize<'de> for RawArguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for RawArguments {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, or the text of one")
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(self)
    }
}

/// The text of `arguments` in a call. A string is used as the text of the arguments, as models
/// write them; missing arguments are empty.
pub(crate) fn arguments_at(call: Cursor<'_>) -> String {
    call.get("arguments").map_or_else(String::new, |value| match value.as_str() {
        Some(text) => text.into_owned(),
        None => value.source().to_owned(),
    })
}
