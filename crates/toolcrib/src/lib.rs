#![doc = include_str!("docs/guide.md")]
#![forbid(unsafe_code)]

#[cfg(feature = "agent")]
pub mod agents;
#[cfg(feature = "manifests")]
pub mod control_plane;
mod crib;
pub mod guide;
#[cfg(all(unix, feature = "http"))]
pub mod servers;
#[cfg(feature = "manifests")]
pub mod settings;
#[cfg(feature = "manifests")]
pub use manifests::check as lint;
#[cfg(feature = "manifests")]
pub use manifests::lock;
#[cfg(feature = "manifests")]
pub use manifests::tests_in_manifests as manifest_tests;
#[cfg(feature = "manifests")]
pub mod manifests;
#[cfg(all(feature = "manifests", feature = "mcp"))]
pub use manifests::names;
#[cfg(unix)]
pub mod stores;
#[cfg(feature = "manifests")]
pub use manifests::trust;
#[cfg(feature = "mcp")]
pub mod upstreams;

#[cfg(all(unix, feature = "manifests"))]
pub use crate::settings::reload::ConfigReload;
pub use crib::{BuildError, Toolcrib, ToolcribBuilder, UnknownToolset};

#[cfg(feature = "agent")]
pub use toolcrib_agent as agent;
#[cfg(feature = "builtins")]
pub use toolcrib_builtins as builtins;
#[cfg(feature = "cel")]
pub use toolcrib_constraints as constraints;
pub use toolcrib_core as core;
#[cfg(feature = "databases")]
pub use toolcrib_databases as databases;
#[cfg(feature = "http")]
pub use toolcrib_http as http;
#[cfg(feature = "manifests")]
pub use toolcrib_manifest as manifest;
#[cfg(feature = "mcp")]
pub use toolcrib_mcp as mcp;
#[cfg(feature = "manifests")]
pub use toolcrib_runners as runners;
pub use toolcrib_tool as tool;
#[cfg(feature = "crawler")]
pub use toolcrib_web as web;
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
