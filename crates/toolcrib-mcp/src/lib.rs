#![doc = include_str!("docs/mcp.md")]
#![forbid(unsafe_code)]

mod asking;
mod calls;
pub mod catalog;
mod catalog_changes;
mod connection;
mod error;
mod event_log;
mod exact_numbers;
mod handler;
mod http_service;
mod http_sessions;
mod known_sessions;
mod linked;
mod list_changes;
mod narration;
mod offering;
mod outputs;
mod paging;
mod plain;
mod prompting;
mod result;
mod revision;
mod server;
mod session_streams;
mod stdio;
mod subscriptions;
mod tasks;
mod telling;
mod telling_stream;
mod tool_list;
mod tracing_calls;
mod unreadable;
pub mod upstream;

pub use error::McpError;
pub use http_service::{McpBody, McpHttpOptions, McpHttpService};
pub use known_sessions::McpSessions;
pub use server::{McpOptions, McpServer};
pub use tasks::{
    EndedTask, FoundTask, FoundTaskState, StoredTask, TaskOptions, TaskStore, TaskStoreError,
};
pub use toolcrib_wire::{META_ERROR_KIND, META_NOTES, META_RETRY_AFTER, META_TRUNCATED};
