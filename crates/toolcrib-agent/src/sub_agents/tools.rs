//! The tools with which an agent starts others, and with which it ends its run.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_tool::{
    CallContext, DefinitionError, Layer, Source, Ticket, Tool, ToolDefinition, ToolEntry,
    ToolError, ToolOutcome, tool_fn,
};

use super::MAX_TASKS;

/// The tool that starts several agents and returns all their answers.
pub const MULTI_AGENT: &str = "multi_agent";
/// The tool that gives a task to a configured agent.
pub const NEW_TASK: &str = "new_task";
/// The tool that ends a run with its result.
pub const ATTEMPT_COMPLETION: &str = "attempt_completion";

/// What `new_task` does, without the names of the agents, which each run adds.
const NEW_TASK_DOES: &str = "Give a task to one of the configured agents. Returns its answer.";
/// The characters of an agent's line in the description of `new_task`.
const AGENT_LINE: usize = 200;

/// The ticket of calls that wait for sub-agents. Which these are follows from the call.
pub(crate) const TICKET: &str = "sub-agents";

/// The arguments of `multi_agent`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MultiAgent {
    /// The tasks. Each agent knows only its own.
    pub(crate) tasks: Vec<AgentTask>,
}

/// A task of `multi_agent`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentTask {
    /// A short name, under which the answer is returned.
    pub(crate) name: String,
    /// All that the agent needs to know to do the task.
    pub(crate) instruction: String,
    /// The names of the tools that it may use. Default: all of yours.
    #[serde(default)]
    pub(crate) tools: Option<Vec<String>>,
}

/// The arguments of `new_task`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTask {
    /// The name of the agent.
    pub(crate) agent_name: String,
    /// A short name of the task.
    pub(crate) task_name: String,
    /// All that the agent needs to know to do the task.
    pub(crate) input: String,
}

/// Why an agent starts no others.
pub(crate) const TOO_DEEP: &str = "agents of this depth start no others";

/// What the tools know of the run that calls them, as a service of its turns.
pub(crate) struct AgentScope {
    /// The agents that `new_task` can start.
    pub(crate) agents: Vec<String>,
    /// Whether the run may start agents at all: they are not too deep.
    pub(crate) may_start: bool,
    /// Whether a tool is the run's to give.
    pub(crate) has_tool: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

/// The tools `multi_agent`, `new_task` and `attempt_completion`, for the registry of an agent's executor. Other tools
/// of the names of the last two take their place.
pub fn entries() -> Result<Vec<ToolEntry>, DefinitionError> {
    entries_within(Within::OwnTurns)
}

/// As [`entries`], for hosts where only toolsets of agents' runs have these tools. Calls that are approved away from their
/// run, such as in a list of all approvals, start their agents once the run goes on.
pub fn entries_of_runs() -> Result<Vec<ToolEntry>, DefinitionError> {
    entries_within(Within::AnyTurn)
}

/// The turns in which the tools that start agents work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// Those of runs in the process that drives them.
    OwnTurns,
    /// Any: whoever can call them is a run.
    AnyTurn,
}

fn entries_within(within: Within) -> Result<Vec<ToolEntry>, DefinitionError> {
    let system = || Source::new(Layer::Fallback, "system");
    // Nothing begins before the call is in the journal, so a call that was lost can be made again.
    let multi_agent = ToolDefinition::builder(MULTI_AGENT)
        .idempotent(true)
        .description(
            "Give up to 5 independent tasks to other agents, which work on them at the same time. Returns their \
             answers in the order of the tasks.",
        )
        .input_schema(json!({
            "type": "object",
            "properties": {"tasks": {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_TASKS,
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "description": "A short name, under which the answer is returned."},
                        "instruction": {"type": "string", "description": "All that the agent needs to know: it \
                                        knows nothing but its task."},
                        "tools": {
                            "type": "array",
                            "items": {"type": "string"},
                            "description": "The names of the tools it may use. Without it, all of yours.",
                        },
                    },
                    "required": ["name", "instruction"],
                    "additionalProperties": false,
                },
            }},
            "required": ["tasks"],
            "additionalProperties": false,
        }));
    let new_task = ToolDefinition::builder(NEW_TASK)
        .idempotent(true)
        .description(NEW_TASK_DOES)
        .input_schema(json!({
            "type": "object",
            "properties": {
                "agent_name": {"type": "string", "description": "The name of the agent."},
                "task_name": {"type": "string", "description": "A short name of the task."},
                "input": {"type": "string", "description": "All that the agent needs to know: it knows nothing but \
                          its task."},
            },
            "required": ["agent_name", "task_name", "input"],
            "additionalProperties": false,
        }));
    let start: Arc<dyn Tool> =
        Arc::new(tool_fn(move |task: NewTask, cx| async move { new(&task, &cx, within) }));
    let group: Arc<dyn Tool> =
        Arc::new(tool_fn(move |tasks: MultiAgent, cx| async move { several(&tasks, &cx, within) }));
    Ok(vec![
        ToolEntry::new(multi_agent.build()?, group, Source::new(Layer::Native, "toolcrib-agent")),
        ToolEntry::new(new_task.build()?, start, system()),
        completion(&json!({"description": "The result, complete and final."}), system())?,
    ])
}

/// The definition of `new_task` for an agent that can start these, each with the first line of its instructions. Another
/// tool of this name stays as it is.
pub(crate) fn new_task_of<'a>(
    definition: &Arc<ToolDefinition>,
    agents: impl Iterator<Item = (&'a str, &'a str)>,
) -> Arc<ToolDefinition> {
    if definition.description() != NEW_TASK_DOES {
        return Arc::clone(definition);
    }
    let mut description = format!("{NEW_TASK_DOES} The agents are:");
    let mut names = Vec::new();
    for (name, line) in agents {
        let line: String = line.chars().take(AGENT_LINE).collect();
        description += "\n- ";
        description += name;
        if !line.is_empty() {
            description += ": ";
            description += &line;
        }
        names.push(name);
    }
    let mut schema = definition.input_schema().clone();
    schema["properties"]["agent_name"]["enum"] = json!(names);
    let own = definition.to_builder().description(description).input_schema(schema).build();
    own.map_or_else(|_| Arc::clone(definition), Arc::new)
}

/// The tool `attempt_completion` with a result of this schema.
pub(crate) fn completion(schema: &Value, source: Source) -> Result<ToolEntry, DefinitionError> {
    let definition = ToolDefinition::builder(ATTEMPT_COMPLETION)
        .description("End the work with its result. It has to be the only call of your answer.")
        .terminal(true)
        .read_only(true)
        .input_schema(json!({
            "type": "object",
            "properties": {"result": schema},
            "required": ["result"],
            "additionalProperties": false,
        }))
        .build()?;
    let result = |mut arguments: Value, _: CallContext| async move {
        match arguments["result"].take() {
            Value::String(text) => text,
            other => other.to_string(),
        }
    };
    Ok(ToolEntry::new(definition, Arc::new(tool_fn(result)), source))
}

/// What is known of the run that calls; `None` if the call was approved away from it: then it is checked when the run goes on.
fn scope(cx: &CallContext, within: Within) -> Result<Option<Arc<AgentScope>>, ToolError> {
    match cx.service::<AgentScope>() {
        Some(scope) if !scope.may_start => {
            Err(ToolError::denied(TOO_DEEP).with_hint("Do the task with your other tools."))
        }
        None if within == Within::OwnTurns => {
            Err(ToolError::unavailable("only the run of an agent can start agents")
                .with_hint("Do the task with your other tools."))
        }
        scope => Ok(scope),
    }
}

fn several(group: &MultiAgent, cx: &CallContext, within: Within) -> Result<ToolOutcome, ToolError> {
    let scope = scope(cx, within)?;
    if group.tasks.len() > MAX_TASKS {
        return Err(ToolError::invalid_args(format!("`tasks` has more than {MAX_TASKS} tasks")));
    }
    let tools = group.tasks.iter().flat_map(|task| task.tools.iter().flatten());
    let is_unknown = |tool: &&String| scope.as_ref().is_some_and(|run| !(run.has_tool)(tool));
    let unknown: Vec<_> = tools.filter(is_unknown).map(String::as_str).collect();
    if !unknown.is_empty() {
        let message = format!("`tools` names tools that you do not have: {}", unknown.join(", "));
        return Err(ToolError::invalid_args(message));
    }
    Ok(ToolOutcome::Pending(Ticket::new(TICKET)))
}

fn new(task: &NewTask, cx: &CallContext, within: Within) -> Result<ToolOutcome, ToolError> {
    let scope = scope(cx, within)?;
    if let Some(scope) = scope.filter(|run| !run.agents.contains(&task.agent_name)) {
        let known = match scope.agents.as_slice() {
            [] => "none is configured".to_owned(),
            known => format!("there are: {}", known.join(", ")),
        };
        let message = format!("there is no agent `{}`; {known}", task.agent_name);
        return Err(ToolError::invalid_args(message));
    }
    Ok(ToolOutcome::Pending(Ticket::new(TICKET)))
}
