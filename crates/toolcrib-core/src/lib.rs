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
pub mod events;
mod execution;
mod executor;
mod host;
mod output_budget;
mod pipeline;
mod registry;
mod schema;
mod statistics;
mod turn;
mod violation;

pub use answers::CacheStats;
pub use config::ExecutorConfig;
pub use executor::Executor;
pub use registry::{Conflict, Registration, Registry, RegistryBuilder, RegistrySnapshot};
pub use statistics::{Ending, InFlight, OTHER_TOOLS, Statistics, ToolStatistics, UNKNOWN_TOOLS};
pub use turn::{Turn, TurnOptions};
pub use violation::Violation;
