//! The agents that agents of a config start.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolcrib_agent::Agent;
use toolcrib_agent::model::ModelClient;
use toolcrib_agent::sub_agents::tools::{self, MULTI_AGENT, NEW_TASK};
use toolcrib_core::{ToolFilter, Toolset};
use toolcrib_tool::{DefinitionError, ToolEntry};

use super::AgentSetupError;

/// The tools with which agents start others, for a crib whose agents have `sub_agents`
/// ([`entries`](crate::ToolcribBuilder::entries)). Only the runs of such agents have them.
pub fn sub_agent_tools() -> Result<Vec<ToolEntry>, DefinitionError> {
    let mut entries = tools::entries_of_runs()?;
    // The answer of an agent is its last text, or has a schema and a tool of its own.
    entries.retain(|entry| is_sub_agent_tool(entry.name()));
    Ok(entries.into_iter().map(ToolEntry::for_opt_in).collect())
}

/// Whether a name is that of a tool with which agents start others.
pub(crate) fn is_sub_agent_tool(name: &str) -> bool {
    [MULTI_AGENT, NEW_TASK].contains(&name)
}

/// The toolset of an agent that starts others: with the tools for that.
pub(super) fn with_tools(toolset: Toolset) -> Toolset {
    let with = |set: Toolset, name| set.with_tool(name).opt_in(name);
    [MULTI_AGENT, NEW_TASK].into_iter().fold(toolset, with)
}

/// The toolset of a sub-agent that starts no others.
pub(super) fn without_tools(toolset: Toolset) -> Toolset {
    let without = |set: Toolset, name| set.exclude(ToolFilter::new().name(name));
    [MULTI_AGENT, NEW_TASK].into_iter().fold(toolset, without)
}

/// The agents of a config that are being built for one agent.
#[derive(Default)]
pub(super) struct SubAgents {
    /// Those that are not complete: each starts the next one.
    path: Vec<String>,
    pub(super) built: BTreeMap<String, Agent>,
    /// The model of all of them, in place of their own.
    pub(super) model: Option<Arc<dyn ModelClient>>,
}

impl SubAgents {
    pub(super) fn with_model(model: Arc<dyn ModelClient>) -> Self {
        Self { model: Some(model), ..Self::default() }
    }

    /// Begins with an agent. Fails if it would start itself.
    pub(super) fn begin(&mut self, name: &str) -> Result<(), AgentSetupError> {
        if self.path.iter().any(|above| above == name) {
            let path: Vec<_> = self.path.iter().map(|one| format!("`{one}`")).collect();
            return Err(AgentSetupError::other(format!(
                "the agent `{name}` would start itself, by `sub_agents` of {}",
                path.join(", ")
            )));
        }
        self.path.push(name.to_owned());
        Ok(())
    }

    /// Ends with the agent that was begun last.
    pub(super) fn end(&mut self) {
        self.path.pop();
    }
}
