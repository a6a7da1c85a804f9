//! HTTP sessions for clients that begin with a handshake: within a session the server can send
//! requests and notifications to the client.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::McpServer;
use crate::handler::Handler;
use crate::session::limits::{McpSessions, SessionRegistry};
use crate::session::streams::SessionStreams;
use crate::transport::http::{McpBody, bare_text};

/// The header that names a request's session.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The default delay before a client reconnects.
pub(crate) const RETRY: Duration = Duration::from_secs(3);

/// The sessions of one service.
#[derive(Clone)]
pub(crate) struct HttpSessions {
    inner: StreamableHttpService<Handler, SessionStreams>,
    manager: Arc<SessionStreams>,
    known: Arc<SessionRegistry>,
}

impl HttpSessions {
    /// `open_for` is how long the stream of a request stays open, `None` until its answer. After
    /// that, and after a broken connection, the client reconnects after the delay in `config`.
    pub(crate) fn new(
        server: &McpServer,
        config: StreamableHttpServerConfig,
        open_for: Option<Duration>,
        sessions: &McpSessions,
    ) -> Self {
        let retry = config.sse_retry.unwrap_or(RETRY);
        let manager = Arc::new(SessionStreams::new(retry, open_for));
        let known = Arc::clone(sessions.known());
        let (server, sessions) = (server.clone(), Arc::clone(&known));
        let inner = StreamableHttpService::new(
            move || Ok(Handler::of_session(server.clone(), Arc::clone(&sessions))),
            Arc::clone(&manager),
            config.with_legacy_session_mode(true).with_json_response(false),
        );
        Self { inner, manager, known }
    }

    pub(crate) async fn handle(&self, request: Request<Full<Bytes>>) -> Response<McpBody> {
        let named = session(request.headers()).map(str::to_owned);
        let ends = request.method() == Method::DELETE;
        let listens = request.method() == Method::GET;
        let is_there = match &named {
            Some(id) if ends => self.is_there(id).await,
            _ => false,
        };
        let mut response = self.inner.handle(request).await;
        if ends && response.status().is_success() {
            // The protocol library accepts (202) any session id. Clients expect 200 or 204 for a
            // session that has ended, and 404 if there is none.
            if !is_there {
                let text = "there is no such session: it has ended or never existed";
                return bare_text(StatusCode::NOT_FOUND, text.to_owned());
            }
            *response.status_mut() = StatusCode::NO_CONTENT;
            *response.body_mut() = Full::default().boxed();
        }
        // Record use only for sessions that exist.
        let id = session(response.headers()).or(named.as_deref()).map(str::to_owned);
        let Some(id) = id.filter(|_| response.status().is_success()) else { return response };
        if ends {
            self.known.ended(&id);
            return response;
        }
        if let Some(oldest) = self.known.record_use(&id, &self.manager) {
            tracing::debug!("too many sessions: the least recently used one was closed");
            oldest.close().await;
        }
        self.known.watch();
        let reading = self.known.reading(&id, listens);
        response.map(|body| {
            body.map_frame(move |frame| {
                // Dropped together with the body.
                let _ = &reading;
                frame
            })
            .boxed()
        })
    }

    async fn is_there(&self, id: &str) -> bool {
        self.manager.has_session(&id.to_owned().into()).await.unwrap_or(false)
    }
}

/// The session id in a request, or in the answer that opens a session.
pub(crate) fn session(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION)?.to_str().ok()
}
