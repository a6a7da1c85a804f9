#![doc = include_str!("docs/mcp.md")]
#![forbid(unsafe_code)]

mod call;
pub mod catalog;
mod error;
mod fast_path;
mod handler;
mod notify;
mod server;
mod session;
mod transport;
pub mod upstream;

pub use crate::call::tasks::{
    EndedTask, FoundTask, FoundTaskState, StoredTask, TaskOptions, TaskStore, TaskStoreError,
};
pub use crate::session::limits::McpSessions;
pub use crate::transport::http::{McpBody, McpHttpOptions, McpHttpService};
pub use error::McpError;
pub use server::{McpOptions, McpServer};
pub use toolcrib_wire::{META_ERROR_KIND, META_NOTES, META_RETRY_AFTER, META_TRUNCATED};
