//! The streamable HTTP transport as a `tower` service.

use std::borrow::Cow;
use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use rmcp::model::ErrorData;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use toolcrib_tool::BoxFuture;

use crate::fast_path::HttpFastPath;
use crate::handler::Handler;
use crate::notify::stream::NotificationBody;
use crate::session::http::{HttpSessions, RETRY, SESSION};
use crate::transport::exact_numbers::{
    FROM_CLIENTS, protect_headers, protected, restored_response,
};
use crate::transport::malformed::{Unreadable, unreadable};
use crate::{McpServer, McpSessions};

const JSON: &str = "application/json";

/// The body of a response.
pub type McpBody = BoxBody<Bytes, Infallible>;

/// Options of the HTTP service.
#[derive(Debug, Clone)]
pub struct McpHttpOptions {
    allowed_hosts: Vec<String>,
    any_host: bool,
    allowed_origins: Vec<String>,
    body_limit: usize,
    open_for: Option<Duration>,
    retry: Duration,
    sessions: McpSessions,
}

impl Default for McpHttpOptions {
    /// Loopback names only, no origin, 4 MiB, streams that stay open until their answer, reconnects
    /// after 3 s, sessions of one client.
    fn default() -> Self {
        Self {
            allowed_hosts: ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).into(),
            any_host: false,
            allowed_origins: Vec::new(),
            body_limit: 4 * 1024 * 1024,
            open_for: None,
            retry: RETRY,
            sessions: McpSessions::default(),
        }
    }
}

impl McpHttpOptions {
    /// Sets the allowed `Host` values, `name` (any port) or `name:port`. An empty list allows none.
    #[must_use]
    pub fn allowed_hosts(mut self, hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allowed_hosts = hosts.into_iter().map(Into::into).collect();
        self
    }

    /// Allows every `Host`: the caller has to check it first.
    #[must_use]
    pub fn any_host(mut self) -> Self {
        self.any_host = true;
        self
    }

    /// Sets the allowed `Origin` values, `scheme://name:port`, or `scheme://name:*` for any port.
    /// Requests without an `Origin` do not come from a web page and are allowed.
    #[must_use]
    pub fn allowed_origins(mut self, origins: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allowed_origins = origins.into_iter().map(Into::into).collect();
        self
    }

    /// Sets how long the event stream of a request stays open in a session. A stream that ends
    /// before its answer does not end the call: the client reconnects for the rest, as after a
    /// broken connection. Applies to requests of revision 2025-11-25 and later. Default: until the
    /// answer.
    #[must_use]
    pub fn open_for(mut self, time: Duration) -> Self {
        self.open_for = Some(time);
        self
    }

    /// Sets how long a client waits before it reconnects to a stream that ended before its answer.
    #[must_use]
    pub fn retry(mut self, time: Duration) -> Self {
        self.retry = time;
        self
    }

    /// Sets the sessions of the service: use the same value for all services of one client, and
    /// another value for each client. Services made from clones of these options share their
    /// session limit.
    #[must_use]
    pub fn sessions(mut self, sessions: McpSessions) -> Self {
        self.sessions = sessions;
        self
    }

    /// Sets the size of the largest request body in bytes. Larger bodies are answered with status
    /// 413.
    #[must_use]
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }
}

/// MCP over streamable HTTP: a `tower` service for one path of a router. Made by
/// [`McpServer::http_service`].
///
/// A client of a revision up to 2025-11-25 that begins with `initialize` gets a session, in which
/// the server can send it requests and notifications. Sessions are bounded and end when they are
/// not used ([`McpSessions`]): a client that names a session that has ended gets status 404. Each
/// request in a session is answered with an event stream. If the connection breaks, the client
/// reconnects with the id of the last event it has seen (`Last-Event-ID`) and gets the rest;
/// answers are kept for five minutes.
///
/// All other requests stand alone and are answered with plain JSON, or with an event stream if
/// there are messages before the answer. The service checks `Host` and `Origin` but has no
/// authentication: put that in front of it.
///
/// A body that is not JSON or not an MCP message is answered with status 400 and a JSON-RPC error.
/// Refusals below JSON-RPC (405, 406, 413, 415) have a plain text body without a content type.
#[derive(Clone)]
pub struct McpHttpService(Arc<Inner>);

/// A single pointer, since a router clones its services for each request.
struct Inner {
    fast: HttpFastPath,
    alone: StreamableHttpService<Handler, NeverSessionManager>,
    sessions: HttpSessions,
    body_limit: usize,
    notifications_ended: CancellationToken,
}

impl McpServer {
    /// Creates a service that serves this server's tools over streamable HTTP.
    pub fn http_service(&self, options: McpHttpOptions) -> McpHttpService {
        let McpHttpOptions { mut allowed_hosts, allowed_origins, body_limit, .. } = options;
        let McpHttpOptions { open_for, retry, sessions, any_host, .. } = options;
        if any_host {
            allowed_hosts.clear();
        } else if allowed_hosts.is_empty() {
            // For the library an empty list allows every host, so use a name that cannot exist.
            allowed_hosts.push("nobody.invalid".to_owned());
        }
        let fast = HttpFastPath::new(self.clone(), allowed_hosts.clone());
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_sse_retry(Some(retry))
            .with_allowed_hosts(allowed_hosts)
            .with_allowed_origins(allowed_origins)
            .enforce_origin_validation()
            .with_max_request_body_bytes(body_limit)
            .with_cancellation_token(self.closing().clone());
        let server = self.clone();
        let sessions = HttpSessions::new(self, config.clone(), open_for, &sessions);
        let alone = StreamableHttpService::new(
            move || Ok(Handler::of_request(server.clone())),
            Arc::new(NeverSessionManager::default()),
            config,
        );
        let notifications_ended = self.notifications_ended().clone();
        McpHttpService(Arc::new(Inner { fast, alone, sessions, body_limit, notifications_ended }))
    }
}

impl Inner {
    async fn answer<B>(&self, request: Request<B>) -> Response<McpBody>
    where
        B: http_body::Body<Data: Buf + Send, Error: Into<Box<dyn Error + Send + Sync>>>
            + Send
            + 'static,
    {
        // Only a POST has a body to read, and only JSON is parsed.
        if request.method() != Method::POST || !is_json(request.headers()) {
            return self.by_library(request.map(|_| Full::default()), false).await;
        }
        let (parts, body) = request.into_parts();
        // A body that announces its length is refused before it is read.
        if body.size_hint().lower() > self.body_limit as u64 {
            return too_large(self.body_limit);
        }
        match Limited::new(body, self.body_limit).collect().await {
            Ok(body) => self.message(parts, body.to_bytes()).await,
            Err(error) if error.is::<LengthLimitError>() => too_large(self.body_limit),
            Err(error) => {
                bare_text(StatusCode::BAD_REQUEST, format!("the request body ended early: {error}"))
            }
        }
    }

    /// Answers a POST with a JSON content type.
    async fn message(&self, mut parts: Parts, body: Bytes) -> Response<McpBody> {
        if !parts.headers.contains_key(SESSION)
            && let Some(response) = self.fast.answer(&parts, &body).await
        {
            return response;
        }
        if let Some(error) = unreadable(&body) {
            return json_rpc(error);
        }
        let body = match protected(&body, FROM_CLIENTS) {
            Some(exact) => {
                protect_headers(&mut parts.headers, &exact);
                Bytes::from(exact)
            }
            None => body,
        };
        let begins = begins_a_session(&body);
        let request = Request::from_parts(parts, Full::new(body));
        let response = self.by_library(request, begins).await;
        if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            // The media type is right and the JSON is well-formed: the message itself is not
            // understood.
            return json_rpc(ErrorData::invalid_request(
                "the body is JSON but not a single MCP message: send one JSON-RPC 2.0 request, \
                 notification or response with the parameters its method asks for",
                None,
            ));
        }
        response
    }

    /// Has the protocol library answer a request that stands alone or belongs to a session,
    /// according to its header or body. Boxed, because the library's future is much larger than the
    /// fast path needs.
    fn by_library(
        &self,
        request: Request<Full<Bytes>>,
        begins: bool,
    ) -> BoxFuture<'_, Response<McpBody>> {
        Box::pin(async move {
            if begins || request.headers().contains_key(SESSION) {
                let only_tells = request.method() == Method::GET;
                let response = restored_response(self.sessions.handle(request).await).await;
                if only_tells {
                    return response
                        .map(|body| NotificationBody::until(&self.notifications_ended, body));
                }
                response
            } else {
                restored_response(self.alone.handle(request).await).await
            }
        })
    }
}

impl<B> tower::Service<Request<B>> for McpHttpService
where
    B: http_body::Body<Data: Buf + Send, Error: Into<Box<dyn Error + Send + Sync>>>
        + Send
        + 'static,
{
    type Response = Response<McpBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = Arc::clone(&self.0);
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}

/// Whether a message is the first of a handshake. An unreadable message is not.
fn begins_a_session(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        method: Option<Cow<'a, str>>,
    }
    let message = serde_json::from_slice::<Message<'_>>(body);
    message.is_ok_and(|message| message.method.as_deref() == Some("initialize"))
}

fn is_json(headers: &HeaderMap) -> bool {
    let declared = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    declared.is_some_and(|value| {
        if value == JSON {
            return true;
        }
        let essence = value.split_once(';').map_or(value, |(essence, _)| essence);
        essence.trim().eq_ignore_ascii_case(JSON)
    })
}

fn too_large(limit: usize) -> Response<McpBody> {
    bare_text(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the request body is longer than {limit} bytes: send a smaller body"),
    )
}

pub(crate) fn bare_text(status: StatusCode, text: String) -> Response<McpBody> {
    let mut response = Response::new(Full::new(Bytes::from(text)).boxed());
    *response.status_mut() = status;
    response
}

/// A JSON-RPC error for a message that cannot be read or understood.
fn json_rpc(error: impl Into<Unreadable>) -> Response<McpBody> {
    let body = Bytes::from(error.into().answer());
    let mut response = Response::new(Full::new(body).boxed());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(JSON));
    response
}
