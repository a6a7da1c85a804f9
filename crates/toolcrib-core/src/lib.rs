#![doc = include_str!("docs/core.md")]
#![forbid(unsafe_code)]

#[cfg(panic = "abort")]
compile_error!(
    "toolcrib-core answers a call whose tool panics, which `panic = \"abort\"` makes impossible: \
     use the default `panic = \"unwind\"`"
);

mod admission;
mod answers;
#[doc(hidden)]
pub mod arguments;
pub mod audit;
mod batch;
mod cancel;
mod checking;
mod config;
mod execution;
mod executor;
mod host;
mod identity;
pub mod masking;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "for the pipeline, which still cuts without a store")
)]
#[allow(dead_code, unused_imports, reason = "what only the pipeline will call")]
mod lifecycle;
#[allow(dead_code, unused_imports, reason = "what only the pipeline will call")]
mod middleware;
mod output_budget;
mod panics;
mod pipeline;
#[cfg_attr(not(test), expect(dead_code, reason = "for the pipeline's log and audit"))]
mod redaction;
mod registry;
#[allow(dead_code, reason = "what only the pipeline will call")]
mod retry;
mod schema;
pub mod spill;
mod statistics;
pub mod stored;
#[cfg_attr(not(test), expect(dead_code, reason = "for the pipeline"))]
mod telemetry;
#[cfg(feature = "tower")]
mod tower_service;
mod turn;
mod violation;

pub use answers::CacheStats;
pub use config::ExecutorConfig;
pub use executor::Executor;
pub use redaction::redact;
pub use registry::{Conflict, Registration, Registry, RegistryBuilder, RegistrySnapshot};
pub use statistics::{OTHER_TOOLS, Statistics, ToolStatistics, UNKNOWN_TOOLS};
pub use lifecycle::{RefreshReport, Refreshed, Refresher, ShutdownReport};
pub use middleware::{Middleware, Next, after, before};
pub use registry::{Conflict, Registration, Registry, RegistryBuilder, RegistrySnapshot};
pub use statistics::{Ending, InFlight, OTHER_TOOLS, Statistics, ToolStatistics, UNKNOWN_TOOLS};
#[cfg(feature = "tower")]
pub use tower_service::ExecutorService;
pub use turn::{Turn, TurnOptions};
pub use violation::Violation;
