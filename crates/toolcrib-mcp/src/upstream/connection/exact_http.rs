//! An HTTP client for other servers that sends and receives numbers exactly as written.
//!
//! The protocol library's own client uses JSON types that round numbers. Tool calls are sent here
//! as text instead; all other messages go through the library.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _};
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use toolcrib_net::{TransportClient, TransportError, TransportResponse};
use toolcrib_tool::exact;

use crate::transport::exact_numbers::{FROM_SERVERS, protected};

type HttpTransportError = StreamableHttpError<TransportError>;
type EventStream = BoxStream<'static, Result<Sse, SseError>>;

/// The longest JSON answer in bytes, the same as in the library.
const JSON_MAX: usize = 16 * 1024 * 1024;
/// The longest body of a refusal in bytes, the same as in the library.
const REFUSAL_MAX: usize = 64 * 1024;

/// An HTTP client that keeps numbers exact.
#[derive(Debug, Clone)]
pub(crate) struct ExactHttp(pub(crate) TransportClient);

impl StreamableHttpClient for ExactHttp {
    type Error = TransportError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpTransportError> {
        self.post_message_with_max_sse_event_size(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            JSON_MAX,
        )
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_event: usize,
    ) -> Result<StreamableHttpPostResponse, HttpTransportError> {
        let calls_a_tool = matches!(
            &message,
            ClientJsonRpcMessage::Request(request)
                if matches!(request.request, ClientRequest::CallToolRequest(_))
        );
        if !calls_a_tool {
            let sent = self.0.post_message_with_max_sse_event_size(
                uri,
                message,
                session_id,
                auth_header,
                custom_headers,
                max_event,
            );
            return sent.await.map(|answer| match answer {
                StreamableHttpPostResponse::Sse(events, session) => {
                    StreamableHttpPostResponse::Sse(exact_events(events), session)
                }
                other => other,
            });
        }
        let text = serde_json::to_string(&message)?;
        let mut request = self
            .0
            .post(uri.as_ref())
            .header(ACCEPT, [EVENT_STREAM_MIME_TYPE, JSON_MIME_TYPE].join(", "))
            .header(CONTENT_TYPE, JSON_MIME_TYPE);
        if let Some(token) = auth_header {
            request = request.bearer_auth(token);
        }
        // The library has checked these headers when the session was opened.
        for (name, value) in custom_headers {
            request = request.header(name, value);
        }
        let in_session = session_id.is_some();
        if let Some(session) = session_id {
            request = request.header(HEADER_SESSION_ID, session.as_ref());
        }
        let response = request.body(exact::restore(&text).into_owned()).send().await?;
        answer(response, in_session, max_event).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpTransportError> {
        self.0.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<EventStream, HttpTransportError> {
        self.0
            .get_stream(uri, session_id, last_event_id, auth_header, custom_headers)
            .await
            .map(exact_events)
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_event: usize,
    ) -> Result<EventStream, HttpTransportError> {
        let opened = self.0.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            max_event,
        );
        opened.await.map(exact_events)
    }
}

/// Reads the answer to a call in the form that the library expects.
async fn answer(
    response: TransportResponse,
    in_session: bool,
    max_event: usize,
) -> Result<StreamableHttpPostResponse, HttpTransportError> {
    let (status, headers) = (response.status(), response.headers().clone());
    if let Some(refused) = authorization(status, &headers) {
        return Err(refused);
    }
    match status {
        StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        StatusCode::NOT_FOUND if in_session => return Err(StreamableHttpError::SessionExpired),
        _ => {}
    }
    let text = |name: &HeaderName| Some(headers.get(name)?.to_str().ok()?.to_owned());
    let kind = text(&CONTENT_TYPE);
    let is = |mime: &str| kind.as_deref().is_some_and(|kind| kind.starts_with(mime));
    let session = headers.get(HEADER_SESSION_ID).and_then(|id| Some(id.to_str().ok()?.to_owned()));
    if !status.is_success() {
        let failed = (status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error())
            .then(|| HttpStatusError::new(status.as_u16(), text(&RETRY_AFTER)));
        if let Some(failed) = failed {
            if status == StatusCode::TOO_MANY_REQUESTS || !is(JSON_MIME_TYPE) {
                return Err(failed.into());
            }
            let body = whole(response, REFUSAL_MAX).await;
            return refusal(body.as_deref().ok(), session).map_err(|_| failed.into());
        }
        let body = whole(response, REFUSAL_MAX).await?;
        return refusal(Some(&body), session).map_err(|body| {
            StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}: {body}").into())
        });
    }
    if is(EVENT_STREAM_MIME_TYPE) {
        let bytes = bounded(response.bytes_stream(), max_event);
        let events = SseStream::from_bytes_stream(bytes).boxed();
        return Ok(StreamableHttpPostResponse::Sse(exact_events(events), session));
    }
    if !is(JSON_MIME_TYPE) {
        return Err(StreamableHttpError::UnexpectedContentType(kind));
    }
    let body = whole(response, JSON_MAX).await?;
    let exact = protected(&body, FROM_SERVERS)
        .map_or(Cow::Borrowed(&*body), |exact| Cow::Owned(exact.into_bytes()));
    let message = serde_json::from_slice::<ServerJsonRpcMessage>(&exact).map_err(|error| {
        StreamableHttpError::UnexpectedServerResponse(
            format!("the answer is not an MCP message: {error}").into(),
        )
    })?;
    Ok(StreamableHttpPostResponse::Json(message, session))
}

/// The error for a server that requires authorization.
fn authorization(status: StatusCode, headers: &HeaderMap) -> Option<HttpTransportError> {
    let asked = headers.get(WWW_AUTHENTICATE)?.to_str().ok()?.to_owned();
    match status {
        StatusCode::UNAUTHORIZED => {
            Some(StreamableHttpError::AuthRequired(AuthRequiredError::new(asked)))
        }
        StatusCode::FORBIDDEN => {
            let refused = InsufficientScopeError::new(asked, None);
            Some(StreamableHttpError::InsufficientScope(refused))
        }
        _ => None,
    }
}

/// The protocol error in a refusal, or else its text.
fn refusal(
    body: Option<&[u8]>,
    session: Option<String>,
) -> Result<StreamableHttpPostResponse, String> {
    let body = body.unwrap_or_default();
    match serde_json::from_slice::<ServerJsonRpcMessage>(body) {
        Ok(message @ ServerJsonRpcMessage::Error(_)) => {
            Ok(StreamableHttpPostResponse::Json(message, session))
        }
        _ => Err(String::from_utf8_lossy(body).into_owned()),
    }
}

/// Reads a body of at most this many bytes.
async fn whole(
    response: TransportResponse,
    max_size: usize,
) -> Result<Vec<u8>, HttpTransportError> {
    let mut body = Vec::new();
    let mut bytes = response.bytes_stream();
    while let Some(piece) = bytes.next().await {
        let piece = piece?;
        if piece.len() > max_size - body.len() {
            return Err(StreamableHttpError::ResponseBodyTooLarge { max_size });
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// Wraps an event stream so that it fails if one event is longer than `max` bytes.
fn bounded<E: std::error::Error + Send + Sync + 'static>(
    bytes: impl Stream<Item = Result<Bytes, E>>,
    max: usize,
) -> impl Stream<Item = io::Result<Bytes>> {
    let mut event = SseEventSize::default();
    bytes.map(move |piece| {
        let piece = piece.map_err(io::Error::other)?;
        if event.take(&piece, max) {
            Ok(piece)
        } else {
            Err(io::Error::other(format!("an event is longer than {max} bytes")))
        }
    })
}

/// The size of the event that is being read.
#[derive(Default)]
struct SseEventSize {
    bytes: usize,
    /// Whether its last byte ends a line; carriage returns are ignored.
    line_ended: bool,
}

impl SseEventSize {
    /// Adds bytes; returns `false` if an event is longer than `max`.
    fn take(&mut self, bytes: &[u8], max: usize) -> bool {
        for byte in bytes {
            self.bytes += 1;
            match byte {
                // An empty line ends an event.
                b'\n' if self.line_ended => *self = Self::default(),
                b'\n' => self.line_ended = true,
                b'\r' => {}
                _ => self.line_ended = false,
            }
            if self.bytes > max {
                return false;
            }
        }
        true
    }
}

/// Puts stand-ins into the structured content of answers in an event stream.
fn exact_events(events: EventStream) -> EventStream {
    let exact = |event: Result<Sse, SseError>| {
        event.map(|mut event| {
            if let Some(data) = &event.data
                && let Some(exact) = protected(data.as_bytes(), FROM_SERVERS)
            {
                event.data = Some(exact);
            }
            event
        })
    };
    events.map(exact).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_an_event_is_bounded_but_not_of_a_stream() {
        let event = b"data: 0123456789\r\n\r\n";
        let mut read = SseEventSize::default();
        assert!((0..100).all(|_| read.take(event, 30)));
        assert!(!read.take(&[b'x'; 31], 30));
        let mut cut = SseEventSize::default();
        assert!((0..100).all(|_| event.iter().all(|byte| cut.take(&[*byte], 30))));
    }
}
