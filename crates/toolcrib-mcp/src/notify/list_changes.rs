//! Detects changes of the tool list for notifications.

use std::sync::Arc;

use toolcrib_core::RegistryChanges;

use crate::McpServer;
use crate::catalog::tool_list::ToolList;

/// Waits for changes that a client of this server can see.
pub(crate) struct ListChanges {
    server: McpServer,
    changes: RegistryChanges,
    /// The list that the client was last notified of, shared with clients who see the same list.
    /// `None` when the list has changed since, so that a client that was not notified yet keeps no
    /// old list alive.
    last: Option<Arc<ToolList>>,
}

impl ListChanges {
    /// Reports changes from now on.
    pub(crate) fn new(server: &McpServer) -> Self {
        // In this order, a change in between is reported twice rather than never.
        let changes = server.changes();
        let last = Some(server.tools(&server.turn()));
        Self { server: server.clone(), changes, last }
    }

    /// Records that the client is about to be notified: changes from now on count again.
    pub(crate) fn mark_notified(&mut self) {
        self.last = Some(self.server.tools(&self.server.turn()));
    }

    /// Waits for the next visible change of the tool list; returns false when there will be no
    /// more. Changes outside the server's toolset and of invisible properties, such as a time
    /// limit, do not count.
    pub(crate) async fn next(&mut self) -> bool {
        while self.changes.next().await.is_some() {
            let now = self.server.tools(&self.server.turn());
            let is_known = self.last.as_ref().is_some_and(|last| now.looks_like(last));
            self.last = is_known.then_some(now);
            if !is_known {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;
    use toolcrib_core::{Change, Executor, Mock, Registry, SourceUnit};
    use toolcrib_tool::{Layer, ToolDefinition};

    use super::*;
    use crate::McpOptions;

    #[tokio::test]
    async fn an_invisible_change_sends_no_notification() {
        let registry: Registry = Registry::scratch().build().unwrap();
        let executor = Executor::builder(registry).build();
        let server = McpServer::new(executor.clone(), McpOptions::default());
        let declare = |description: &str, seconds| {
            let definition = ToolDefinition::builder("ping").description(description);
            let definition = definition.timeout(Duration::from_secs(seconds)).build().unwrap();
            let unit = SourceUnit::new(Layer::Host, "host");
            let entries = vec![Mock::tool(definition).answers("pong").entry_of(&unit)];
            executor.registry().apply([Change::Replace { unit, entries }]).unwrap();
        };
        declare("Answer.", 5);
        let mut changes = ListChanges::new(&server);
        declare("Answer.", 6);
        assert!(timeout(Duration::ZERO, changes.next()).await.is_err());
        declare("Answer at once.", 6);
        assert_eq!(timeout(Duration::from_secs(10), changes.next()).await, Ok(true));
    }
}
