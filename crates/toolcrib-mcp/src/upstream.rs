//! Other MCP servers as a source of tools, and of what their tools link to.

mod backoff;
mod confidential;
mod connection;
mod declared;
mod definition;
mod exact_http;
mod failure;
mod http;
mod keeper;
mod link;
mod listening;
mod listing;
mod long_lines;
mod marking;
mod pending;
mod pins;
mod progress;
mod publish;
mod reading;
mod result;
mod review;
mod set;
mod settings;
mod status;
mod tool;

pub use http::HttpServer;
pub use listing::UPSTREAM_TOOLS_MAX;
pub use pins::{MemoryPins, PinStore, Pins};
pub use publish::Unaccepted;
pub use reading::LinkedResources;
pub(crate) use reading::Unread;
pub use review::{OfferedTool, Review, Reviewed};
pub use set::Upstreams;
pub use settings::{StdioServer, Upstream};
pub use status::{UpstreamState, UpstreamStatus};
