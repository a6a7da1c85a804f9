//! The interface to the agents whose runs are served.

use std::collections::BTreeMap;
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{broadcast, mpsc, oneshot};
use toolcrib_core::TurnOptions;
use toolcrib_core::run::{RunError, RunId, RunState, Seq};
use toolcrib_core::suspension::{Resolution, StoreError, Submission, SuspensionId};
use toolcrib_tool::{BoxFuture, ToolResult};

/// Runs of agents, each on behalf of the identity of the client's turn options. The runs of other identities are
/// [unknown](AgentRunError::Unknown).
pub trait AgentRuns: Send + Sync + 'static {
    /// Stores a new run with its first input. It does nothing until somebody [works](Self::work) on it.
    fn begin(
        &self,
        client: TurnOptions,
        run: NewAgentRun,
    ) -> BoxFuture<'_, Result<RunId, AgentRunError>>;

    /// Works on a run until it ends or waits.
    fn work(
        &self,
        client: TurnOptions,
        run: RunId,
        step: AgentRunStep,
        control: AgentRunControl,
    ) -> BoxFuture<'_, Result<(), AgentRunError>>;

    /// A run as it is stored now.
    fn report(
        &self,
        client: TurnOptions,
        run: RunId,
    ) -> BoxFuture<'_, Result<AgentRunReport, AgentRunError>>;

    /// Whether another server with the same state folder works on a run now.
    fn is_elsewhere(&self, run: RunId) -> BoxFuture<'_, Result<bool, AgentRunError>>;

    /// Up to `limit` rows of a run's journal after row number `after`, in order.
    fn rows(
        &self,
        client: TurnOptions,
        run: RunId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<AgentRunRow>, AgentRunError>>;

    /// Up to `limit` items of a run's conversation after an item, in order.
    fn items(
        &self,
        client: TurnOptions,
        run: RunId,
        after: Option<AgentItemId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<AgentRunItem>, AgentRunError>>;

    /// Removes a run that has ended, with those of its sub-agents.
    fn remove(
        &self,
        client: TurnOptions,
        run: RunId,
    ) -> BoxFuture<'_, Result<AgentRunReport, AgentRunError>>;
}

/// A new run.
#[derive(Debug, Clone)]
pub struct NewAgentRun {
    /// Whose run it is.
    pub agent: RequestedAgent,
    /// What the agent is told.
    pub input: String,
    /// The only tools of the agent that the run has; all of them if it is `None`.
    pub tools: Option<Vec<String>>,
    /// Limits of the run beside those of its agent.
    pub budget: AgentRunBudget,
    /// What the client notes about the run.
    pub metadata: BTreeMap<String, String>,
}

/// Limits of a run. Where its agent has a tighter one, that holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentRunBudget {
    /// Answers of the model. The last one cannot have calls.
    pub max_turns: Option<NonZeroU32>,
    /// Calls of tools.
    pub max_calls: Option<NonZeroU32>,
    /// Tokens of all requests and answers.
    pub max_tokens: Option<NonZeroU64>,
    /// US dollars, where prices are known.
    #[schemars(range(min = 0.000_000_001, max = 1_000_000_000))]
    pub max_cost: Option<f64>,
    /// Seconds in which the run is worked on.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub max_seconds: Option<NonZeroU64>,
}

/// The agent of a new run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedAgent {
    /// The default of the config.
    Default,
    /// An agent of the config.
    Agent(String),
    /// A model alone: `PROVIDER/MODEL`.
    Model(String),
}

/// What reaches a run while somebody works on it.
pub struct AgentRunControl {
    /// When it completes, running calls are cancelled and answered, and the run is paused or ends.
    pub stopped: BoxFuture<'static, AgentRunStop>,
    /// What clients say to the run.
    pub said: mpsc::UnboundedReceiver<AgentRunInput>,
    /// Who follows the run.
    pub followers: AgentRunFollowers,
}

/// The clients that follow what happens in a run. What they do not read in time they miss, and are told so.
#[derive(Debug, Clone)]
pub struct AgentRunFollowers(broadcast::Sender<AgentRunEvent>);

impl AgentRunFollowers {
    pub(crate) fn new(sender: broadcast::Sender<AgentRunEvent>) -> Self {
        Self(sender)
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.0.receiver_count() == 0
    }

    /// Tells them what has happened.
    pub fn tell(&self, event: AgentRunEvent) {
        // An error means that nobody follows it.
        let _ = self.0.send(event);
    }
}

/// What clients that follow a run are told.
#[derive(Debug, Clone)]
pub enum AgentRunEvent {
    /// A row of its journal was written.
    Recorded(Seq),
    /// Something for display only.
    Shown {
        /// The number of the last row before it.
        after: Seq,
        /// What to show: `type`, and what belongs to the type. Secrets are masked.
        value: Arc<Value>,
    },
}

/// Something that a client says to a run while somebody works on it.
#[derive(Debug)]
pub struct AgentRunInput {
    /// What it says.
    pub text: String,
    /// Is told when the input is stored, so that nothing can lose it. It is dropped if nobody works on the run any more.
    pub recorded: oneshot::Sender<Result<(), AgentRunError>>,
}

/// What somebody does with a run.
#[derive(Debug, Clone)]
pub enum AgentRunStep {
    /// Continues it.
    Resume,
    /// Says something more and continues it, even if it had ended.
    Input(String),
    /// Says something to a run that has not ended, without continuing it.
    Steer(String),
    /// Resolves a waiting call. Only somebody who may approve can decide on calls that wait for others than the caller.
    Resolve {
        /// The call.
        call: SuspensionId,
        /// How it is resolved.
        resolution: Box<Resolution>,
        /// Whether the client has the right to approve.
        may_approve: bool,
    },
    /// Submits the outputs of all calls that wait for the client.
    Submit(Vec<Submission>),
    /// Cancels it.
    Cancel(String),
}

/// Why work on a run stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentRunStop {
    /// It can be resumed later.
    Pause(String),
    /// It has ended.
    Cancel(String),
}

/// Why something cannot be done with a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentRunError {
    /// The identity has no such run.
    #[error("there is no such run")]
    Unknown,
    /// The run does not allow this now.
    #[error("{0}")]
    NotNow(String),
    /// The request names no agent that there is.
    #[error("{0}")]
    Invalid(String),
    /// The agent cannot be used now.
    #[error("{0}")]
    Unavailable(String),
    /// Another server works on the run and did not answer in time. Nothing was done.
    #[error("{0}")]
    Busy(String),
    /// The client may not decide on this call.
    #[error("this decision needs the right `approve`")]
    NotAllowed,
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A waiting call could not be resolved.
    #[error(transparent)]
    Resolve(#[from] RunError),
    /// Another fault of this side.
    #[error("{0}")]
    Internal(String),
}

/// Where a run of an agent stands.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "AgentRun")]
pub struct AgentRunReport {
    /// The run's id.
    pub id: String,
    /// The run that started it, if it is a sub-agent's. Only that run can be continued, cancelled or removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// What the client that began it noted about it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// The agent: its name in the config, or `model:PROVIDER/MODEL`.
    pub agent: String,
    /// `in_progress`, `paused`, `requires_action`, `waiting_for_subtask`, `completed`, `failed` or `cancelled`.
    #[schemars(with = "String")]
    pub status: RunState,
    /// Whether a server with this state folder works on it now. A run in progress on which nobody works, for example
    /// because its server was killed, goes on when it is resumed.
    pub active: bool,
    /// The final answer, or the last one of a run that has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Why it is paused, has failed or was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The calls that wait for somebody, also those of sub-agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<AgentWaitingCall>,
    /// What it has used since it began, with its sub-agents. Its limits count since the last input that continued it after
    /// its end.
    pub usage: AgentUsage,
}

/// A call of an agent's run that waits for somebody.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AgentWaitingCall {
    /// The id to resolve it by.
    pub id: String,
    /// The model's id of the call.
    pub call_id: String,
    /// The tool's name.
    pub tool: String,
    /// What it waits for: `approval`, `input`, `client` or `pending`.
    pub r#type: String,
    /// The arguments; secrets and sensitive values are masked.
    pub arguments: Value,
    /// Why it waits, or the tool's question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The JSON Schema of the answer to a question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// When the wait ends, in milliseconds since 1970; never, if it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

/// What a run has used.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AgentUsage {
    /// The model's answers.
    pub turns: u32,
    /// Calls of tools.
    pub calls: u32,
    /// Tokens that the model read.
    pub input_tokens: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
    /// The cost in billionths of a US dollar, as far as the prices are known.
    pub cost_nanodollars: u64,
    /// Requests whose tokens are unknown, because their answers were lost.
    pub unknown_requests: u32,
    /// The time that was worked on it.
    pub seconds: f64,
}

/// A row of a run's journal.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AgentRunRow {
    /// Its number, from 1.
    pub seq: Seq,
    /// When it was written, in milliseconds since 1970.
    pub at: u64,
    /// The step, under the name of its kind: `started`, `input`, `model_answered`, `call_finished`, and so on. Secrets are
    /// masked.
    pub entry: Value,
}

/// An item of a run's conversation.
#[derive(Debug, Clone)]
pub struct AgentRunItem {
    /// Its id.
    pub id: AgentItemId,
    /// When it was stored, in milliseconds since 1970.
    pub at: u64,
    /// What it says. Secrets are masked.
    pub content: AgentItem,
}

/// The id of an item: its row in the journal, and its place in that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentItemId {
    /// The number of the row.
    pub row: Seq,
    /// Its place in the row, from 0.
    pub index: usize,
}

impl fmt::Display for AgentItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.row, self.index)
    }
}

/// What an item says.
#[derive(Debug, Clone)]
pub enum AgentItem {
    /// Somebody said something.
    Message {
        /// `user`, `system` or `assistant`.
        role: &'static str,
        /// The text, in which pictures, sounds and files are named.
        text: String,
    },
    /// The model's reasoning.
    Reasoning {
        /// The text.
        text: String,
    },
    /// The model calls a tool.
    Call {
        /// The model's id of the call.
        call_id: String,
        /// The tool's own name.
        tool: String,
        /// The arguments as the model wrote them.
        arguments: String,
    },
    /// The answer to a call.
    Result(Box<ToolResult>),
    /// What the model reads in place of an older part of the conversation.
    Summary {
        /// The text.
        text: String,
    },
    /// Something that only the model's provider knows.
    Other {
        /// The provider's word for it.
        kind: String,
    },
}
