//! Other MCP servers as sources of tools, resources and prompts.

mod connection;
mod offers;
mod restart;
mod review;
mod set;
mod settings;
mod status;
mod tool;

pub use crate::upstream::connection::http::HttpServer;
pub(crate) use crate::upstream::offers::{OfferedPrompt, UpstreamOffers};
pub use crate::upstream::review::pins::{MemoryPins, PinStore, Pins};
pub use crate::upstream::tool::linked_resources::LinkedResources;
pub(crate) use crate::upstream::tool::linked_resources::UnreadResource;
pub use crate::upstream::tool::listing::UPSTREAM_TOOLS_MAX;
pub use crate::upstream::tool::publish::UnacceptedChange;
pub use review::{OfferedTool, Review, Reviewed};
pub use set::Upstreams;
pub use settings::selection::{NamePattern, ToolOverride, UnmatchedReason, UnmatchedSetting};
pub use settings::{StdioServer, Upstream};
pub use status::{UpstreamState, UpstreamStatus};
