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
#[cfg_attr(not(test), expect(dead_code, reason = "the trail is for the pipeline"))]
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
mod output_budget;
mod pipeline;
mod redaction;
mod registry;
mod schema;
pub mod spill;
mod statistics;
#[cfg_attr(not(test), expect(dead_code, reason = "for the pipeline"))]
mod telemetry;
mod turn;
mod violation;

pub use answers::CacheStats;
pub use config::ExecutorConfig;
pub use executor::Executor;
pub use redaction::redact;
pub use registry::{Conflict, Registration, Registry, RegistryBuilder, RegistrySnapshot};
pub use statistics::{Ending, InFlight, OTHER_TOOLS, Statistics, ToolStatistics, UNKNOWN_TOOLS};
pub use turn::{Turn, TurnOptions};
pub use violation::Violation;
