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
mod batch;
mod cancel;
mod checking;
pub mod client_tools;
pub mod clock;
mod config;
mod execution;
mod executor;
pub mod fingerprint;
mod host;
mod output_budget;
mod pipeline;
pub mod policy;
mod registry;
pub mod run;
mod schema;
mod statistics;
pub mod stored;
pub mod suspension;
mod turn;
mod violation;

pub use answers::CacheStats;
pub use config::ExecutorConfig;
pub use executor::Executor;
pub use registry::{Conflict, Registration, Registry, RegistryBuilder, RegistrySnapshot};
pub use statistics::{OTHER_TOOLS, Statistics, ToolStatistics, UNKNOWN_TOOLS};
pub use turn::{Turn, TurnOptions};
pub use violation::Violation;
