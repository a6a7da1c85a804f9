#![doc = include_str!("docs/agent.md")]
#![forbid(unsafe_code)]

mod agent;
pub mod budget;
mod compaction;
mod entry;
mod guard;
pub mod journal;
pub mod model;
mod request;
mod retry;
pub mod run;
pub mod sub_agents;
mod summary;

pub use agent::{
    Agent, AgentBuilder, AgentError, AgentEvent, AgentInput, EventCounter, EventListener,
    RunControl, RunReport, SteerError, Steering,
};
pub use compaction::Compaction;
pub use entry::{
    Compacted, FORMAT, JournalEntry, JournalRow, LostCalls, PlannedCall, ShortenedOutput,
    ShownEvents, StartedCall, Summary,
};
pub use request::{ClientRequest, ClientTool, RequestSettings, RequestedChoice};
pub use retry::RetryPolicy;
pub use summary::{is_summary, summary_item};
