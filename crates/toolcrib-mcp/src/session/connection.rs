//! State kept for a client while it is connected.
#![expect(deprecated, reason = "older revisions have log levels, and clients that set them")]

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use rmcp::model::LoggingLevel;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::McpServer;
use crate::fast_path::ClientState;
use crate::notify::notifier::RecordedChanges;

/// The number of resources that one client may subscribe to.
const FOLLOWED_MAX: usize = 1_000;

/// One connection, or one of several sessions.
pub(crate) struct Connection {
    ended: CancellationToken,
    _ended_when_dropped: DropGuard,
    level: Mutex<Option<LoggingLevel>>,
    followed: Mutex<BTreeSet<String>>,
    /// Taken by whoever notifies the client. Recorded from the start: the `initialized` message may
    /// be handled after the first request, and no change in between may be lost.
    changes: Mutex<Option<RecordedChanges>>,
    /// Client state for the fast path.
    pub(crate) client_state: ClientState,
}

impl Connection {
    /// Creates a connection that ends when the server closes, if not before.
    pub(crate) fn new(server: &McpServer) -> Self {
        let ended = server.closing().child_token();
        let guard = ended.clone().drop_guard();
        Self {
            ended,
            _ended_when_dropped: guard,
            level: Mutex::new(None),
            followed: Mutex::default(),
            changes: Mutex::new(Some(RecordedChanges::of(server))),
            client_state: ClientState::default(),
        }
    }

    /// Takes the recorded changes; `None` the second time.
    pub(crate) fn changes(&self) -> Option<RecordedChanges> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// A token that is cancelled when the connection ends.
    pub(crate) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// The lowest log level that the client wants; `None` if it has not set one.
    pub(crate) fn level(&self) -> Option<LoggingLevel> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_level(&self, level: LoggingLevel) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    /// The resources that the client is subscribed to.
    pub(crate) fn followed(&self) -> BTreeSet<String> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Subscribes to a resource; returns false if the client has reached its limit.
    pub(crate) fn follow(&self, uri: String) -> bool {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.contains(&uri) || (followed.len() < FOLLOWED_MAX && followed.insert(uri))
    }

    /// Unsubscribes from a resource.
    pub(crate) fn unfollow(&self, uri: &str) {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc;
    use toolcrib_core::{Change, Executor, Mock, Registry, SourceUnit};
    use toolcrib_tool::{Layer, ToolDefinition};

    use super::*;
    use crate::McpOptions;
    use crate::notify::catalog_changes::CatalogChange;
    use crate::notify::notifier::ChangeListener;

    impl ChangeListener for mpsc::UnboundedSender<()> {
        async fn tools(&self) -> bool {
            self.send(()).is_ok()
        }

        async fn catalog(&self, _: CatalogChange) -> bool {
            true
        }
    }

    #[tokio::test]
    async fn changes_before_initialized_are_reported_afterwards() {
        let registry: Registry = Registry::scratch().build().unwrap();
        let executor = Executor::builder(registry).build();
        let server = McpServer::new(executor.clone(), McpOptions::default());
        let connection = Connection::new(&server);

        let definition = ToolDefinition::builder("ping").description("Answer.").build().unwrap();
        let unit = SourceUnit::new(Layer::Host, "host");
        let entries = vec![Mock::tool(definition).answers("pong").entry_of(&unit)];
        executor.registry().apply([Change::Replace { unit, entries }]).unwrap();

        let (client, mut told) = mpsc::unbounded_channel();
        let changes = connection.changes().unwrap();
        assert!(connection.changes().is_none());
        tokio::spawn(async move { changes.tell(&client, BTreeSet::new).await });
        let told = tokio::time::timeout(Duration::from_secs(30), told.recv()).await;
        assert_eq!(told, Ok(Some(())));
    }
}
