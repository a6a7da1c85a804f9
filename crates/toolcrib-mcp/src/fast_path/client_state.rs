//! What is known of a client that stays connected.

use std::sync::{Arc, OnceLock};

use rmcp::RoleServer;
use rmcp::service::{Peer, RequestContext};
use toolcrib_wire::McpData;

use super::request::PlainRequest;
use crate::call::client::Client;
use crate::transport::revision;

/// How a client makes itself known, once the protocol library has found out.
#[derive(Default)]
pub(crate) struct ClientState(OnceLock<Lifecycle>);

enum Lifecycle {
    /// With a handshake; this is what the client said in it.
    Handshake(Arc<Client>),
    /// With every request.
    EachRequest(Peer<RoleServer>),
}

impl ClientState {
    /// The client has ended the handshake. Requests of a client that takes tasks are not plain.
    pub(crate) fn shook_hands(&self, peer: &Peer<RoleServer>) {
        let capabilities = peer.peer_info().map(|client| client.capabilities.clone());
        if let Some(capabilities) = capabilities.filter(|client| !client.supports_tasks()) {
            let peer = Some(peer.clone());
            let client = Client { capabilities, takes: McpData::Objects, peer };
            let _ = self.0.set(Lifecycle::Handshake(Arc::new(client)));
        }
    }

    /// The client has sent a request that the library understood.
    pub(crate) fn heard(&self, context: &RequestContext<RoleServer>) {
        if self.0.get().is_none()
            && context.peer.peer_info().is_none()
            && revision::has_input_required(context)
        {
            let _ = self.0.set(Lifecycle::EachRequest(context.peer.clone()));
        }
    }

    /// Who sent a request; `None` where the library has to find that out.
    pub(super) fn sender(&self, request: &PlainRequest<'_>) -> Option<Arc<Client>> {
        match self.0.get()? {
            Lifecycle::Handshake(client) => request.is_bare().then(|| Arc::clone(client)),
            Lifecycle::EachRequest(peer) => {
                let capabilities = request.client().filter(|client| !client.supports_tasks())?;
                let peer = Some(peer.clone());
                Some(Arc::new(Client { capabilities, takes: McpData::Any, peer }))
            }
        }
    }
}
