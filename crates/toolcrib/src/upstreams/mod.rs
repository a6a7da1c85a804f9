//! Other MCP servers: those that manifests and the host name, and the connections that follow them.

mod connections;
#[cfg(feature = "manifests")]
mod declaration;

pub(crate) use connections::{Connections, DeclaredUpstreams};

#[cfg(feature = "manifests")]
pub use declaration::upstream;
