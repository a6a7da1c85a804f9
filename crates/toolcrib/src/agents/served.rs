//! Runs of agents that are served over HTTP.

use std::num::{NonZeroU32, NonZeroU64};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use toolcrib_agent::budget::{Budget, Cost};
use toolcrib_agent::model::ScriptedModel;
use toolcrib_agent::run::Outcome;
use toolcrib_agent::sub_agents::tools::{MULTI_AGENT, NEW_TASK};
use toolcrib_agent::{
    Agent, AgentBuilder, AgentError, AgentEvent, JournalEntry, JournalRow, RunControl, RunReport,
    SteerError,
};
use toolcrib_core::run::{Journal, RunId, Seq};
use toolcrib_core::suspension::{Resolution, StoreError, Suspension, Waiting};
use toolcrib_core::{ToolFilter, Toolset, TurnOptions};
use toolcrib_http::{
    AgentItemId, AgentRunBudget, AgentRunControl, AgentRunError, AgentRunEvent, AgentRunFollowers,
    AgentRunInput, AgentRunItem, AgentRunReport, AgentRunRow, AgentRunStep, AgentRunStop,
    AgentRuns, AgentUsage, AgentWaitingCall, NewAgentRun, RequestedAgent,
};
use toolcrib_tool::{BoxFuture, visible};

use super::{AgentName, AgentSetupError, items, no_tools, responses};
use crate::Toolcrib;

/// How long the cancellation of a run waits for another process that works on it.
const CANCEL_WAIT: Duration = Duration::from_secs(10);

/// How long input for a run waits until another process that works on it has stored it.
const STEER_WAIT: Duration = Duration::from_secs(10);

impl AgentRuns for Toolcrib {
    fn begin(
        &self,
        client: TurnOptions,
        run: NewAgentRun,
    ) -> BoxFuture<'_, Result<RunId, AgentRunError>> {
        Box::pin(async move {
            let name = match run.agent {
                RequestedAgent::Agent(name) => AgentName::Entry(name),
                RequestedAgent::Model(model) => {
                    let invalid = |error: &str| AgentRunError::Invalid(format!("/model: {error}"));
                    AgentName::Model(model.parse().map_err(invalid)?)
                }
                RequestedAgent::Default => self.default_agent().map_err(|error| match error {
                    AgentSetupError::Choose { .. } => AgentRunError::Invalid(
                        "name an `agent` or a `model`: the config has no default".to_owned(),
                    ),
                    error => unusable(&error),
                })?,
            };
            let agent = |client| self.agent(&name, client).map_err(|error| unusable(&error));
            let builder = match &run.tools {
                Some(tools) => {
                    let all = agent(client.clone())?.build().tools();
                    agent(client.narrow(&only(tools, &all)?))?
                }
                None => agent(client)?,
            };
            let budget = run.budget;
            let builder =
                builder.change_budget(|own| narrowed(own, &budget)).metadata(run.metadata);
            let agent = builder.for_clients().build();
            let begun = Box::pin(agent.begin(run.input)).await.map_err(problem)?;
            Ok(begun.id().clone())
        })
    }

    fn work(
        &self,
        client: TurnOptions,
        run: RunId,
        step: AgentRunStep,
        outside: AgentRunControl,
    ) -> BoxFuture<'_, Result<(), AgentRunError>> {
        Box::pin(async move {
            let agent = match step {
                // A run can be cancelled even if its agent is no longer there.
                AgentRunStep::Cancel(_) | AgentRunStep::Steer(_) => self.reader(client),
                _ => {
                    let followed = followed(run.clone(), outside.followers.clone());
                    self.agent_of(client, &run).await?.on_event(followed).build()
                }
            };
            driven(&agent, &run, vec![step], outside).await
        })
    }

    fn report(
        &self,
        client: TurnOptions,
        run: RunId,
    ) -> BoxFuture<'_, Result<AgentRunReport, AgentRunError>> {
        Box::pin(async move {
            let report = self.reader(client).load(&run).await.map_err(problem)?;
            let is_elsewhere = self.is_elsewhere(run).await?;
            Ok(AgentRunReport { active: is_elsewhere, ..shown(&report) })
        })
    }

    fn is_elsewhere(&self, run: RunId) -> BoxFuture<'_, Result<bool, AgentRunError>> {
        Box::pin(async move {
            let Some(journal) = self.runs() else { return Ok(false) };
            Ok(journal.claimed_elsewhere(&run).await?.is_some())
        })
    }

    fn rows(
        &self,
        client: TurnOptions,
        run: RunId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<AgentRunRow>, AgentRunError>> {
        Box::pin(async move {
            let rows = self.reader(client).rows(&run, after, limit).await.map_err(problem)?;
            rows.into_iter().map(shown_row).collect()
        })
    }

    fn items(
        &self,
        client: TurnOptions,
        run: RunId,
        after: Option<AgentItemId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<AgentRunItem>, AgentRunError>> {
        Box::pin(async move {
            items::read(&self.reader(client), &run, after, limit).await.map_err(problem)
        })
    }

    fn remove(
        &self,
        client: TurnOptions,
        run: RunId,
    ) -> BoxFuture<'_, Result<AgentRunReport, AgentRunError>> {
        Box::pin(async move {
            let removed = self.reader(client).remove(&run).await.map_err(problem)?;
            Ok(shown(&removed))
        })
    }
}

impl Toolcrib {
    /// An agent that asks no model, to read and cancel runs.
    pub(super) fn reader(&self, client: TurnOptions) -> Agent {
        self.reader_of(client, self.runs())
    }

    /// Reads runs of a journal.
    pub(super) fn reader_of(
        &self,
        client: TurnOptions,
        journal: Option<&Arc<dyn Journal>>,
    ) -> Agent {
        let model = Arc::new(ScriptedModel::new([]));
        let builder = Agent::builder(self.executor().clone(), model);
        let builder = builder.turn_options(client).for_clients();
        match journal {
            Some(journal) => builder.journal(Arc::clone(journal)).build(),
            None => builder.build(),
        }
    }

    /// The agent that a run was begun with, as the config has it now.
    pub(super) async fn agent_of(
        &self,
        client: TurnOptions,
        run: &RunId,
    ) -> Result<AgentBuilder, AgentRunError> {
        let first = self.reader(client.clone()).rows(run, 0, 1).await.map_err(problem)?;
        let Some((_, JournalRow { entry: JournalEntry::Started { agent, .. }, .. })) =
            first.first()
        else {
            return Err(AgentRunError::Unknown);
        };
        let name: AgentName =
            agent.parse().map_err(|error: &str| AgentRunError::Invalid(error.to_owned()))?;
        let builder = self.agent(&name, client).map_err(|error| unusable(&error))?;
        Ok(builder.for_clients())
    }
}

/// The toolset of a run that has only these of its agent's tools, and the one that reads long outputs.
fn only(tools: &[String], all: &[String]) -> Result<Toolset, AgentRunError> {
    if let Some((at, name)) = tools.iter().enumerate().find(|(_, name)| !all.contains(name)) {
        let problem = format!("/tools/{at}: the agent has no tool `{}`", visible(name));
        return Err(AgentRunError::Invalid(problem));
    }
    let named = |set: Toolset, name: &String| set.include(ToolFilter::new().name(name));
    let toolset = tools.iter().fold(no_tools(), named).with_read_output();
    // The agent has these whatever its toolset includes.
    let others =
        [MULTI_AGENT, NEW_TASK].into_iter().filter(|name| !tools.iter().any(|own| own == name));
    Ok(others.fold(toolset, |set, name| set.exclude(ToolFilter::new().name(name))))
}

/// A budget within what a client allows.
fn narrowed(own: Budget, wanted: &AgentRunBudget) -> Budget {
    let mut limits = Budget::default().with_max_turns(own.max_turns);
    if let Some(turns) = wanted.max_turns {
        limits.max_turns = turns.get();
    }
    limits.max_calls = wanted.max_calls.map(NonZeroU32::get);
    limits.max_tokens = wanted.max_tokens.map(NonZeroU64::get);
    limits.max_cost = wanted.max_cost.map(Cost::from_dollars);
    limits.max_time = wanted.max_seconds.map(|seconds| Duration::from_secs(seconds.get()));
    own.within(&limits)
}

/// Does steps of a run under the control of its clients.
pub(super) async fn driven(
    agent: &Agent,
    run: &RunId,
    steps: Vec<AgentRunStep>,
    outside: AgentRunControl,
) -> Result<(), AgentRunError> {
    let control = RunControl::new();
    let own = control.clone();
    let mut working = pin!(async move {
        for step in steps {
            performed(agent, run, step, own.clone()).await?;
        }
        Ok(())
    });
    let AgentRunControl { stopped, mut said, .. } = outside;
    let mut stopped = stopped.fuse();
    let mut recording = FuturesUnordered::new();
    let done = loop {
        tokio::select! {
            biased;
            done = &mut working => break done,
            reason = &mut stopped => match reason {
                AgentRunStop::Pause(reason) => control.pause(reason),
                AgentRunStop::Cancel(reason) => control.cancel(reason),
            },
            Some(input) = said.recv() => recording.push(steered(&control, input)),
            Some(()) = recording.next(), if !recording.is_empty() => {}
        }
    };
    // What is not stored by now is said to a run at rest.
    drop(control);
    while recording.next().await.is_some() {}
    done
}

/// Tells those who follow a run what happens in it and in those of its sub-agents.
pub(super) fn followed(
    root: RunId,
    followers: AgentRunFollowers,
) -> impl Fn(&AgentEvent<'_>) + Send + Sync + 'static {
    let last = AtomicU64::new(0);
    move |event| {
        if let AgentEvent::Recorded { run, seq, .. } = event {
            if **run == root {
                last.store(*seq, Ordering::Relaxed);
                followers.tell(AgentRunEvent::Recorded(*seq));
            }
        } else if !followers.is_empty()
            && let Some(value) = event.to_value()
        {
            let after = last.load(Ordering::Relaxed);
            followers.tell(AgentRunEvent::Shown { after, value: Arc::new(value) });
        }
    }
}

/// Tells a run something, and its client whether that is stored.
fn steered(control: &RunControl, input: AgentRunInput) -> impl Future<Output = ()> + use<> {
    let AgentRunInput { text, recorded } = input;
    let steering = control.steer(text);
    async move {
        let done = match steering.await {
            Ok(()) => Ok(()),
            Err(SteerError::NotDriven) => return,
            Err(SteerError::Failed(error)) => Err(problem(error)),
            Err(ended) => {
                Err(AgentRunError::NotNow(format!("{ended}: resume it with the input instead")))
            }
        };
        // Nobody need be waiting for it.
        let _ = recorded.send(done);
    }
}

async fn performed(
    agent: &Agent,
    run: &RunId,
    step: AgentRunStep,
    control: RunControl,
) -> Result<(), AgentRunError> {
    let control = &control;
    let done = match step {
        AgentRunStep::Resume => Box::pin(agent.resume_with(run, control)).await,
        AgentRunStep::Input(text) => Box::pin(agent.send(run, text, control)).await,
        AgentRunStep::Steer(text) => {
            match Box::pin(agent.steer_within(run, text, STEER_WAIT)).await {
                Err(AgentError::Store(StoreError::Claimed { process })) => {
                    return Err(AgentRunError::Busy(format!(
                        "the process {process} works on the run and did not take the input over within {} s: send it again",
                        STEER_WAIT.as_secs()
                    )));
                }
                done => done,
            }
        }
        AgentRunStep::Resolve { call, resolution, may_approve } => {
            if !may_approve {
                let report = agent.load(run).await.map_err(problem)?;
                let is_for_caller = match report.waiting().find(|one| *one.id() == call) {
                    Some(one) => matches!(one.waiting(), Waiting::Input { .. } | Waiting::Client),
                    None => !matches!(*resolution, Resolution::Decision(_)),
                };
                if !is_for_caller {
                    return Err(AgentRunError::NotAllowed);
                }
            }
            Box::pin(agent.resolve_with(run, &call, *resolution, control)).await
        }
        AgentRunStep::Submit(outputs) => {
            let report = agent.load(run).await.map_err(problem)?;
            if report.run().handed_over().next().is_some() {
                return responses::submitted(agent, &report, outputs).await;
            }
            Box::pin(agent.submit(run, outputs)).await
        }
        AgentRunStep::Cancel(reason) => {
            match Box::pin(agent.cancel_within(run, reason, CANCEL_WAIT)).await {
                // The report says how far it is.
                Err(AgentError::Store(StoreError::Claimed { .. })) => return Ok(()),
                done => done,
            }
        }
    };
    done.map(drop).map_err(problem)
}

fn unusable(error: &AgentSetupError) -> AgentRunError {
    let message = error.to_string();
    match error {
        AgentSetupError::NoKey { .. } | AgentSetupError::Unreachable { .. } => {
            AgentRunError::Unavailable(message)
        }
        _ => AgentRunError::Invalid(message),
    }
}

pub(super) fn problem(error: AgentError) -> AgentRunError {
    match error {
        AgentError::Unknown => AgentRunError::Unknown,
        AgentError::NotNow { .. } => AgentRunError::NotNow(error.to_string()),
        AgentError::Store(error) => AgentRunError::Store(error),
        AgentError::Resolve(error) => AgentRunError::Resolve(error),
        error => AgentRunError::Internal(error.to_string()),
    }
}

fn shown(report: &RunReport) -> AgentRunReport {
    let spent = report.run().spent_in_all();
    let reason = match report.outcome() {
        Some(Outcome::Failed { message, .. }) => Some(message.as_str()),
        Some(Outcome::Cancelled { reason }) => Some(reason.as_str()),
        _ => report.run().paused(),
    };
    AgentRunReport {
        id: report.id().to_string(),
        parent: report.run().parent().map(|parent| parent.run.to_string()),
        metadata: report.run().metadata().clone(),
        agent: report.run().agent().to_owned(),
        status: report.state(),
        active: false,
        text: Some(report.text().to_owned()).filter(|text| !text.is_empty()),
        reason: reason.map(str::to_owned),
        waiting: report.waiting().map(waiting).chain(handed_over(report)).collect(),
        usage: AgentUsage {
            turns: spent.turns,
            calls: spent.calls,
            input_tokens: spent.usage.input,
            output_tokens: spent.usage.output,
            cost_nanodollars: spent.cost.nanodollars(),
            unknown_requests: spent.unknown_requests,
            seconds: spent.time.as_secs_f64(),
        },
    }
}

fn waiting(call: &Suspension) -> AgentWaitingCall {
    let (kind, message, schema) = match call.waiting() {
        Waiting::Approval { reason, .. } => ("approval", Some(reason), None),
        Waiting::Input { message, schema, .. } => ("input", Some(message), Some(schema)),
        Waiting::Client => ("client", None, None),
        _ => ("pending", None, None),
    };
    AgentWaitingCall {
        id: call.id().to_string(),
        call_id: call.call_id().to_owned(),
        tool: call.tool().to_owned(),
        r#type: kind.to_owned(),
        arguments: call.shown().arguments.clone(),
        message: message.cloned(),
        schema: schema.cloned(),
        expires_at: Some(call.expires_at().unix_millis()),
    }
}

/// The calls that the client of the Responses API has. They have no expiry.
fn handed_over(report: &RunReport) -> impl Iterator<Item = AgentWaitingCall> {
    report.run().handed_over().map(|(id, tool)| AgentWaitingCall {
        id: id.as_str().to_owned(),
        call_id: id.as_str().to_owned(),
        tool: tool.to_owned(),
        r#type: "client".to_owned(),
        arguments: report
            .run()
            .arguments_of(id)
            .and_then(|arguments| serde_json::from_str(arguments).ok())
            .unwrap_or_default(),
        message: None,
        schema: None,
        expires_at: None,
    })
}

/// A row without what only the server needs to continue a suspended call.
fn shown_row((seq, row): (Seq, JournalRow)) -> Result<AgentRunRow, AgentRunError> {
    let mut entry: Value = match &row.entry {
        JournalEntry::CallSuspended { suspension } => {
            json!({"call_suspended": {"suspension": waiting(suspension)}})
        }
        entry => serde_json::to_value(entry)
            .map_err(|error| AgentRunError::Internal(error.to_string()))?,
    };
    if let Some(started) = entry.get_mut("started").and_then(Value::as_object_mut) {
        // Its context values are the host's.
        started.remove("toolset");
    }
    Ok(AgentRunRow { seq, at: row.at.unix_millis(), entry })
}
