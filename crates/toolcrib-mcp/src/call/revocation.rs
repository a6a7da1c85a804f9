//! Marks running calls as revoked when their client's access is revoked.

use toolcrib_core::Turn;

use crate::McpServer;

/// Marks the calls of a turn as revoked when dropped, if their client's access was revoked. Drop it
/// before the calls.
pub(crate) struct RevokedOnDrop {
    server: McpServer,
    turn: Turn,
}

impl RevokedOnDrop {
    pub(crate) fn new(server: &McpServer, turn: &Turn) -> Self {
        Self { server: server.clone(), turn: turn.clone() }
    }
}

impl Drop for RevokedOnDrop {
    fn drop(&mut self) {
        if self.server.is_revoked() {
            self.turn.revoke();
        }
    }
}
