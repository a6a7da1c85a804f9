//! Telling running calls that their client's access was revoked.

use toolcrib_core::Turn;

use crate::McpServer;

/// Marks the calls of a turn as revoked when it is dropped, if their client's access was. Drop it before
/// the calls.
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
