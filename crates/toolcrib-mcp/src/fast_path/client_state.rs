//! What the short way knows of a client that stays connected.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{ClientCapabilities, RequestId};
use rmcp::service::{Peer, RequestContext};
use toolcrib_wire::McpData;

use super::message::Message;
use crate::fast_path::started_call::Begun;
use crate::transport::revision;

/// Calls of one client that are handed over at once. More wait for the protocol library to begin.
const HANDED_OVER_MAX: usize = 1_000;

/// How a client speaks, once the protocol library has found out, and what is handed over to it.
#[derive(Default)]
pub(crate) struct Standing {
    /// Never known of a client whose messages are not plain.
    takes: OnceLock<McpData>,
    begun: Mutex<HashMap<RequestId, Begun>>,
}

impl Standing {
    /// The client has shaken hands.
    pub(crate) fn shook_hands(&self, peer: &Peer<RoleServer>) {
        let plain = |client: &ClientCapabilities| !client.supports_tasks();
        if peer.peer_info().is_some_and(|client| plain(&client.capabilities)) {
            let _ = self.takes.set(McpData::Objects);
        }
    }

    /// The client has sent a request that was understood, if it is one of those without a handshake.
    pub(crate) fn heard(&self, context: &RequestContext<RoleServer>) {
        if self.takes.get().is_none()
            && context.peer.peer_info().is_none()
            && revision::has_input_required(context)
        {
            let _ = self.takes.set(McpData::Any);
        }
    }

    /// What the message's revision takes as structured data, where the message says as much of its
    /// client as others have.
    pub(super) fn takes(&self, message: &Message<'_>) -> Option<McpData> {
        let takes = *self.takes.get()?;
        let plain = match takes {
            McpData::Objects => message.is_bare(),
            // A client that takes tasks may get one.
            McpData::Any => message.client().is_some_and(|client| !client.supports_tasks()),
        };
        plain.then_some(takes)
    }

    /// Whether a call of that id may be handed over.
    pub(super) fn has_room_for(&self, id: &RequestId) -> bool {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.len() < HANDED_OVER_MAX && !begun.contains_key(id)
    }

    /// Keeps a call until its request has come to its handler.
    pub(super) fn hand_over(&self, id: RequestId, call: Begun) {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).insert(id, call);
    }

    /// The call that was handed over under that id, if one was.
    pub(super) fn take(&self, id: &RequestId) -> Option<Begun> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }
}
