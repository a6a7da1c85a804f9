//! Drives the sub-agents of a run and answers the calls that wait for them.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;
use toolcrib_core::run::{Run, RunError};
use toolcrib_core::suspension::{
    RedeemError, Resolution, ResolutionKind, Suspension, SuspensionId,
};
use toolcrib_core::{ToolFilter, Toolset, TurnOptions};
use toolcrib_tool::{BoxFuture, CallId, ToolResult};
use toolcrib_wire::model::Item;

use super::control::RunControl;
use super::driver::Driver;
use super::waiting::CallUpdate;
use super::{AgentError, AgentState, RunReport};
use crate::budget::Budget;
use crate::entry::JournalEntry;
use crate::run::RunState;
use crate::sub_agents::tools::{AgentScope, MULTI_AGENT, NEW_TASK};
use crate::sub_agents::{ParentCall, SubAgentEnd, Task, is_group, output, share, tasks};

/// What the agents of `multi_agent` are told first.
const INSTRUCTIONS: &str = "Do the task you are given with your tools, and answer with its result. Nobody answers questions.";

/// Why sub-agents are cancelled whose call was resolved before they had ended.
pub(super) const CALL_ENDED: &str = "the call that started it was resolved";

/// A task with the agent that does it.
struct Job {
    agent: Arc<AgentState>,
    task: Task,
    control: RunControl,
}

impl Driver<'_> {
    /// Drives the sub-agents for which calls wait. Returns whether a call got its answer.
    pub(super) fn drive_children(&mut self) -> BoxFuture<'_, Result<bool, AgentError>> {
        Box::pin(async move {
            let (jobs, mut progress) = Box::pin(self.jobs()).await?;
            let at_once = self.agent.sub_agents.max_concurrency.max(1);
            let mut ended =
                stream::iter(jobs.into_iter().map(Job::drive)).buffer_unordered(at_once);
            while let Some((task, end)) = self.attend(ended.next()).await {
                let end = match end {
                    Ok(None) => continue,
                    Ok(Some(end)) => end,
                    Err(error) if error.is_about_one_run() => {
                        SubAgentEnd::lost(&task.parent, task.run, error.to_string())
                    }
                    Err(error) => return Err(error),
                };
                self.end_child(task.parent.call, end).await?;
            }
            drop(ended);
            for call in self.groups() {
                progress |= self.answer_group(&call).await?;
            }
            Ok(progress)
        })
    }

    /// The calls that wait for sub-agents.
    fn groups(&self) -> Vec<Suspension> {
        self.run.waiting().filter(|call| is_group(call)).cloned().collect()
    }

    /// The tasks that have not ended. Calls that somebody has cancelled or denied meanwhile end with their sub-agents;
    /// returns whether any did.
    async fn jobs(&mut self) -> Result<(Vec<Job>, bool), AgentError> {
        let (mut jobs, mut progress) = (Vec::new(), false);
        for call in self.groups() {
            if self.is_resolved_otherwise(&call).await? {
                self.cancel_children(CALL_ENDED, Some(call.id())).await?;
                let before = self.run.version();
                self.apply_update(CallUpdate::TakeOver { with_groups: true }).await?;
                progress |= self.run.version() > before;
                continue;
            }
            let tasks = tasks(&self.id, self.agent.depth, &call)?;
            let siblings = tasks.len();
            for task in tasks {
                if self.run.child_end(&task.parent.call, task.parent.index).is_some() {
                    continue;
                }
                let is_too_deep = task.parent.depth > self.agent.sub_agents.max_depth;
                let agent = if is_too_deep {
                    Err(AgentError::TooDeep)
                } else {
                    self.agent.for_child(&task.parent)
                };
                match agent {
                    Ok(mut agent) => {
                        agent.for_clients = self.run.is_for_client();
                        let (budget, spent) = (self.run.budget(), self.run.spent());
                        agent.budget = share(&agent.budget, budget, spent, siblings);
                        let (agent, control) = (Arc::new(agent), self.control.for_child());
                        jobs.push(Job { agent, task, control });
                    }
                    Err(error) => {
                        if self.agent.knows(&task.run).await? {
                            Box::pin(cancel(self.agent, &task, &error.to_string())).await?;
                        }
                        let end = SubAgentEnd::lost(&task.parent, task.run, error.to_string());
                        self.end_child(task.parent.call, end).await?;
                    }
                }
            }
        }
        Ok((jobs, progress))
    }

    async fn end_child(&mut self, call: CallId, end: SubAgentEnd) -> Result<(), AgentError> {
        self.append(vec![JournalEntry::ChildFinished { call, end: Box::new(end) }]).await
    }

    /// Answers a call if its sub-agents have all ended.
    async fn answer_group(&mut self, call: &Suspension) -> Result<bool, AgentError> {
        let id = CallId::new(call.call_id());
        let count = tasks(&self.id, self.agent.depth, call)?.len();
        let ends: Option<Vec<_>> = (0..count).map(|index| self.run.child_end(&id, index)).collect();
        let Some(ends) = ends else { return Ok(false) };
        let output = output(call, &ends);
        let turn = self.agent.turn(&self.id, None);
        let mut core = Run::from_answers(&turn, self.run.answers())?;
        let resolved = core.resolve(&turn, call.id(), Resolution::Output(output.clone())).await;
        let result = match resolved {
            Ok(()) => core.answered().find(|result| *result.call_id() == id),
            // A process of this run has done so, and ended before it could write what came of it.
            Err(RunError::Redeem(RedeemError::AlreadyResolved(_) | RedeemError::Unknown)) => None,
            Err(error) => return Err(error.into()),
        };
        let waited = self.agent.now().since(call.created_at());
        let result = result.unwrap_or_else(|| ToolResult::success(id, call.tool(), output, waited));
        // What it took is the work of its sub-agents.
        let result = Box::new(result.with_duration(waited));
        self.append(vec![JournalEntry::CallFinished { result, repetition: false }]).await?;
        Ok(true)
    }

    /// Whether somebody has cancelled or denied a call that waits for sub-agents.
    async fn is_resolved_otherwise(&self, call: &Suspension) -> Result<bool, AgentError> {
        let Some(store) = self.agent.executor.suspensions() else { return Ok(false) };
        let resolved = store.resolved(call.id()).await?;
        Ok(resolved.is_some_and(|one| one.kind() != ResolutionKind::OutputSubmitted))
    }

    /// Cancels the sub-agents for which calls wait, or one call.
    pub(super) fn cancel_children<'s>(
        &'s mut self,
        reason: &'s str,
        only: Option<&'s SuspensionId>,
    ) -> BoxFuture<'s, Result<(), AgentError>> {
        Box::pin(async move {
            let mut groups = self.groups();
            groups.retain(|call| only.is_none_or(|only| only == call.id()));
            for call in groups {
                for task in tasks(&self.id, self.agent.depth, &call)? {
                    let has_ended =
                        self.run.child_end(&task.parent.call, task.parent.index).is_some();
                    if !has_ended && self.agent.knows(&task.run).await? {
                        // Nothing of a run is needed to cancel it but its journal: its agent may be gone.
                        let agent = self.agent.for_child(&task.parent).map(Arc::new);
                        let agent = agent.unwrap_or_else(|_| Arc::clone(self.agent));
                        Box::pin(cancel(&agent, &task, reason)).await?;
                    }
                }
            }
            Ok(())
        })
    }
}

impl Job {
    /// Begins or continues the run; returns how it has ended, if it has.
    async fn drive(self) -> (Task, Result<Option<SubAgentEnd>, AgentError>) {
        let Self { agent, task, control } = self;
        let report = Box::pin(driven(&agent, &task, &control)).await;
        let end = report.map(|report| {
            let outcome = report.outcome()?;
            Some(SubAgentEnd::of(&task.parent, task.run.clone(), outcome, report.spent()))
        });
        (task, end)
    }
}

async fn driven(
    agent: &Arc<AgentState>,
    task: &Task,
    control: &RunControl,
) -> Result<RunReport, AgentError> {
    let report = if agent.knows(&task.run).await? {
        let driver = Driver::load(agent, &task.run, control).await?;
        Box::pin(driver.take_over_and_drive()).await?
    } else {
        let (id, parent) = (task.run.clone(), Some(Box::new(task.parent.clone())));
        let items = vec![Item::user(task.input.as_str())];
        let input = JournalEntry::Input { items };
        Driver::start(agent, id, parent, input, control).await?.drive().await?
    };
    if report.state() == RunState::Paused && control.stop().is_none() {
        // Nobody resumes it.
        let reason = report.run().pause_reason().unwrap_or("it was paused").to_owned();
        return Box::pin(cancel(agent, task, &reason)).await;
    }
    Ok(report)
}

async fn cancel(
    agent: &Arc<AgentState>,
    task: &Task,
    reason: &str,
) -> Result<RunReport, AgentError> {
    let control = RunControl::new();
    control.cancel(reason);
    Driver::load(agent, &task.run, &control).await?.drive().await
}

impl AgentState {
    /// The agent of a sub-agent's run: with its own model and words, and at most the tools and rights of this one.
    pub(super) fn for_child(&self, parent: &ParentCall) -> Result<Self, AgentError> {
        let mut child = self.clone();
        let toolset = if let Some(name) = &parent.agent {
            let base = self.agents.get(name);
            let base = base.ok_or_else(|| AgentError::NoAgent { name: name.clone() })?;
            child.name.clone_from(&base.0.name);
            child.models.clone_from(&base.0.models);
            child.instructions.clone_from(&base.0.instructions);
            child.budget.clone_from(&base.0.budget);
            child.retry.clone_from(&base.0.retry);
            child.compaction.clone_from(&base.0.compaction);
            if !base.0.agents.is_empty() {
                child.agents.clone_from(&base.0.agents);
            }
            child.poll_tools.clone_from(&base.0.poll_tools);
            child.completion.clone_from(&base.0.completion);
            base.0.options.own_toolset().cloned().unwrap_or_default()
        } else {
            let turns = self.sub_agents.max_iterations.saturating_add(1);
            MULTI_AGENT.clone_into(&mut child.name);
            child.instructions = Some(INSTRUCTIONS.to_owned());
            child.budget = Budget::default().with_max_turns(turns);
            child.request_timeout = Some(self.sub_agents.request_timeout);
            child.completion = None;
            let given = |set: Toolset, name: &String| set.include(ToolFilter::new().name(name));
            let given = parent.tools.iter().fold(Toolset::new(), given).with_read_output();
            without_agents(given)
        };
        child.depth = parent.depth;
        child.metadata.clear();
        child.counter = None;
        let is_deepest = child.depth >= self.sub_agents.max_depth;
        let toolset = if is_deepest { without_agents(toolset) } else { toolset };
        child.options = self.options.clone().narrow(&toolset);
        Ok(child)
    }

    /// The options of a turn, with what the tools for sub-agents need to know.
    pub(super) fn options_with_scope(&self) -> TurnOptions {
        let (executor, toolset) = (self.executor.clone(), self.options.own_toolset().cloned());
        let has_tool = move |name: &str| {
            let snapshot = executor.registry().snapshot();
            toolset.clone().unwrap_or_default().view(&snapshot).get(name).is_some()
        };
        let scope = AgentScope {
            agents: self.agents.keys().cloned().collect(),
            may_start: self.depth < self.sub_agents.max_depth,
            has_tool: Box::new(has_tool),
        };
        let services = self.options.own_services().clone().with(Arc::new(scope));
        self.options.clone().services(services)
    }
}

fn without_agents(toolset: Toolset) -> Toolset {
    let without = |set: Toolset, name: &str| set.exclude(ToolFilter::new().name(name));
    [MULTI_AGENT, NEW_TASK].into_iter().fold(toolset, without)
}
