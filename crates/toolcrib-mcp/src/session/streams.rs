//! Sessions whose streams may end before their answer: the client reconnects for the rest.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _, stream};
use http::request::Parts;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, GetExtensions as _, JsonRpcMessage, ProtocolVersion,
    RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{
    EventStore, RestoreOutcome, ServerSseMessage, SessionId, SessionManager,
};

use crate::session::answers::AnswerTransport;
use crate::session::event_log::EventLog;
use crate::transport::open_requests::{OpenRequests, id_text, in_use};

const VERSION: &str = "mcp-protocol-version";

/// The sessions of one service, and the events sent in them.
pub(crate) struct SessionStreams {
    inner: LocalSessionManager,
    log: EventLog,
    /// The requests of each session that have not been answered yet.
    open: Mutex<HashMap<SessionId, OpenRequests>>,
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
        let inner = inner.with_event_store(Arc::new(log.clone()));
        Self { inner, log, open: Mutex::default(), open_for }
    }

    /// Removes events whose clients have had enough time to reconnect.
    pub(crate) fn remove_expired(&self) {
        self.log.remove_expired();
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, OpenRequests>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open requests of a session; of one that has ended, none.
    fn open(&self, session: &SessionId) -> OpenRequests {
        self.sessions().get(session).cloned().unwrap_or_default()
    }

    fn watched<T>(&self, session: &SessionId, transport: T) -> AnswerTransport<T> {
        let open = OpenRequests::default();
        self.sessions().insert(session.clone(), open.clone());
        AnswerTransport::new(transport, open)
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

/// The event that answers a request whose id is in use.
fn refusal(request: &RequestId) -> ServerSseMessage {
    let error = in_use(&id_text(request));
    ServerSseMessage::from_message(JsonRpcMessage::error(error, Some(request.clone())))
}

impl SessionManager for SessionStreams {
    type Error = LocalSessionManagerError;
    type Transport = AnswerTransport<<LocalSessionManager as SessionManager>::Transport>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.inner.create_session().await?;
        let transport = self.watched(&id, transport);
        Ok((id, transport))
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
        self.sessions().remove(id);
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let open_for = self.open_for(&message);
        let open = self.open(id);
        if let JsonRpcMessage::Request(request) = &message
            && !open.open(&id_text(&request.id))
        {
            return Ok(stream::iter([refusal(&request.id)]).left_stream());
        }
        let stream = self.inner.create_stream(id, message).await?;
        // The first event has told the client its id and when to reconnect.
        Ok(stream.take_until(tokio::time::sleep(open_for)).right_stream())
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        if let JsonRpcMessage::Notification(message) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &message.notification
            && let Some(request) = &cancelled.params.request_id
        {
            self.open(id).close(&id_text(request));
        }
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
        Ok(match self.inner.restore_session(id.clone()).await? {
            RestoreOutcome::Restored(transport) => {
                RestoreOutcome::Restored(self.watched(&id, transport))
            }
            RestoreOutcome::AlreadyPresent => RestoreOutcome::AlreadyPresent,
            _ => RestoreOutcome::NotSupported,
        })
    }

    fn event_store(&self) -> Option<Arc<dyn EventStore>> {
        self.inner.event_store()
    }
}
