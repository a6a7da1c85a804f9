#![doc = include_str!("docs/core.md")]
#![forbid(unsafe_code)]

#[cfg(panic = "abort")]
compile_error!(
    "toolcrib-core answers a call whose tool panics, which `panic = \"abort\"` makes impossible: \
     use the default `panic = \"unwind\"`"
);

mod admission;
mod answers;
pub mod approval;
#[doc(hidden)]
pub mod arguments;
pub mod audit;
mod batch;
pub mod bounds;
mod cancel;
mod checking;
pub mod client_tools;
pub mod clock;
mod config;
pub mod events;
mod excerpt;
mod execution;
mod executor;
mod finding;
pub mod fingerprint;
pub mod guide;
mod host;
mod identity;
mod lifecycle;
pub mod masking;
pub mod meta;
mod middleware;
mod mock;
mod nested;
mod output_budget;
mod panics;
mod pattern;
mod pipeline;
pub mod policy;
mod random;
mod recording;
mod redaction;
mod registry;
mod remote_trace;
mod retry;
pub mod run;
mod schema;
mod speech;
pub mod spill;
mod statistics;
pub mod suspension;
mod telemetry;
mod toolset;
#[cfg(feature = "tower")]
mod tower_service;
mod turn;
mod violation;

pub use admission::TokenBucket;
pub use answers::CacheStats;
pub use batch::BatchOptions;
pub use config::ExecutorConfig;
pub use executor::{Executor, ExecutorBuilder};
pub use finding::{Field, FoundTool, Match};
pub use lifecycle::{RefreshReport, Refreshed, Refresher, ShutdownReport};
pub use middleware::{Middleware, Next, after, before};
pub use mock::{Mock, MockCall};
pub use pattern::{AnnotationPattern, Pattern, SourcePattern};
pub use pipeline::{DryRun, KeptAnswer};
pub use random::{NoRandomness, unguessable};
pub use recording::{RecordedCall, Recorder, Recording, RecordingError, Replay};
pub use redaction::redact;
pub use registry::{
    Applied, Change, Conflict, Divergence, OVERRIDABLE, OnDuplicate, Registration, Registry,
    RegistryBuilder, RegistryChanges, RegistryError, RegistrySnapshot, Reservation, Scratch,
    SourceUnit, exposed_name,
};
pub use remote_trace::{FollowTrace, RemoteTrace};
pub use statistics::{OTHER_TOOLS, Statistics, ToolStatistics, UNKNOWN_TOOLS};
pub use suspension::Answer;
pub use toolset::{ToolFilter, Toolset, ToolsetView};
#[cfg(feature = "tower")]
pub use tower_service::ExecutorService;
pub use turn::{AnswerStream, Deadline, StreamItem, Turn, TurnOptions};
pub use violation::Violation;
