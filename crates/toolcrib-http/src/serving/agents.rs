//! The interface to the agents whose runs are served.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use toolcrib_core::TurnOptions;
use toolcrib_core::run::{RunError, RunId, Seq};
use toolcrib_core::suspension::{Resolution, StoreError, Submission, SuspensionId};
use toolcrib_tool::BoxFuture;

/// Runs of agents, each on behalf of the identity of the client's turn options. The runs of other identities are
/// [unknown](AgentRunError::Unknown).
pub trait AgentRuns: Send + Sync + 'static {
    /// Stores a new run of this agent with its first input. It does nothing until somebody
    /// [works](Self::work) on it.
    fn begin(
        &self,
        client: TurnOptions,
        agent: RequestedAgent,
        input: String,
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

    /// Up to `limit` rows of a run's journal after row number `after`, in order.
    fn rows(
        &self,
        client: TurnOptions,
        run: RunId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<AgentRunRow>, AgentRunError>>;
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
    /// The agent: its name in the config, or `model:PROVIDER/MODEL`.
    pub agent: String,
    /// `in_progress`, `paused`, `requires_action`, `waiting_for_subtask`, `completed`, `failed` or `cancelled`.
    pub status: String,
    /// Whether this server works on it now. A run in progress on which nobody works, for example because its server
    /// was killed, goes on when it is resumed.
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
    /// What it has used so far.
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
    /// When the wait ends, in milliseconds since 1970.
    pub expires_at: u64,
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
