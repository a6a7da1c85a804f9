//! Calls: one, or several at once.

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
use crate::auth::entitlement::Entered;
use crate::idempotency::Request;
use crate::observability::request_log::RequestId;
use crate::serving::request_body::{InPlace, JsonBody, arguments_at, object};

/// Calls of one batch.
const BATCH_MAX: usize = 256;

/// Calls of a batch that may run at once.
const CONCURRENCY_MAX: u64 = 1_000_000;

/// Ids and sessions are no longer than this, in characters.
const NAME_MAX: usize = 256;

/// A call of the tool that the path names.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CallRequest {
    /// The arguments: an object, or the text of one as a model has written it, which is mended where
    /// that is safe.
    #[schemars(with = "ArgumentsShape")]
    arguments: InPlace,
    /// The caller's id of the call, which its answer, its events and the audit log carry. Default: the
    /// id of the request.
    #[schemars(length(min = 1, max = 256))]
    call_id: Option<String>,
    /// The session that the call belongs to: what was approved in it and, for some tools, what was
    /// answered in it holds for its later calls. Default: none.
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
    /// The calls. They run at once as far as they allow, and are answered in this order.
    #[schemars(length(min = 1, max = 256))]
    calls: Vec<BatchCall>,
    /// The session that the calls belong to. Default: none.
    #[serde(default)]
    #[schemars(length(min = 1, max = 256))]
    session: Option<String>,
    /// Calls that run at once: 1 = one after another, 0 = all. Default: the server's
    /// `executor.max_concurrency`.
    #[serde(default, deserialize_with = "whole")]
    #[schemars(with = "Option<u64>", range(max = 1_000_000))]
    max_concurrency: Option<usize>,
}

/// A whole number, also where it is written with a fraction of zero, or nothing.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    let Some(number) = Option::<Number>::deserialize(deserializer)? else { return Ok(None) };
    let whole = number.as_u64().or_else(|| {
        let number = number.as_f64().filter(|number| number.fract() == 0.0 && *number >= 0.0)?;
        format!("{number:.0}").parse().ok()
    });
    let fits = whole.filter(|whole| *whole <= CONCURRENCY_MAX);
    let fits = fits.and_then(|whole| usize::try_from(whole).ok());
    let problem =
        || D::Error::custom(format!("a whole number of at most {CONCURRENCY_MAX} is expected"));
    fits.map(Some).ok_or_else(problem)
}

/// One of several calls.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BatchCall {
    /// The caller's id of the call; each has its own. Default: `call_1`, `call_2` and so on, by place.
    #[serde(default)]
    #[schemars(length(min = 1, max = 256))]
    call_id: Option<String>,
    /// The tool's name.
    tool: String,
    /// The arguments: an object, or the text of one.
    #[serde(default, rename = "arguments")]
    #[schemars(with = "ArgumentsShape")]
    _arguments: InPlace,
}

/// The answers to several calls.
#[derive(Serialize, JsonSchema)]
pub(crate) struct BatchResult {
    /// An answer for each call, in their order.
    results: Vec<CallResult>,
}

impl BatchResult {
    pub(super) fn of<'a>(results: impl IntoIterator<Item = &'a ToolResult>) -> Self {
        Self { results: results.into_iter().map(CallResult::from).collect() }
    }
}

/// What is to be called, ready to be called.
pub(crate) struct Calls {
    pub(super) ready: Vec<ToolCall>,
    session: Option<String>,
    max_concurrency: Option<usize>,
}

impl Calls {
    /// The options of a turn for these calls.
    pub(super) fn over(&self, options: TurnOptions) -> TurnOptions {
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
        fits("/call_id", call_id.as_deref())?;
        fits("/session", session.as_deref())?;
        let call_id = call_id.unwrap_or_else(|| id.0.as_ref().to_owned());
        let call = ToolCall::new(call_id, name, arguments_at(body.root()));
        Ok(Self { ready: vec![call], session, max_concurrency: None })
    }

    pub(super) fn several(body: &JsonBody) -> Result<Self, Problem> {
        let BatchRequest { calls, session, max_concurrency } = body.read()?;
        if !(1..=BATCH_MAX).contains(&calls.len()) {
            let detail = format!("/calls: 1 to {BATCH_MAX} calls, not {}", calls.len());
            return Err(Problem::unfit(detail));
        }
        fits("/session", session.as_deref())?;
        let places = body.root().get("calls").into_iter().flat_map(Cursor::items);
        let mut ids = HashSet::new();
        let mut ready = Vec::with_capacity(calls.len());
        for (position, (call, place)) in calls.into_iter().zip(places).enumerate() {
            object(&format!("/calls/{position}"), place)?;
            fits(&format!("/calls/{position}/call_id"), call.call_id.as_deref())?;
            let id = call.call_id.unwrap_or_else(|| format!("call_{}", position + 1));
            if !ids.insert(id.clone()) {
                let detail =
                    format!("/calls/{position}/call_id: another call has the id {id:?} already");
                return Err(Problem::unfit(detail));
            }
            ready.push(ToolCall::new(id, call.tool, arguments_at(place)));
        }
        Ok(Self { ready, session, max_concurrency })
    }
}

fn fits(place: &str, name: Option<&str>) -> Result<(), Problem> {
    match name {
        Some(name) if !(1..=NAME_MAX).contains(&name.chars().count()) => {
            let characters = name.chars().count();
            Err(Problem::unfit(format!("{place}: 1 to {NAME_MAX} characters, not {characters}")))
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
    let calls = Calls::one(&name, &id, &JsonBody::parse(&headers, &body)?)?;
    if wants_events(&headers) {
        Request::none(&headers)?;
        return Ok(stream::call(&api, &client, calls));
    }
    let request = Request::of(&headers, &client.keys, &["call", &name], &body)?;
    let own = api.clone();
    let work = async move { answered_one(&own, &client, calls).await.into_response() };
    api.idempotency().once_if(&api, request, Box::pin(work)).await
}

async fn answered_one(api: &Api, client: &Client, calls: Calls) -> Result<Response, Problem> {
    let turn = client.turn(|options| calls.over(options));
    let Some(call) = calls.ready.into_iter().next() else {
        return Err(Problem::unfit("there is no call"));
    };
    match start(api, &turn, call).await {
        Answer::Done(result) => Ok(of_result(&turn, &result)),
        waits @ Answer::Suspended(_) => Ok(waiting(api, &turn, vec![waits]).await?),
    }
}

/// Makes a call. Where runs are kept it may come to wait; where not, it fails instead.
pub(super) async fn start(api: &Api, turn: &Turn, call: ToolCall) -> Answer {
    let made = async {
        match api.backend().runs() {
            Some(_) => turn.start(call).await,
            None => Answer::Done(turn.call(call).await),
        }
    };
    Entered::withdraw_if_ended(turn, made).await
}

/// The same for several.
pub(super) async fn start_batch(api: &Api, turn: &Turn, calls: Vec<ToolCall>) -> Vec<Answer> {
    let made = async {
        match api.backend().runs() {
            Some(_) => turn.start_batch(calls).await,
            None => turn.call_batch(calls).await.into_iter().map(Answer::Done).collect(),
        }
    };
    Entered::withdraw_if_ended(turn, made).await
}

/// The answer to a call as a response of its own.
fn of_result(turn: &Turn, result: &ToolResult) -> Response {
    let Some(error) = result.error() else {
        return json(StatusCode::OK, &CallResult::from(result));
    };
    let definition = turn.describe(result.tool());
    let repeatable = definition.is_some_and(|definition| {
        definition.annotations().read_only || definition.annotations().idempotent
    });
    Problem::of_call(result, error, repeatable).into_response()
}

/// Keeps calls of which some wait as a run. Where that fails, nobody could find the calls that wait: they
/// end.
pub(super) async fn kept(api: &Api, turn: &Turn, answers: Vec<Answer>) -> Result<Run, Problem> {
    let store = runs::store(api)?;
    let mut run = Run::from_answers(turn, answers)
        .map_err(|error| Problem::internal("the run could not be made", &error))?;
    let made = run.answered().count();
    let Err(error) = run.save(&*store).await else { return Ok(run) };
    let problem = Problem::from(error);
    if let Err(error) = run.cancel(turn).await {
        tracing::warn!(%error, "calls that nobody can find could not be cancelled: they expire");
    }
    Err(match made {
        0 => problem.nothing_done(),
        made => problem.and(&format!("Calls that did not have to wait were made: {made}")),
    })
}

async fn waiting(api: &Api, turn: &Turn, answers: Vec<Answer>) -> Result<Response, Problem> {
    let run = kept(api, turn, answers).await?;
    Ok(runs::at_its_place(StatusCode::ACCEPTED, &RunBody::from(&run), run.id()))
}

pub(crate) async fn batch(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let calls = Calls::several(&JsonBody::parse(&headers, &body)?)?;
    if wants_events(&headers) {
        Request::none(&headers)?;
        return Ok(stream::batch(&api, &client, calls));
    }
    let request = Request::of(&headers, &client.keys, &["batch"], &body)?;
    let own = api.clone();
    let work = async move { answered_batch(&own, &client, calls).await.into_response() };
    api.idempotency().once_if(&api, request, Box::pin(work)).await
}

async fn answered_batch(api: &Api, client: &Client, calls: Calls) -> Result<Response, Problem> {
    let turn = client.turn(|options| calls.over(options));
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
