#![doc = include_str!("docs/core.md")]
#![forbid(unsafe_code)]

#[cfg(panic = "abort")]
compile_error!(
    "toolcrib-core answers a call whose tool panics, which `panic = \"abort\"` makes impossible: \
     use the default `panic = \"unwind\"`"
);

mod admission;
pub mod approval;
#[doc(hidden)]
pub mod arguments;
mod cache;
mod call;
mod core_tools;
mod observability;
mod output;
mod storage;
mod testing;
pub use core_tools::client_tools;
pub use observability::audit;
pub use storage::bounds;
pub use storage::clock;
pub mod events;
mod settings;
pub use identity::fingerprint;
pub mod guide;
mod identity;
mod lifecycle;
pub use approval::policy;
pub use core_tools::meta;
pub use output::masking;
mod registry;
pub use output::spill;
pub use suspension::run;
pub mod suspension;
mod toolset;

pub use crate::arguments::violation::Violation;
pub use crate::cache::CacheStats;
pub use crate::call::batch::BatchOptions;
pub use crate::call::executor::{Executor, ExecutorBuilder};
pub use crate::call::middleware::{Middleware, Next, after, before};
pub use crate::call::pipeline::{CacheStatus, DryRun};
#[cfg(feature = "tower")]
pub use crate::call::tower_service::ExecutorService;
pub use crate::call::turn::{AnswerStream, Deadline, StreamItem, Turn, TurnOptions};
pub use crate::core_tools::search::{Field, FoundTool, Match};
pub use crate::identity::random::{NoRandomness, unguessable};
pub use crate::observability::models::{
    BucketCounts, MODEL_SECONDS, MODEL_TOKENS, ModelRequestRecord, ModelSeries, ModelStatistics,
};
pub use crate::observability::remote_trace::{FollowTrace, RemoteTrace};
pub use crate::observability::statistics::{
    OTHER_TOOLS, Statistics, ToolStatistics, UNKNOWN_TOOLS,
};
pub use crate::output::sensitive_arguments::redact;
pub use crate::settings::ExecutorConfig;
pub use crate::testing::mock::{Mock, MockCall};
pub use crate::toolset::pattern::{AnnotationPattern, Pattern, SourcePattern};
pub use admission::TokenBucket;
pub use lifecycle::{RefreshReport, Refreshed, Refresher, ShutdownReport};
pub use registry::{
    Applied, Change, Conflict, Divergence, OVERRIDABLE, OnDuplicate, Registration, Registry,
    RegistryBuilder, RegistryChanges, RegistryError, RegistrySnapshot, Reservation, Scratch,
    SourceUnit, exposed_name,
};
pub use suspension::Answer;
pub use toolset::{ToolFilter, Toolset, ToolsetView};
