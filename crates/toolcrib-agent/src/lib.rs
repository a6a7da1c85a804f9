#![doc = include_str!("docs/agent.md")]
#![forbid(unsafe_code)]

mod agent;
pub mod budget;
mod entry;
mod guard;
pub mod journal;
pub mod model;
mod retry;
pub mod run;

pub use agent::{
    Agent, AgentBuilder, AgentError, AgentEvent, AgentInput, EventListener, RunControl, RunReport,
};
pub use entry::{FORMAT, JournalEntry, JournalRow, PlannedCall, StartedCall};
pub use retry::RetryPolicy;
