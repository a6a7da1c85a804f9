//! The client that made a call, as far as the answer depends on it.

use rmcp::RoleServer;
use rmcp::model::ClientCapabilities;
use rmcp::service::{Peer, RequestContext};
use toolcrib_wire::McpData;

use crate::transport::revision;

/// The client that made a call.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) capabilities: ClientCapabilities,
    /// What its revision takes as structured data.
    pub(crate) takes: McpData,
    /// Where the client is asked while its call waits; `None` where it cannot be reached.
    pub(crate) peer: Option<Peer<RoleServer>>,
}

impl Client {
    /// The client that sent a request to the protocol library.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        Self {
            capabilities: context.client_capabilities().unwrap_or_default(),
            takes: revision::takes(context),
            peer: Some(context.peer.clone()),
        }
    }

    /// A client that cannot be reached.
    pub(crate) fn alone(capabilities: ClientCapabilities, takes: McpData) -> Self {
        Self { capabilities, takes, peer: None }
    }

    /// Whether the client's revision has answers that ask for input. Clients of earlier revisions are sent
    /// requests instead.
    pub(crate) fn has_input_required(&self) -> bool {
        self.takes == McpData::Any
    }
}
