//! Telling clients that their list of tools is another one.

use std::sync::Arc;

use toolcrib_core::RegistryChanges;
use toolcrib_tool::ToolDefinition;

use crate::McpServer;

/// Waits for changes that a client of this server can see.
pub(crate) struct ListChanges {
    server: McpServer,
    changes: RegistryChanges,
    last: Vec<Arc<ToolDefinition>>,
}

impl ListChanges {
    /// Tells of what comes from now on.
    pub(crate) fn new(server: &McpServer) -> Self {
        // In this order: what comes in between is told once too often rather than never.
        let changes = server.changes();
        let last = server.turn().definitions().to_vec();
        Self { server: server.clone(), changes, last }
    }

    /// Waits for the next change of what is listed; false once there will be none any more. A change
    /// of tools outside the server's toolset is none.
    pub(crate) async fn next(&mut self) -> bool {
        while self.changes.next().await.is_some() {
            let turn = self.server.turn();
            let now = turn.definitions();
            let is_same = |(one, two): (&Arc<_>, &Arc<_>)| Arc::ptr_eq(one, two) || one == two;
            if now.len() != self.last.len() || !now.iter().zip(&self.last).all(is_same) {
                self.last = now.to_vec();
                return true;
            }
        }
        false
    }
}
