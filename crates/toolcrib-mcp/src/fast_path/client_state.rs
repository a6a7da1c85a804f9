//! The fast path's knowledge of a connected client.

use std::sync::{Arc, OnceLock};

use rmcp::RoleServer;
use rmcp::service::{Peer, RequestContext};
use toolcrib_wire::McpData;

use super::request::PlainRequest;
use crate::call::client::Client;
use crate::transport::revision;

/// How a client identifies itself, once the protocol library has found out.
#[derive(Default)]
pub(crate) struct ClientState(OnceLock<Lifecycle>);

enum Lifecycle {
    /// In a handshake; this is what the client said in it.
    Handshake(Arc<Client>),
    /// In every request.
    EachRequest(Peer<RoleServer>),
}

impl ClientState {
    /// Records that the handshake is complete. Requests of a client that supports tasks are not
    /// plain.
    pub(crate) fn handshake_completed(&self, peer: &Peer<RoleServer>) {
        let capabilities = peer.peer_info().map(|client| client.capabilities.clone());
        if let Some(capabilities) = capabilities.filter(|client| !client.supports_tasks()) {
            let peer = Some(peer.clone());
            let client = Client { capabilities, data_form: McpData::Objects, peer };
            let _ = self.0.set(Lifecycle::Handshake(Arc::new(client)));
        }
    }

    /// Records a request that the library has understood.
    pub(crate) fn request_seen(&self, context: &RequestContext<RoleServer>) {
        if self.0.get().is_none()
            && context.peer.peer_info().is_none()
            && revision::has_input_required(context)
        {
            let _ = self.0.set(Lifecycle::EachRequest(context.peer.clone()));
        }
    }

    /// The sender of a request; `None` if the library has to find out.
    pub(super) fn sender(&self, request: &PlainRequest<'_>) -> Option<Arc<Client>> {
        match self.0.get()? {
            Lifecycle::Handshake(client) => request.is_bare().then(|| Arc::clone(client)),
            Lifecycle::EachRequest(peer) => {
                let capabilities = request.client().filter(|client| !client.supports_tasks())?;
                let peer = Some(peer.clone());
                Some(Arc::new(Client { capabilities, data_form: McpData::Any, peer }))
            }
        }
    }
}
