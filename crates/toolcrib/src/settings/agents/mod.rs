//! Settings of agents: each one (`agents.<name>`), every run (`agent`), and the agents that they start (`sub_agent`).

mod compaction;
mod dollars;
mod entry;
mod every_run;
mod output_schema;
mod sub_agents;

pub use compaction::{AgentCompaction, Share};
pub use dollars::Dollars;
pub(crate) use entry::undeclared_model;
pub use entry::{AgentBudget, AgentEntry};
pub use every_run::{Agent, Responses, ResponsesDialect};
pub use output_schema::OutputSchema;
pub use sub_agents::SubAgent;
