//! Builds agents.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolcrib_core::clock::{Clock, SystemClock};
use toolcrib_core::run::{Journal, MemoryRuns};
use toolcrib_core::{Executor, Registry, Toolset, TurnOptions};
use toolcrib_tool::{DefinitionError, Layer, Source};

use super::{Agent, AgentEvent, AgentState, EventCounter, EventListener};
use crate::LostCalls;
use crate::budget::Budget;
use crate::compaction::Compaction;
use crate::model::ModelClient;
use crate::retry::RetryPolicy;
use crate::sub_agents::SubAgentLimits;
use crate::sub_agents::tools::completion;

/// Builds an [`Agent`].
pub struct AgentBuilder {
    executor: Executor,
    models: Vec<Arc<dyn ModelClient>>,
    journal: Option<Arc<dyn Journal>>,
    options: TurnOptions,
    caller_toolset: Option<Toolset>,
    for_clients: bool,
    name: String,
    instructions: Option<String>,
    budget: Budget,
    retry: RetryPolicy,
    compaction: Compaction,
    clock: Arc<dyn Clock>,
    poll_tools: Vec<String>,
    poll_every: Duration,
    listener: Option<Arc<EventListener>>,
    counter: Option<Arc<EventCounter>>,
    agents: BTreeMap<String, Agent>,
    sub_agents: SubAgentLimits,
    completion: Option<Executor>,
    pins_tools: bool,
    lost_calls: LostCalls,
    metadata: BTreeMap<String, String>,
}

impl AgentBuilder {
    pub(super) fn new(executor: Executor, model: Arc<dyn ModelClient>) -> Self {
        Self {
            executor,
            models: vec![model],
            journal: None,
            options: TurnOptions::default(),
            caller_toolset: None,
            for_clients: false,
            name: "agent".to_owned(),
            instructions: None,
            budget: Budget::default(),
            retry: RetryPolicy::default(),
            compaction: Compaction::default(),
            clock: Arc::new(SystemClock),
            poll_tools: Vec::new(),
            poll_every: Duration::from_secs(2),
            listener: None,
            counter: None,
            agents: BTreeMap::new(),
            sub_agents: SubAgentLimits::default(),
            completion: None,
            pins_tools: false,
            lost_calls: LostCalls::default(),
            metadata: BTreeMap::new(),
        }
    }

    /// Sets the name, which its runs' journals record. Default: `agent`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the instructions at the start of every conversation. Default: none.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets on whose behalf it works and with which tools, services and rights. The session of its calls is always the
    /// run, and their deadline is what is left of the run's time. A run keeps the toolset with which it began: whoever
    /// continues it has the tools that are in both.
    #[must_use]
    pub fn turn_options(mut self, options: TurnOptions) -> Self {
        self.caller_toolset = options.own_toolset().cloned();
        self.options = options;
        self
    }

    /// Limits it to a toolset of its own within that of its [turn options](Self::turn_options), which have to be set
    /// before. Runs do not keep this one: a run that is continued has the agent's toolset as it is then.
    #[must_use]
    pub fn toolset(mut self, toolset: &Toolset) -> Self {
        self.options = self.options.narrow(toolset);
        self
    }

    /// Marks its runs as those of a server's clients. It then knows only runs with this mark, so that no client gets at
    /// the runs of the owner, whatever their identity. An agent without the mark knows all runs of its identity.
    #[must_use]
    pub fn for_clients(mut self) -> Self {
        self.for_clients = true;
        self
    }

    /// Adds a model that is asked when all attempts of the models before it have failed, in any protocol. A run that has
    /// changed its model keeps it until it is resumed. A failure that another attempt cannot mend, such as a wrong key,
    /// ends the run instead.
    #[must_use]
    pub fn fallback(mut self, model: Arc<dyn ModelClient>) -> Self {
        self.models.push(model);
        self
    }

    /// Sets where runs are stored, for example the journals of a crib's state folder (`Toolcrib::runs`). Default: in
    /// memory.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Sets the limits of each run.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Changes the limits of each run.
    #[must_use]
    pub fn change_budget(mut self, change: impl FnOnce(Budget) -> Budget) -> Self {
        self.budget = change(self.budget);
        self
    }

    /// Sets when failed requests are sent again.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Sets when and how conversations become shorter.
    #[must_use]
    pub fn compaction(mut self, compaction: Compaction) -> Self {
        self.compaction = compaction;
        self
    }

    /// Sets the clock of the journal. Default: the system's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Names tools that may be called again and again with the same arguments and the same result, for example to wait
    /// for something. Repeated calls of other tools are denied.
    #[must_use]
    pub fn poll_tools(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.poll_tools = names.into_iter().map(Into::into).collect();
        self
    }

    /// Adds an agent to which the model can give tasks with `new_task`, under its name. It works for this agent's
    /// identity, with at most this agent's tools and rights; its model, instructions, budget, compaction and
    /// toolset are its own, and the agents that it starts, if it has any.
    /// The executor needs a store of suspended calls and [the tools](crate::sub_agents::tools::entries).
    #[must_use]
    pub fn sub_agent(mut self, agent: Agent) -> Self {
        self.agents.insert(agent.0.name.clone(), agent);
        self
    }

    /// Sets the limits of the agents that it starts.
    #[must_use]
    pub fn sub_agents(mut self, limits: SubAgentLimits) -> Self {
        self.sub_agents = limits;
        self
    }

    /// Makes the model end its runs with `attempt_completion`, whose result has to match this JSON Schema. The answer
    /// of a run is the result as JSON.
    pub fn output_schema(mut self, schema: &Value) -> Result<Self, DefinitionError> {
        let entry = completion(schema, Source::new(Layer::Fallback, "system"))?;
        let registry = Registry::scratch().entry(entry).build()?;
        self.completion = Some(Executor::builder(registry).build());
        Ok(self)
    }

    /// Sets whether its model is shown the same tools as long as one process drives a run, although their definitions have
    /// changed, so that requests keep their beginning for the provider's prompt cache. Calls always go to the tools as
    /// they are. Default: the next request has the new definitions.
    #[must_use]
    pub fn pin_tools(mut self, pins_tools: bool) -> Self {
        self.pins_tools = pins_tools;
        self
    }

    /// Sets what happens to calls of the runs that it begins whose process ends while they run, if they may not run again.
    /// Default: the model is [told](LostCalls::Tell).
    #[must_use]
    pub fn lost_calls(mut self, lost: LostCalls) -> Self {
        self.lost_calls = lost;
        self
    }

    /// Sets the shortest time between two calls of the same tool for polling. A call that comes earlier waits. Default
    /// 2 s.
    #[must_use]
    pub fn poll_every(mut self, pause: Duration) -> Self {
        self.poll_every = pause;
        self
    }

    /// Sets notes about the runs that it begins. They are kept with the run and are not for the model.
    #[must_use]
    pub fn metadata(mut self, metadata: BTreeMap<String, String>) -> Self {
        self.metadata = metadata;
        self
    }

    /// Sets the viewer of its runs.
    #[must_use]
    pub fn on_event(mut self, listener: impl Fn(&AgentEvent<'_>) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// Sets what counts the events that a client of its runs is shown. Rows record it
    /// ([`JournalRow::shown`](crate::JournalRow::shown)), so that they can be numbered as before when they are shown again.
    #[must_use]
    pub fn counted_by(
        mut self,
        counter: impl Fn() -> crate::ShownEvents + Send + Sync + 'static,
    ) -> Self {
        self.counter = Some(Arc::new(counter));
        self
    }

    /// Builds the agent.
    pub fn build(self) -> Agent {
        let Self {
            executor,
            models,
            journal,
            options,
            caller_toolset,
            for_clients,
            name,
            instructions,
            budget,
            retry,
            compaction,
            clock,
            poll_tools,
            poll_every,
            listener,
            counter,
            agents,
            sub_agents,
            completion,
            pins_tools,
            lost_calls,
            metadata,
        } = self;
        Agent(Arc::new(AgentState {
            executor,
            models,
            journal: journal.unwrap_or_else(|| Arc::new(MemoryRuns::new())),
            options,
            caller_toolset,
            for_clients,
            name,
            instructions,
            budget,
            retry,
            compaction,
            clock,
            poll_tools,
            poll_every,
            listener,
            counter,
            agents,
            sub_agents,
            depth: 0,
            metadata,
            request_timeout: None,
            completion,
            pins_tools,
            lost_calls,
            driven: Arc::default(),
        }))
    }
}

impl fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBuilder")
            .field("name", &self.name)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}
