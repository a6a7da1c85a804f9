//! The properties of a calling client that the answer depends on.

use rmcp::RoleServer;
use rmcp::model::ClientCapabilities;
use rmcp::service::{Peer, RequestContext};
use toolcrib_wire::McpData;

use crate::transport::revision;

/// The client that made a call.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) capabilities: ClientCapabilities,
    /// The form of structured data that its revision accepts.
    pub(crate) data_form: McpData,
    /// Where to ask the client while its call waits; `None` if it cannot be reached.
    pub(crate) peer: Option<Peer<RoleServer>>,
}

impl Client {
    /// The client of a request that the protocol library handles.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        Self {
            capabilities: context.client_capabilities().unwrap_or_default(),
            data_form: revision::data_form(context),
            peer: Some(context.peer.clone()),
        }
    }

    /// A client that cannot be asked anything.
    pub(crate) fn alone(capabilities: ClientCapabilities, data_form: McpData) -> Self {
        Self { capabilities, data_form, peer: None }
    }

    /// Whether answers in the client's revision can ask for input. Clients of earlier revisions are
    /// sent requests instead.
    pub(crate) fn has_input_required(&self) -> bool {
        self.data_form == McpData::Any
    }
}
