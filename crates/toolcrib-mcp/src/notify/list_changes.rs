//! Telling clients that their list of tools is another one.

use std::sync::Arc;

use toolcrib_core::RegistryChanges;

use crate::McpServer;
use crate::catalog::tool_list::ToolList;

/// Waits for changes that a client of this server can see.
pub(crate) struct ListChanges {
    server: McpServer,
    changes: RegistryChanges,
    /// What the client was told of last: one list for all who see the same. `None` once it is another
    /// one, so that a client that is not told yet keeps no old list.
    last: Option<Arc<ToolList>>,
}

impl ListChanges {
    /// Tells of what comes from now on.
    pub(crate) fn new(server: &McpServer) -> Self {
        // In this order: what comes in between is told once too often rather than never.
        let changes = server.changes();
        let last = Some(server.tools(&server.turn()));
        Self { server: server.clone(), changes, last }
    }

    /// Notes that the client is about to be told: what changes from now on is a change again.
    pub(crate) fn tells_now(&mut self) {
        self.last = Some(self.server.tools(&self.server.turn()));
    }

    /// Waits for the next change of what is listed; false once there will be none any more. A change
    /// of tools outside the server's toolset is none, nor is one that is not shown, as of a time limit.
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
    async fn a_change_that_is_not_shown_is_not_told_of() {
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
