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
mod mock;
mod output_budget;
mod pipeline;
mod recording;
mod registry;
mod schema;
mod statistics;
pub mod stored;
mod toolset;
mod turn;
mod violation;

pub use answers::CacheStats;
pub use config::ExecutorConfig;
pub use executor::Executor;
pub use mock::{Mock, MockCall};
pub use recording::{RecordedCall, Recorder, Recording, RecordingError, Replay};
pub use registry::{
    Applied, Change, Conflict, Divergence, OVERRIDABLE, OnDuplicate, Registration, Registry,
    RegistryBuilder, RegistryError, RegistrySnapshot, Reservation, Scratch, SourceUnit,
    exposed_name,
};
pub use statistics::{OTHER_TOOLS, Statistics, ToolStatistics, UNKNOWN_TOOLS};
pub use toolset::{AnnotationFilter, Pattern, ToolFilter, Toolset, ToolsetView};
pub use turn::{Turn, TurnOptions};
pub use violation::Violation;
