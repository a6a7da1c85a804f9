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
mod batch;
mod cancel;
mod checking;
mod config;
mod execution;
mod executor;
mod host;
#[allow(dead_code, unused_imports, reason = "what only the pipeline will call")]
mod lifecycle;
#[allow(dead_code, unused_imports, reason = "what only the pipeline will call")]
mod middleware;
mod output_budget;
mod panics;
mod pipeline;
mod registry;
#[allow(dead_code, reason = "what only the pipeline will call")]
mod retry;
mod schema;
mod statistics;
#[cfg(feature = "tower")]
mod tower_service;
mod turn;
mod violation;

pub use answers::CacheStats;
pub use config::ExecutorConfig;
pub use executor::Executor;
pub use lifecycle::{RefreshReport, Refreshed, Refresher, ShutdownReport};
pub use middleware::{Middleware, Next, after, before};
pub use registry::{Conflict, Registration, Registry, RegistryBuilder, RegistrySnapshot};
pub use statistics::{Ending, InFlight, OTHER_TOOLS, Statistics, ToolStatistics, UNKNOWN_TOOLS};
#[cfg(feature = "tower")]
pub use tower_service::ExecutorService;
pub use turn::{Turn, TurnOptions};
pub use violation::Violation;
