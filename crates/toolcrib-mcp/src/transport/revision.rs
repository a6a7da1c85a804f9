//! The two families of protocol revisions, as far as answers differ between them.

use rmcp::RoleServer;
use rmcp::model::ProtocolVersion;
use rmcp::service::RequestContext;
use toolcrib_wire::McpData;

/// Whether the revision knows answers that ask for input; before it, the client is asked itself.
pub(crate) fn has_input_required(context: &RequestContext<RoleServer>) -> bool {
    takes(context) == McpData::Any
}

/// What the revision that a request was sent under takes as structured data; objects where the
/// request says nothing.
pub(crate) fn takes(context: &RequestContext<RoleServer>) -> McpData {
    // Revisions are ISO dates, so their text order is their order in time.
    match context.protocol_version() {
        Some(version) if version.as_str() >= ProtocolVersion::V_2026_07_28.as_str() => McpData::Any,
        _ => McpData::Objects,
    }
}
