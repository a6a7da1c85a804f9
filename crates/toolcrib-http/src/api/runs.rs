//! Runs: calls that may be suspended, and their resolution.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolcrib_core::Turn;
use toolcrib_core::approval::{Decision, Remember};
use toolcrib_core::run::{Journal, Run, RunError, RunId, RunState, RunStore as _};
use toolcrib_core::suspension::{RedeemError, Resolution, Submission, SuspensionId, Waiting};
use toolcrib_tool::{BoxFuture, ToolOutput, exact};

use super::agent_runs::{self, Answered};
use super::approvals::ApprovalDecision;
use super::calls::{ArgumentsShape, PreparedCalls, start_batch, store_run};
use super::run_body::RunBody;
use super::{Api, json};
use crate::Right;
use crate::api::problem::Problem;
use crate::auth::bearer::missing_right;
use crate::auth::client::Client;
use crate::auth::entitlement::AdmittedRequest;
use crate::auth::right::Access;
use crate::idempotency::Request;
use crate::observability::request_log::RequestId;
use crate::serving::request_body::{JsonBody, RawArguments, arguments_at};

/// The outputs of all calls that wait for the client.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubmittedOutputs {
    /// One output per call; outputs of calls that already have an answer are ignored.
    tool_outputs: Vec<Output>,
}

/// The output of a call that the client has run.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Output {
    /// The id of the call.
    tool_call_id: String,
    /// The output. If the tool declares an output schema: the data as JSON text.
    output: String,
}

/// A resolution: exactly one of `decision`, `answer` and `output`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = one_of(&["decision", "answer", "output"])))]
pub(crate) struct ResolveRequest {
    /// The `id` of an entry in the run's `waiting`.
    id: String,
    /// Whether a call that waits for approval may run. Any waiting call can be denied.
    #[serde(default)]
    decision: Option<ApprovalDecision>,
    /// Why it was denied, for the model. Default: no explanation.
    #[serde(default)]
    message: Option<String>,
    /// Which further calls of its session are approved as well. Default: none.
    #[serde(default)]
    remember: RememberScope,
    /// Other arguments for the approved call, which are validated as usual.
    #[serde(default, rename = "arguments")]
    #[schemars(with = "ArgumentsShape")]
    _arguments: RawArguments,
    /// The answer to a tool's question.
    #[serde(default)]
    answer: Option<Value>,
    /// The output of work elsewhere.
    #[serde(default)]
    output: Option<String>,
}

/// A schema in which exactly one of these keys has a value.
fn one_of(keys: &[&str]) -> Value {
    let one = |own: &&str| {
        let properties: Map<String, Value> = keys
            .iter()
            .map(|key| {
                let empty = json!({"type": "null"});
                let schema = if key == own { json!({"not": empty}) } else { empty };
                ((*key).to_owned(), schema)
            })
            .collect();
        json!({"required": [own], "properties": properties})
    };
    keys.iter().map(one).collect()
}

/// Which calls an approval covers beside the call itself.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RememberScope {
    /// No other calls.
    #[default]
    Nothing,
    /// Calls of the tool with the same arguments.
    SameCall,
    /// All calls of the tool.
    Tool,
}

impl ResolveRequest {
    fn resolution(self, body: &JsonBody) -> Result<(SuspensionId, Resolution), Problem> {
        let changed = body.root().get("arguments").is_some();
        let resolution = match (self.decision, self.answer, self.output) {
            (Some(ApprovalDecision::Approve), None, None) if changed => {
                Decision::ApproveChanged { arguments: arguments_at(body.root()) }.into()
            }
            (Some(ApprovalDecision::Approve), None, None) => {
                let remember = match self.remember {
                    RememberScope::Nothing => Remember::Nothing,
                    RememberScope::SameCall => Remember::SameCall,
                    RememberScope::Tool => Remember::Tool,
                };
                Decision::Approve { remember }.into()
            }
            (Some(ApprovalDecision::Deny), None, None) => {
                Decision::Deny { message: self.message.unwrap_or_default() }.into()
            }
            (None, Some(answer), None) => {
                let answer_text = body.root().get("answer").map_or("", |answer| answer.source());
                if let Cow::Owned(_) = exact::protect(answer_text) {
                    let detail = "`answer` has a number beyond 64 bits or double precision, which would \
                                  not stay the same: send it as a string";
                    return Err(Problem::unprocessable(detail));
                }
                Resolution::Answer(answer)
            }
            (None, None, Some(output)) => Resolution::Output(ToolOutput::from(output)),
            _ => {
                let detail =
                    "give exactly one of `decision` (approve or deny), `answer` and `output`";
                return Err(Problem::unprocessable(detail));
            }
        };
        let id =
            self.id.parse().map_err(|_| Problem::not_found("no call with this id is waiting"))?;
        Ok((id, resolution))
    }
}

/// The store of runs.
pub(super) fn store(api: &Api) -> Result<Arc<dyn Journal>, Problem> {
    api.backend().runs().ok_or_else(|| {
        let detail = "this server stores no runs: set `state.dir` in its config";
        Problem::new(StatusCode::NOT_IMPLEMENTED, detail).kind("unavailable")
    })
}

/// A response with a run and its `Location`.
pub(super) fn with_location(status: StatusCode, body: &impl Serialize, id: &RunId) -> Response {
    let mut response = json(status, body);
    if let Ok(place) = HeaderValue::from_str(&format!("/v1/runs/{id}")) {
        response.headers_mut().insert(LOCATION, place);
    }
    response
}

pub(crate) async fn start(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Extension(id): Extension<RequestId>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    store(&api)?;
    let content = JsonBody::parse(&headers, &body)?;
    let request = Request::of(&headers, &client.key_owner, &["runs"], &body)?;
    let own = api.clone();
    let work: BoxFuture<'static, Response> = if content.root().get("calls").is_none() {
        let (wanted, key) = (content.read()?, request.as_ref().map(|one| one.key().clone()));
        Box::pin(async move {
            agent_runs::start(&own, &client, wanted, key.as_ref()).await.into_response()
        })
    } else {
        let calls = PreparedCalls::several(&id, &content)?;
        Box::pin(async move { started(&own, &client, calls).await.into_response() })
    };
    match request {
        // The run was requested to be stored, so the work continues if the client disconnects.
        None => api.run_to_completion(work).await,
        Some(request) => api.idempotency().once(&api, request, work).await,
    }
}

async fn started(api: &Api, client: &Client, calls: PreparedCalls) -> Result<Response, Problem> {
    let turn = client.turn(|options| calls.add_options(options));
    let answers = start_batch(api, &turn, calls.ready).await;
    let run = store_run(api, &turn, answers).await?;
    Ok(with_location(StatusCode::CREATED, &RunBody::from(&run), run.id()))
}

pub(crate) async fn show(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    Box::pin(perform(&api, client, &id, RunOperation::Show)).await
}

pub(crate) async fn submit(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let outputs: SubmittedOutputs = JsonBody::parse(&headers, &body)?.read()?;
    let submission = |one: Output| Submission::new(one.tool_call_id, one.output);
    let submitted = outputs.tool_outputs.into_iter().map(submission).collect();
    let request = Request::of(&headers, &client.key_owner, &["submit", &id], &body)?;
    perform_once(&api, client, request, id, RunOperation::Submit(submitted)).await
}

pub(crate) async fn resolve(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let request = Request::of(&headers, &client.key_owner, &["resolve", &id], &body)?;
    let body = JsonBody::parse(&headers, &body)?;
    let (call, resolution) = body.read::<ResolveRequest>()?.resolution(&body)?;
    perform_once(&api, client, request, id, RunOperation::Resolve(call, resolution)).await
}

pub(crate) async fn cancel(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let request = Request::of(&headers, &client.key_owner, &["cancel", &id], &body)?;
    perform_once(&api, client, request, id, RunOperation::Cancel).await
}

pub(crate) async fn remove(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let store = store(&api)?;
    let last = Box::pin(perform(&api, client, &id, RunOperation::Remove)).await?;
    let id: RunId = id.parse().map_err(|_| unknown())?;
    // That of an agent is gone by now.
    store.remove(&id).await?;
    Ok(last)
}

/// An operation on a run.
pub(super) enum RunOperation {
    Show,
    Submit(Vec<Submission>),
    Resolve(SuspensionId, Resolution),
    /// Cancels the run. Fails if the run is already over, even if it was cancelled.
    Cancel,
    /// Cancels what is left of the run, which is then deleted.
    Remove,
}

/// Performs the operation, only once if the request carries an idempotency key.
async fn perform_once(
    api: &Api,
    client: Arc<Client>,
    request: Option<Request>,
    id: String,
    operation: RunOperation,
) -> Result<Response, Problem> {
    let own = api.clone();
    let work = async move { Box::pin(perform(&own, client, &id, operation)).await.into_response() };
    api.idempotency().once_if(api, request, Box::pin(work)).await
}

pub(super) fn unknown() -> Problem {
    Problem::not_found("there is no such run")
}

/// A turn for the calls of a run, in their original session.
pub(super) fn turn_of(client: &Client, run: &Run) -> Turn {
    let session = run.outstanding().find_map(|one| one.session()).map(str::to_owned);
    client.turn(|options| match session {
        Some(session) => options.session(session),
        None => options,
    })
}

/// Applies decisions of others, ends expired calls, and stores the result.
pub(super) async fn refreshed(
    run: &mut Run,
    turn: &Turn,
    store: &dyn Journal,
) -> Result<(), Problem> {
    let before = run.record().clone();
    run.expire(turn).await?;
    if run.record() != &before {
        run.save(store).await?;
    }
    Ok(())
}

/// Performs the operation, stores the result and returns the run. The work continues even if the
/// client disconnects.
async fn perform(
    api: &Api,
    client: Arc<Client>,
    id: &str,
    operation: RunOperation,
) -> Result<Response, Problem> {
    let (store, mask) = (store(api)?, api.backend().executor().mask());
    let id: RunId = id.parse().map_err(|_| unknown())?;
    let operation = match agent_runs::perform(api, &client, &id, operation).await? {
        Answered::Now(response) => return Ok(response),
        Answered::NotAnAgents(operation) => operation,
    };
    api.run_to_completion(Box::pin(async move {
        let record = store.load(&id).await?.ok_or_else(unknown)?;
        let mut run = Run::from_record(record);
        let turn = turn_of(&client, &run);
        // Runs of others get the same answer as runs that do not exist.
        if run.record().identity() != turn.identity() {
            return Err(unknown());
        }
        if let RunOperation::Resolve(call, resolution) = &operation
            && !client.may(Right::Approve)
            && !is_for_caller(&run, call, resolution)
        {
            return Err(missing_right(&client, Access::With(Right::Approve)).nothing_done());
        }
        let before = run.record().clone();
        let removes = matches!(operation, RunOperation::Remove);
        let mut was_over = false;
        let outcome = AdmittedRequest::withdraw_if_ended(&turn, async {
            match operation {
                RunOperation::Show => Ok(()),
                RunOperation::Submit(outputs) => run.submit(&turn, outputs).await,
                RunOperation::Resolve(call, resolution) => {
                    run.resolve(&turn, &call, resolution).await
                }
                RunOperation::Cancel => {
                    was_over = !run.cancel(&turn).await?;
                    Ok(())
                }
                RunOperation::Remove => run.cancel(&turn).await.map(drop),
            }
        });
        let outcome = Box::pin(outcome).await;
        // On any error, store what has been done so far; other calls may have expired as well.
        run.expire(&turn).await?;
        if run.record() != &before {
            run.save(&*store).await?;
        }
        let state = run.state();
        match outcome {
            // A run that others have completed can be deleted, too.
            Err(_) if removes && state != RunState::RequiresAction => {}
            outcome => outcome?,
        }
        if was_over {
            return Err(already_over(&run, &turn, &*store).await?);
        }
        Ok(json(StatusCode::OK, &RunBody::from(&run).masked(&mask)))
    }))
    .await?
}

/// Whether a client may resolve this call of its own run without the right to approve: the call
/// waits for the caller itself, or waits no more. Decisions on calls that wait no more are refused
/// like other decisions.
fn is_for_caller(run: &Run, call: &SuspensionId, resolution: &Resolution) -> bool {
    match run.outstanding().find(|one| one.id() == call) {
        Some(waiting) => matches!(waiting.waiting(), Waiting::Input { .. } | Waiting::Client),
        None => !matches!(resolution, Resolution::Decision(_)),
    }
}

/// The answer to a cancellation of a run that is over: how and by whom its last call was resolved.
async fn already_over(run: &Run, turn: &Turn, store: &dyn Journal) -> Result<Problem, Problem> {
    if let Some(first) = run.last_resolution(turn, store).await? {
        return Ok(RunError::from(RedeemError::AlreadyResolved(Box::new(first))).into());
    }
    let state = run.state().as_str();
    let detail =
        format!("the run is {state}: every call has its answer, so there is nothing to cancel");
    Ok(Problem::new(StatusCode::CONFLICT, detail).kind("already_resolved"))
}
