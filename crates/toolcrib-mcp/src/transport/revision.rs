//! Differences between the two families of protocol revisions that affect answers.

use rmcp::RoleServer;
use rmcp::model::ProtocolVersion;
use rmcp::service::RequestContext;
use toolcrib_wire::McpData;

/// Whether answers in this revision can ask for input. In earlier ones, the client is sent
/// requests.
pub(crate) fn has_input_required(context: &RequestContext<RoleServer>) -> bool {
    data_form(context) == McpData::Any
}

/// The form of structured data in the revision of a request; objects if the request names none.
pub(crate) fn data_form(context: &RequestContext<RoleServer>) -> McpData {
    // Revisions are ISO dates, so their lexical order is chronological.
    match context.protocol_version() {
        Some(version) if version.as_str() >= ProtocolVersion::V_2026_07_28.as_str() => McpData::Any,
        _ => McpData::Objects,
    }
}
