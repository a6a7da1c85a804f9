//! What is remembered of a client as long as it is connected.
#![expect(deprecated, reason = "older revisions have log levels, and clients that set them")]

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use rmcp::model::LoggingLevel;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::McpServer;
use crate::fast_path::ClientState;
use crate::notify::notifier::Changes;

/// Resources that one client may follow.
const FOLLOWED_MAX: usize = 1_000;

/// One connection, or one session of several.
pub(crate) struct Connection {
    ended: CancellationToken,
    _ended_when_dropped: DropGuard,
    level: Mutex<Option<LoggingLevel>>,
    followed: Mutex<BTreeSet<String>>,
    /// Until somebody tells the client. Noted from the first moment: the message that a client is ready
    /// may be worked on after its first request, and what changes in between must not be lost.
    changes: Mutex<Option<Changes>>,
    /// For requests that need no protocol library.
    pub(crate) client_state: ClientState,
}

impl Connection {
    /// One that ends at the latest when the server does.
    pub(crate) fn new(server: &McpServer) -> Self {
        let ended = server.closing().child_token();
        let guard = ended.clone().drop_guard();
        Self {
            ended,
            _ended_when_dropped: guard,
            level: Mutex::new(None),
            followed: Mutex::default(),
            changes: Mutex::new(Some(Changes::of(server))),
            client_state: ClientState::default(),
        }
    }

    /// What the client is told of; nothing the second time.
    pub(crate) fn changes(&self) -> Option<Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Cancelled when it is over.
    pub(crate) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// From how bad on the client wants to be told; `None` where it never said.
    pub(crate) fn level(&self) -> Option<LoggingLevel> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_level(&self, level: LoggingLevel) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    /// The resources whose changes the client is told of.
    pub(crate) fn followed(&self) -> BTreeSet<String> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Follows a resource from now on; false where it follows as many as it may.
    pub(crate) fn follow(&self, uri: String) -> bool {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.contains(&uri) || (followed.len() < FOLLOWED_MAX && followed.insert(uri))
    }

    /// Follows a resource no longer.
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
    use crate::notify::notifier::Told;

    impl Told for mpsc::UnboundedSender<()> {
        async fn tools(&self) -> bool {
            self.send(()).is_ok()
        }

        async fn catalog(&self, _: CatalogChange) -> bool {
            true
        }
    }

    #[tokio::test]
    async fn what_changes_before_it_is_known_that_a_client_is_ready_is_told_then() {
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
