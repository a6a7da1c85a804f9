#![doc = include_str!("docs/guide.md")]
#![forbid(unsafe_code)]

#[cfg(feature = "manifests")]
pub mod config;
#[cfg(all(unix, feature = "http"))]
pub mod control;
#[cfg(feature = "manifests")]
pub mod control_plane;
mod crib;
pub mod guide;
#[cfg(feature = "manifests")]
pub mod lint;
#[cfg(all(unix, feature = "manifests"))]
mod live_config;
#[cfg(feature = "manifests")]
pub mod lock;
#[cfg(feature = "manifests")]
pub mod manifest_tests;
#[cfg(feature = "manifests")]
pub mod manifests;
#[cfg(all(feature = "manifests", feature = "mcp"))]
pub mod names;
#[cfg(all(feature = "manifests", feature = "mcp"))]
mod offerings;
#[cfg(all(unix, feature = "http"))]
mod operations;
#[cfg(all(unix, feature = "http"))]
mod served;
#[cfg(unix)]
pub mod stores;
#[cfg(feature = "manifests")]
pub mod trust;
#[cfg(all(unix, feature = "manifests"))]
mod unmatched;
#[cfg(feature = "mcp")]
pub mod upstreams;

pub use crib::{BuildError, Toolcrib, ToolcribBuilder, UnknownToolset};
#[cfg(all(unix, feature = "manifests"))]
pub use live_config::ConfigReload;

#[cfg(feature = "cel")]
pub use toolcrib_constraints as constraints;
pub use toolcrib_core as core;
#[cfg(feature = "http")]
pub use toolcrib_http as http;
#[cfg(feature = "manifests")]
pub use toolcrib_manifest as manifest;
#[cfg(feature = "mcp")]
pub use toolcrib_mcp as mcp;
#[cfg(feature = "manifests")]
pub use toolcrib_runners as runners;
pub use toolcrib_tool as tool;
#[cfg(feature = "builtins")]
pub use toolcrib_tools as builtins;
#[cfg(feature = "wire")]
pub use toolcrib_wire as wire;

pub use toolcrib_core::{
    Answer, AnswerStream, BatchOptions, Executor, ExecutorConfig, Middleware, OnDuplicate,
    Registration, Registry, RegistryBuilder, ShutdownReport, StreamItem, ToolFilter, Toolset, Turn,
    TurnOptions,
};
#[cfg(feature = "macros")]
pub use toolcrib_macros::tool;
#[cfg(feature = "manifests")]
pub use toolcrib_runners::jail;
pub use toolcrib_tool::{
    Annotations, Arguments, CallContext, Content, ContextValues, ErrorKind, Identity, Json,
    NoArguments, Services, Tool, ToolCall, ToolDefinition, ToolEntry, ToolError, ToolOutcome,
    ToolOutput, ToolResult, tool_fn,
};
