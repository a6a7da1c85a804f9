//! Agents, from outside.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a test starts processes to kill them")]

mod compaction;
mod completion;
mod cuts;
mod fixture;
mod journals;
mod kills;
mod limits;
mod model_faults;
mod owners;
mod previews;
mod requests;
mod restarts;
mod shutdowns;
mod steering;
mod stopping;
mod sub_agents;
mod telemetry;
mod waiting;
mod wires;
