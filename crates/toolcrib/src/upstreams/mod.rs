//! Other MCP servers, which manifests and the host declare, and the connections that follow the
//! declarations.

mod connections;
#[cfg(feature = "manifests")]
mod declaration;

pub(crate) use connections::{Connections, DeclaredUpstreams};

#[cfg(feature = "manifests")]
pub use declaration::upstream;
