//! New runs of agents.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use axum::response::Response;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use toolcrib_core::suspension::StoreError;

use super::{agents, check_input, finished, report, work};
use crate::api::Api;
use crate::api::calls::BatchRequest;
use crate::api::problem::Problem;
use crate::api::run_body::RunBody;
use crate::api::runs::with_location;
use crate::auth::client::Client;
use crate::idempotency::STORE_RETRY;
use crate::idempotency::store::AnswerKey;
use crate::{
    AgentRunBudget, AgentRunError, AgentRunReport, AgentRunStep, NewAgentRun, RequestedAgent,
};

/// The most notes about a run.
const NOTES: usize = 16;
/// The most characters of a note's key and of its text.
const NOTE_KEY: usize = 64;
const NOTE_TEXT: usize = 512;
/// The smallest and the largest limit on cost, in US dollars.
const SMALLEST: f64 = 0.000_000_001;
const LARGEST: f64 = 1_000_000_000.0;
/// The longest limit on time.
const MAX_SECONDS: u64 = 1_000_000_000;

/// A new run: of calls, or of an agent.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the two forms of a new run, for the schema")]
pub(crate) enum StartRequest {
    Calls(BatchRequest),
    Agent(AgentRunRequest),
}

/// A run of calls or of an agent.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the two forms of a run, for the schema")]
pub(crate) enum AnyRun {
    Calls(RunBody),
    Agent(AgentRunReport),
}

/// A new run of an agent.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentRunRequest {
    /// What the agent is told.
    #[schemars(extend("pattern" = "\\S"))]
    input: String,
    /// An agent of the server's config, if no `model` is given. Default: the only one, or the one called `default`.
    #[serde(default)]
    agent: Option<String>,
    /// A model alone, as `PROVIDER/MODEL`. Default: that of the agent.
    #[serde(default)]
    model: Option<String>,
    /// The only tools of its agent that the run has, by name. Default: all.
    #[serde(default)]
    tools: Option<Vec<String>>,
    /// Limits of the run. Default: those of its agent, which none exceeds.
    #[serde(default)]
    budget: AgentRunBudget,
    /// Notes about the run, which are shown with it: at most 16, with keys of up to 64 and texts of up to 512 characters.
    #[serde(default)]
    #[schemars(schema_with = "notes")]
    metadata: BTreeMap<String, String>,
    /// Whether to answer at once, while the agent works. Default: answer when the run has ended or waits.
    #[serde(default)]
    background: bool,
}

fn notes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": NOTES,
        "propertyNames": {"minLength": 1, "maxLength": NOTE_KEY},
        "additionalProperties": {"type": "string", "maxLength": NOTE_TEXT},
    })
}

fn check_notes(notes: &BTreeMap<String, String>) -> Result<(), Problem> {
    let fits = |(key, text): (&String, &String)| {
        (1..=NOTE_KEY).contains(&key.chars().count()) && text.chars().count() <= NOTE_TEXT
    };
    if notes.len() <= NOTES && notes.iter().all(fits) {
        return Ok(());
    }
    let detail = format!(
        "/metadata: at most {NOTES} notes, with keys of 1 to {NOTE_KEY} and texts of up to {NOTE_TEXT} characters"
    );
    Err(Problem::unprocessable(detail))
}

/// The answer if a new run could not be stored, for example because the disk is full.
fn not_stored(error: &AgentRunError) -> Problem {
    tracing::warn!(%error, "a run did not begin: it could not be stored");
    let detail =
        "the run could not be stored at present, so nothing was run: send the request again later";
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail);
    problem.retry_after(STORE_RETRY).nothing_done()
}

/// Stores a new run and begins it. `key` is the idempotency key of the request.
pub(in crate::api) async fn start(
    api: &Api,
    client: &Client,
    wanted: AgentRunRequest,
    key: Option<&AnswerKey>,
) -> Result<Response, Problem> {
    check_input(&wanted.input)?;
    let agent = match (wanted.agent, wanted.model) {
        (None, None) => RequestedAgent::Default,
        (Some(agent), None) => RequestedAgent::Agent(agent),
        (None, Some(model)) => RequestedAgent::Model(model),
        (Some(_), Some(_)) => {
            let detail = "give `agent` or `model`, not both: an agent of the config has its model";
            return Err(Problem::unprocessable(detail).kind("invalid_args"));
        }
    };
    check_notes(&wanted.metadata)?;
    if wanted.budget.max_cost.is_some_and(|dollars| !(SMALLEST..=LARGEST).contains(&dollars))
        || wanted.budget.max_seconds.is_some_and(|seconds| seconds.get() > MAX_SECONDS)
    {
        let detail =
            "/budget: `max_cost` is from 1e-9 to 1e9 US dollars, and `max_seconds` up to 1e9";
        return Err(Problem::unprocessable(detail));
    }
    let AgentRunRequest { input, tools, budget, metadata, background, .. } = wanted;
    let new = NewAgentRun { agent, input, tools, budget, metadata };
    let begun = agents(api)?.begin(client.turn_options(), new).await;
    let id = begun.map_err(|error| match error {
        AgentRunError::Store(StoreError::Failed { .. }) => not_stored(&error),
        error => error.into(),
    })?;
    if let Some(key) = key {
        api.idempotency().note_run(key, &id).await;
    }
    let work = work(api, client, &id, AgentRunStep::Resume)?;
    if !background {
        // The run is stored, and shows how far it got.
        if let Err(problem) = finished(work).await {
            return Err(problem.and(&format!("The run {id} is stored and can be resumed")));
        }
    }
    let report = report(api, client, &id).await?;
    Ok(with_location(StatusCode::CREATED, &report, &id))
}
