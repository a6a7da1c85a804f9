//! Sessions over HTTP, for clients that begin with a handshake: in them a client can be asked and told
//! things.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::McpServer;
use crate::handler::Handler;
use crate::session::registry::{KnownSessions, McpSessions};
use crate::session::streams::SessionStreams;
use crate::transport::http::{McpBody, bare_text};

/// The header of requests that belong to a session.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// When clients come back where nothing else is said.
pub(crate) const RETRY: Duration = Duration::from_secs(3);

/// The sessions of one service.
#[derive(Clone)]
pub(crate) struct HttpSessions {
    inner: StreamableHttpService<Handler, SessionStreams>,
    manager: Arc<SessionStreams>,
    known: Arc<KnownSessions>,
}

impl HttpSessions {
    /// `open_for` is how long the stream of a request is kept open, `None` until its answer; then, and
    /// where a connection breaks, the client comes back after the time that `config` says.
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
            // The protocol library accepts (202) whatever id is named. Clients expect 200 or 204 of a
            // session that has ended, and 404 where there is none.
            if !is_there {
                let text = "there is no such session: it has ended or was never begun";
                return bare_text(StatusCode::NOT_FOUND, text.to_owned());
            }
            *response.status_mut() = StatusCode::NO_CONTENT;
            *response.body_mut() = Full::default().boxed();
        }
        // What a client names is noted only where there is such a session.
        let id = session(response.headers()).or(named.as_deref()).map(str::to_owned);
        let Some(id) = id.filter(|_| response.status().is_success()) else { return response };
        if ends {
            self.known.ended(&id);
            return response;
        }
        if let Some(oldest) = self.known.heard(&id, &self.manager) {
            tracing::debug!("the least recently used of too many sessions is ended");
            oldest.close().await;
        }
        self.known.watch();
        let reading = self.known.reading(&id, listens);
        response.map(|body| {
            body.map_frame(move |frame| {
                // Dropped with the body.
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

/// The session that a message says it belongs to, or that an answer says has begun.
pub(crate) fn session(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION)?.to_str().ok()
}
