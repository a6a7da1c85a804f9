//! The two families of protocol revisions, as far as answers differ between them.

use rmcp::RoleServer;
use rmcp::model::ProtocolVersion;
use rmcp::service::RequestContext;

/// Which shape of answers a client understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Revision {
    /// Up to 2025-11-25: structured content and output schemas are objects.
    Objects,
    /// From 2026-07-28 on: structured content is any JSON.
    AnyJson,
}

impl Revision {
    /// The revision a request was sent under; the older shape where it says nothing.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        // Revisions are ISO dates, so their text order is their order in time.
        match context.protocol_version() {
            Some(version) if version.as_str() >= ProtocolVersion::V_2026_07_28.as_str() => {
                Self::AnyJson
            }
            _ => Self::Objects,
        }
    }
}
