//! Sessions over HTTP, for clients that begin with a handshake: in them a client can be asked and told
//! things.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::Full;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::McpServer;
use crate::connection::Connection;
use crate::handler::Handler;
use crate::http_service::McpBody;
use crate::session_streams::SessionStreams;

/// Sessions at once. Some take no more than what they remember, some a few tasks.
const SESSIONS_MAX: usize = 1_024;
/// A session of which nothing is heard for so long is over.
const IDLE: Duration = Duration::from_secs(24 * 60 * 60);
/// The header of requests that belong to a session.
pub(crate) const SESSION: &str = "mcp-session-id";
/// When clients come back where nothing else is said.
pub(crate) const RETRY: Duration = Duration::from_secs(3);

/// The sessions of one service.
#[derive(Clone)]
pub(crate) struct HttpSessions {
    inner: StreamableHttpService<Handler, SessionStreams>,
    manager: Arc<SessionStreams>,
    used: Arc<Mutex<LastUsed>>,
}

impl HttpSessions {
    /// `open_for` is how long the stream of a request is kept open, `None` until its answer; then, and
    /// where a connection breaks, the client comes back after the time that `config` says.
    pub(crate) fn new(
        server: &McpServer,
        config: StreamableHttpServerConfig,
        open_for: Option<Duration>,
    ) -> Self {
        let retry = config.sse_retry.unwrap_or(RETRY);
        let manager = Arc::new(SessionStreams::new(IDLE, retry, open_for));
        let server = server.clone();
        let inner = StreamableHttpService::new(
            move || {
                let connection = Arc::new(Connection::new(&server));
                Ok(Handler::of_connection(server.clone(), connection))
            },
            Arc::clone(&manager),
            config.with_legacy_session_mode(true).with_json_response(false),
        );
        Self { inner, manager, used: Arc::default() }
    }

    pub(crate) async fn handle(&self, request: Request<Full<Bytes>>) -> Response<McpBody> {
        let named = session(request.headers());
        let response = self.inner.handle(request).await;
        // What a client names is noted only where there is such a session.
        if let Some(id) = session(response.headers()).or(named)
            && response.status().is_success()
        {
            let oldest = self.used.lock().unwrap_or_else(PoisonError::into_inner).note(id);
            if let Some(oldest) = oldest {
                tracing::debug!("the least recently used of too many sessions is ended");
                let _ = self.manager.close_session(&oldest.into()).await;
            }
        }
        response
    }
}

fn session(headers: &HeaderMap) -> Option<String> {
    headers.get(SESSION)?.to_str().ok().map(str::to_owned)
}

/// When each session was last used.
#[derive(Default)]
struct LastUsed(HashMap<String, Instant>);

impl LastUsed {
    /// Notes a use; returns the session that has to go, if there are too many.
    fn note(&mut self, id: String) -> Option<String> {
        self.0.insert(id, Instant::now());
        if self.0.len() <= SESSIONS_MAX {
            return None;
        }
        let oldest = self.0.iter().min_by_key(|(_, used)| **used).map(|(id, _)| id.clone())?;
        self.0.remove(&oldest);
        Some(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_of_too_many_sessions_goes() {
        let mut used = LastUsed::default();
        for number in 0..SESSIONS_MAX {
            assert_eq!(used.note(number.to_string()), None);
        }
        // Used again, the first is not the oldest any more.
        assert_eq!(used.note("0".to_owned()), None);
        assert_eq!(used.note("new".to_owned()), Some("1".to_owned()));
        assert_eq!(used.0.len(), SESSIONS_MAX);
    }
}
