//! Single calls and batches.

use std::collections::HashSet;
use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use toolcrib_core::run::Run;
use toolcrib_core::{Answer, Turn, TurnOptions};
use toolcrib_json::Cursor;
use toolcrib_tool::{ToolCall, ToolResult};

use super::result::CallResult;
use super::run_body::RunBody;
use super::{Api, json, runs, stream, wants_events};
use crate::api::problem::Problem;
use crate::auth::client::Client;
use crate::auth::entitlement::AdmittedRequest;
use crate::idempotency::Request;
use crate::observability::request_log::RequestId;
use crate::serving::request_body::{JsonBody, RawArguments, arguments_at, object};

/// The maximum number of calls in a batch.
const BATCH_MAX: usize = 256;

/// The maximum number of calls of a batch that run at once.
const CONCURRENCY_MAX: u64 = 1_000_000;

/// The longest id or session name, in characters.
const NAME_MAX: usize = 256;

/// A call of the tool named in the path.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CallRequest {
    /// The arguments: an object, or JSON text as a model wrote it, which is repaired where that is
    /// safe.
    #[schemars(with = "ArgumentsShape")]
    arguments: RawArguments,
    /// The caller's id of the call, which appears in its answer, its events and the audit log.
    /// Default: the request id.
    #[schemars(length(min = 1, max = 256))]
    call_id: Option<String>,
    /// The session of the call: approvals and, for some tools, cached answers are shared within a
    /// session. Default: none.
    #[schemars(length(min = 1, max = 256))]
    session: Option<String>,
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the two forms of arguments, for the schema")]
pub(crate) enum ArgumentsShape {
    Object(Map<String, Value>),
    Text(String),
}

/// Several calls.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchRequest {
    /// The calls. They run concurrently where possible and are answered in this order.
    #[schemars(length(min = 1, max = 256))]
    calls: Vec<BatchCall>,
    /// The session of the calls. Default: none.
    #[serde(default)]
    #[schemars(length(min = 1, max = 256))]
    session: Option<String>,
    /// The maximum number of calls that run at once: 1 = sequentially, 0 = all. Default: the
    /// server's `executor.max_concurrency`.
    #[serde(default, deserialize_with = "whole")]
    #[schemars(with = "Option<u64>", range(max = 1_000_000))]
    max_concurrency: Option<usize>,
}

/// An optional integer, which may be written with a zero fraction.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    let Some(number) = Option::<Number>::deserialize(deserializer)? else { return Ok(None) };
    let whole = number.as_u64().or_else(|| {
        let number = number.as_f64().filter(|number| number.fract() == 0.0 && *number >= 0.0)?;
        format!("{number:.0}").parse().ok()
    });
    let check_length = whole.filter(|whole| *whole <= CONCURRENCY_MAX);
    let check_length = check_length.and_then(|whole| usize::try_from(whole).ok());
    let problem =
        || D::Error::custom(format!("a whole number of at most {CONCURRENCY_MAX} is expected"));
    check_length.map(Some).ok_or_else(problem)
}

/// One call of a batch.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BatchCall {
    /// The caller's id of the call, unique within the batch. Default: the id of the request with `_1`, `_2` and so
    /// on, by position.
    #[serde(default)]
    #[schemars(length(min = 1, max = 256))]
    call_id: Option<String>,
    /// The tool's name.
    tool: String,
    /// The arguments: an object, or JSON text.
    #[serde(default, rename = "arguments")]
    #[schemars(with = "ArgumentsShape")]
    _arguments: RawArguments,
}

/// The answers of a batch.
#[derive(Serialize, JsonSchema)]
pub(crate) struct BatchResult {
    /// One answer per call, in their order.
    results: Vec<CallResult>,
}

impl BatchResult {
    pub(super) fn of<'a>(results: impl IntoIterator<Item = &'a ToolResult>) -> Self {
        Self { results: results.into_iter().map(CallResult::from).collect() }
    }
}

/// Validated calls, ready to run.
pub(crate) struct PreparedCalls {
    pub(super) ready: Vec<ToolCall>,
    session: Option<String>,
    max_concurrency: Option<usize>,
}

impl PreparedCalls {
    /// Adds the session and concurrency limit of these calls to the options of a turn.
    pub(super) fn add_options(&self, options: TurnOptions) -> TurnOptions {
        let options = match &self.session {
            Some(session) => options.session(session.as_str()),
            None => options,
        };
        match self.max_concurrency {
            Some(limit) => options.max_concurrency(limit),
            None => options,
        }
    }

    fn one(name: &str, id: &RequestId, body: &JsonBody) -> Result<Self, Problem> {
        let CallRequest { call_id, session, .. } = body.read()?;
        check_length("/call_id", call_id.as_deref())?;
        check_length("/session", session.as_deref())?;
        let call_id = call_id.unwrap_or_else(|| id.0.as_ref().to_owned());
        let call = ToolCall::new(call_id, name, arguments_at(body.root()));
        Ok(Self { ready: vec![call], session, max_concurrency: None })
    }

    pub(super) fn several(request: &RequestId, body: &JsonBody) -> Result<Self, Problem> {
        let BatchRequest { calls, session, max_concurrency } = body.read()?;
        if !(1..=BATCH_MAX).contains(&calls.len()) {
            let detail = format!("/calls: 1 to {BATCH_MAX} calls, not {}", calls.len());
            return Err(Problem::unprocessable(detail));
        }
        check_length("/session", session.as_deref())?;
        let places = body.root().get("calls").into_iter().flat_map(Cursor::items);
        let mut ids = HashSet::new();
        let mut ready = Vec::with_capacity(calls.len());
        for (position, (call, place)) in calls.into_iter().zip(places).enumerate() {
            object(&format!("/calls/{position}"), place)?;
            check_length(&format!("/calls/{position}/call_id"), call.call_id.as_deref())?;
            let id = call.call_id.unwrap_or_else(|| format!("{}_{}", request.0, position + 1));
            if !ids.insert(id.clone()) {
                let detail =
                    format!("/calls/{position}/call_id: another call has the id {id:?} already");
                return Err(Problem::unprocessable(detail));
            }
            ready.push(ToolCall::new(id, call.tool, arguments_at(place)));
        }
        Ok(Self { ready, session, max_concurrency })
    }
}

fn check_length(place: &str, name: Option<&str>) -> Result<(), Problem> {
    match name {
        Some(name) if !(1..=NAME_MAX).contains(&name.chars().count()) => {
            let characters = name.chars().count();
            Err(Problem::unprocessable(format!(
                "{place}: 1 to {NAME_MAX} characters, not {characters}"
            )))
        }
        _ => Ok(()),
    }
}

pub(crate) async fn call(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Extension(id): Extension<RequestId>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let calls = PreparedCalls::one(&name, &id, &JsonBody::parse(&headers, &body)?)?;
    if wants_events(&headers) {
        Request::none(&headers)?;
        return Ok(stream::call(&api, &client, calls));
    }
    let request = Request::of(&headers, &client.key_owner, &["call", &name], &body)?;
    let own = api.clone();
    let work = async move { answer_call(&own, &client, calls).await.into_response() };
    api.idempotency().once_if(&api, request, Box::pin(work)).await
}

async fn answer_call(
    api: &Api,
    client: &Client,
    calls: PreparedCalls,
) -> Result<Response, Problem> {
    let turn = client.turn(|options| calls.add_options(options));
    let Some(call) = calls.ready.into_iter().next() else {
        return Err(Problem::unprocessable("the request contains no call"));
    };
    match start(api, &turn, call).await {
        Answer::Done(result) => Ok(single_response(&turn, &result)),
        waits @ Answer::Suspended(_) => Ok(waiting(api, &turn, vec![waits]).await?),
    }
}

/// Makes a call. Without a run store, a call that would wait fails instead.
pub(super) async fn start(api: &Api, turn: &Turn, call: ToolCall) -> Answer {
    let made = async {
        match api.backend().runs() {
            Some(_) => turn.start(call).await,
            None => Answer::Done(turn.call(call).await),
        }
    };
    AdmittedRequest::withdraw_if_ended(turn, made).await
}

/// Makes several calls in the same way.
pub(super) async fn start_batch(api: &Api, turn: &Turn, calls: Vec<ToolCall>) -> Vec<Answer> {
    let made = async {
        match api.backend().runs() {
            Some(_) => turn.start_batch(calls).await,
            None => turn.call_batch(calls).await.into_iter().map(Answer::Done).collect(),
        }
    };
    AdmittedRequest::withdraw_if_ended(turn, made).await
}

/// The response to a single call.
fn single_response(turn: &Turn, result: &ToolResult) -> Response {
    let Some(error) = result.error() else {
        return json(StatusCode::OK, &CallResult::from(result));
    };
    let definition = turn.describe(result.tool());
    let repeatable = definition.is_some_and(|definition| {
        definition.annotations().read_only || definition.annotations().idempotent
    });
    Problem::of_call(result, error, repeatable).into_response()
}

/// Stores calls of which some wait as a run. If that fails, nobody could find the waiting calls, so
/// they are cancelled.
pub(super) async fn store_run(
    api: &Api,
    turn: &Turn,
    answers: Vec<Answer>,
) -> Result<Run, Problem> {
    let store = runs::store(api)?;
    let mut run = Run::from_answers(turn, answers)
        .map_err(|error| Problem::internal("the run could not be created", &error))?;
    let made = run.answered().count();
    let Err(error) = run.save(&*store).await else { return Ok(run) };
    let problem = Problem::from(error);
    if let Err(error) = run.cancel(turn).await {
        tracing::warn!(%error, "waiting calls of a failed run could not be cancelled; they will expire");
    }
    Err(match made {
        0 => problem.nothing_done(),
        made => problem.and(&format!("The calls that did not wait have run: {made}")),
    })
}

async fn waiting(api: &Api, turn: &Turn, answers: Vec<Answer>) -> Result<Response, Problem> {
    let run = store_run(api, turn, answers).await?;
    Ok(runs::with_location(StatusCode::ACCEPTED, &RunBody::from(&run), run.id()))
}

pub(crate) async fn batch(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Extension(id): Extension<RequestId>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let calls = PreparedCalls::several(&id, &JsonBody::parse(&headers, &body)?)?;
    if wants_events(&headers) {
        Request::none(&headers)?;
        return Ok(stream::batch(&api, &client, calls));
    }
    let request = Request::of(&headers, &client.key_owner, &["batch"], &body)?;
    let own = api.clone();
    let work = async move { answer_batch(&own, &client, calls).await.into_response() };
    api.idempotency().once_if(&api, request, Box::pin(work)).await
}

async fn answer_batch(
    api: &Api,
    client: &Client,
    calls: PreparedCalls,
) -> Result<Response, Problem> {
    let turn = client.turn(|options| calls.add_options(options));
    let answers = start_batch(api, &turn, calls.ready).await;
    if answers.iter().any(|answer| matches!(answer, Answer::Suspended(_))) {
        return waiting(api, &turn, answers).await;
    }
    let results = answers.iter().filter_map(|answer| match answer {
        Answer::Done(result) => Some(result),
        Answer::Suspended(_) => None,
    });
    Ok(json(StatusCode::OK, &BatchResult::of(results)))
}
