//! Sessions whose streams may end before their answer: the client reconnects for the rest.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _, stream};
use http::request::Parts;
use rmcp::model::{
    ClientJsonRpcMessage, GetExtensions as _, JsonRpcMessage, ProtocolVersion, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{
    EventStore, RestoreOutcome, ServerSseMessage, SessionId, SessionManager,
};

use crate::session::event_log::EventLog;

const VERSION: &str = "mcp-protocol-version";

/// The sessions of one service, and the events sent in them.
pub(crate) struct SessionStreams {
    inner: LocalSessionManager,
    log: EventLog,
    /// How long the stream of a request stays open; `None` for until its answer.
    open_for: Option<Duration>,
}

impl SessionStreams {
    /// Clients are told to reconnect after `retry`. Sessions end when they are closed: the
    /// library's own idle limit also counts the server's messages, so that it never ends a session
    /// of a busy server.
    pub(crate) fn new(retry: Duration, open_for: Option<Duration>) -> Self {
        let mut inner = LocalSessionManager::default();
        inner.session_config.keep_alive = None;
        inner.session_config.sse_retry = Some(retry);
        let log = EventLog::default();
        Self { inner: inner.with_event_store(Arc::new(log.clone())), log, open_for }
    }

    /// Removes events whose clients have had enough time to reconnect.
    pub(crate) fn remove_expired(&self) {
        self.log.remove_expired();
    }

    /// How long the stream of this request stays open: clients of older revisions treat its end as
    /// the end of the connection.
    fn open_for(&self, message: &ClientJsonRpcMessage) -> Duration {
        let version = || {
            let JsonRpcMessage::Request(request) = message else { return None };
            request.request.extensions().get::<Parts>()?.headers.get(VERSION)?.to_str().ok()
        };
        let open_for = self.open_for.filter(|_| {
            // Revisions are ISO dates, so their lexical order is chronological.
            version().is_some_and(|version| version >= ProtocolVersion::V_2025_11_25.as_str())
        });
        open_for.unwrap_or(Duration::MAX)
    }
}

impl SessionManager for SessionStreams {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.inner.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.inner.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.log.end_of_session(id);
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let open_for = self.open_for(&message);
        let stream = self.inner.create_stream(id, message).await?;
        // The first event has told the client its id and when to reconnect.
        Ok(stream.take_until(tokio::time::sleep(open_for)))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.inner.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let stream = self.inner.create_standalone_stream(id).await?;
        // In this order, events in between are in both streams and sent once.
        let missed = self.log.undelivered(id);
        let log = self.log.clone();
        let rest = stream.filter(move |event| ready(log.deliver(event)));
        Ok(stream::iter(missed).chain(rest))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let log = self.log.clone();
        let stream = self.inner.resume(id, last_event_id).await?;
        Ok(stream.inspect(move |event| {
            log.deliver(event);
        }))
    }

    async fn restore_session(
        &self,
        id: SessionId,
    ) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        self.inner.restore_session(id).await
    }

    fn event_store(&self) -> Option<Arc<dyn EventStore>> {
        self.inner.event_store()
    }
}
