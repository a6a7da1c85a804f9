//! Runs: calls that may wait, and whoever answers them later.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolcrib_core::Turn;
use toolcrib_core::approval::{Decision, Remember};
use toolcrib_core::run::{Run, RunCursor, RunId, RunState, RunStore};
use toolcrib_core::suspension::{Resolution, Submission, SuspensionId};
use toolcrib_tool::{ToolOutput, exact};

use super::calls::{ArgumentsShape, Calls, kept, start_batch};
use super::run_body::{RunBody, RunList};
use super::{Api, json};
use crate::api::problem::Problem;
use crate::api::query::Query;
use crate::auth::client::Client;
use crate::auth::entitlement::Entered;
use crate::idempotency::Request;
use crate::serving::request_body::{InPlace, JsonBody, arguments_at};

/// Runs of a page, where the request does not say.
const PAGE: usize = 20;
/// Runs of a page at most.
const PAGE_MAX: usize = 100;

/// The outputs of all calls that wait for the client.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Outputs {
    /// One for each of them; those of calls that have their answer are skipped.
    tool_outputs: Vec<Output>,
}

/// What came of a call that the client has run.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Output {
    /// The id of the call.
    tool_call_id: String,
    /// Its output. Where the tool declares an output schema: the data, as JSON text.
    output: String,
}

/// What is decided or answered: one of `decision`, `answer` and `output`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = one_of(&["decision", "answer", "output"])))]
pub(crate) struct ResolveRequest {
    /// Which call: the `id` of an entry of the run's `waiting`.
    id: String,
    /// Whether a call that waits for approval may run. Any call that waits can be denied.
    #[serde(default)]
    decision: Option<Word>,
    /// Why it was denied, for the model. Default: nothing more is said.
    #[serde(default)]
    message: Option<String>,
    /// What else is approved with it, within its session. Default: nothing.
    #[serde(default)]
    remember: Scope,
    /// Other arguments for the approved call, which are checked like any.
    #[serde(default, rename = "arguments")]
    #[schemars(with = "ArgumentsShape")]
    _arguments: InPlace,
    /// The answer to a tool's question.
    #[serde(default)]
    answer: Option<Value>,
    /// The output of work that went on elsewhere.
    #[serde(default)]
    output: Option<String>,
}

/// One of these keys has a value, and the others have none.
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

/// A decision.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Word {
    /// It may run.
    Approve,
    /// It may not.
    Deny,
}

/// What is approved beside one call.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Scope {
    /// Nothing.
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
            (Some(Word::Approve), None, None) if changed => {
                Decision::ApproveChanged { arguments: arguments_at(body.root()) }.into()
            }
            (Some(Word::Approve), None, None) => {
                let remember = match self.remember {
                    Scope::Nothing => Remember::Nothing,
                    Scope::SameCall => Remember::SameCall,
                    Scope::Tool => Remember::Tool,
                };
                Decision::Approve { remember }.into()
            }
            (Some(Word::Deny), None, None) => {
                Decision::Deny { message: self.message.unwrap_or_default() }.into()
            }
            (None, Some(answer), None) => {
                let written = body.root().get("answer").map_or("", |answer| answer.source());
                if let Cow::Owned(_) = exact::protect(written) {
                    let detail = "`answer` has a number beyond 64 bits or double precision, which would \
                                  not stay the same: send it as a string";
                    return Err(Problem::unfit(detail));
                }
                Resolution::Answer(answer)
            }
            (None, None, Some(output)) => Resolution::Output(ToolOutput::from(output)),
            _ => {
                let detail = "say one of `decision` (approve or deny), `answer` and `output`";
                return Err(Problem::unfit(detail));
            }
        };
        let id = self.id.parse().map_err(|_| Problem::not_found("no call waits under this id"))?;
        Ok((id, resolution))
    }
}

/// Where runs are kept.
pub(super) fn store(api: &Api) -> Result<Arc<dyn RunStore>, Problem> {
    api.backend().runs().ok_or_else(|| {
        let detail = "this server keeps no runs: name a `state.dir` in its config";
        Problem::new(StatusCode::NOT_IMPLEMENTED, detail).kind("unavailable")
    })
}

/// A run with the address it is found at.
pub(super) fn at_its_place(status: StatusCode, body: &RunBody, id: &RunId) -> Response {
    let mut response = json(status, body);
    if let Ok(place) = HeaderValue::from_str(&format!("/v1/runs/{id}")) {
        response.headers_mut().insert(LOCATION, place);
    }
    response
}

pub(crate) async fn start(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    store(&api)?;
    let calls = Calls::several(&JsonBody::parse(&headers, &body)?)?;
    let request = Request::of(&headers, &client.keys, &["runs"], &body)?;
    let own = api.clone();
    let work = async move { started(&own, &client, calls).await.into_response() };
    match request {
        // What was asked to be kept is kept, whoever leaves.
        None => api.to_the_end(work).await,
        Some(request) => api.idempotency().once(&api, request, Box::pin(work)).await,
    }
}

async fn started(api: &Api, client: &Client, calls: Calls) -> Result<Response, Problem> {
    let turn = client.turn(|options| calls.over(options));
    let answers = start_batch(api, &turn, calls.ready).await;
    let run = kept(api, &turn, answers).await?;
    Ok(at_its_place(StatusCode::CREATED, &RunBody::from(&run), run.id()))
}

pub(crate) async fn list(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    uri: Uri,
) -> Result<Response, Problem> {
    let mut query = Query::of(&uri)?;
    let limit = query.count("limit", PAGE, PAGE_MAX)?;
    let after = query.text("after").map(|after| after.parse::<RunCursor>());
    query.finish()?;
    let after = after.transpose().map_err(|_| {
        Problem::unfit("`after` in the query is the `next` of the page before, and of nothing else")
    })?;
    let turn = client.turn(|options| options);
    let store = store(&api)?;
    let page = store.page(turn.identity(), after.as_ref(), limit + 1).await?;
    let is_last = page.len() <= limit;
    let mut runs = Vec::with_capacity(limit);
    let mut next = None;
    for record in page.into_iter().take(limit) {
        next = (!is_last).then(|| RunCursor::of(&record).to_string());
        let mut run = Run::from_record(record);
        // What others have decided, and what has expired, is seen in the list as in the run itself.
        if run.outstanding().next().is_some() {
            let turn = turn_of(&client, &run);
            refreshed(&mut run, &turn, &*store).await?;
        }
        runs.push(RunBody::from(&run));
    }
    Ok(json(StatusCode::OK, &RunList { runs, next }))
}

pub(crate) async fn show(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    Box::pin(done(&api, client, &id, Deed::Look)).await
}

pub(crate) async fn submit(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let outputs: Outputs = JsonBody::parse(&headers, &body)?.read()?;
    let submission = |one: Output| Submission::new(one.tool_call_id, one.output);
    let submitted = outputs.tool_outputs.into_iter().map(submission).collect();
    let request = Request::of(&headers, &client.keys, &["submit", &id], &body)?;
    done_once(&api, client, request, id, Deed::Submit(submitted)).await
}

pub(crate) async fn resolve(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let request = Request::of(&headers, &client.keys, &["resolve", &id], &body)?;
    let body = JsonBody::parse(&headers, &body)?;
    let (call, resolution) = body.read::<ResolveRequest>()?.resolution(&body)?;
    done_once(&api, client, request, id, Deed::Resolve(call, resolution)).await
}

pub(crate) async fn cancel(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let request = Request::of(&headers, &client.keys, &["cancel", &id], &body)?;
    done_once(&api, client, request, id, Deed::Cancel).await
}

pub(crate) async fn remove(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let store = store(&api)?;
    let last = Box::pin(done(&api, client, &id, Deed::Remove)).await?;
    let id: RunId = id.parse().map_err(|_| unknown())?;
    store.remove(&id).await?;
    Ok(last)
}

/// What is done to a run.
enum Deed {
    Look,
    Submit(Vec<Submission>),
    Resolve(SuspensionId, Resolution),
    /// Gives the run up. Fails where it is over otherwise, for then nothing was given up.
    Cancel,
    /// Gives up what is left of the run, which is to be forgotten.
    Remove,
}

/// Does it once, if the request carries a key.
async fn done_once(
    api: &Api,
    client: Arc<Client>,
    request: Option<Request>,
    id: String,
    deed: Deed,
) -> Result<Response, Problem> {
    let own = api.clone();
    let work = async move { Box::pin(done(&own, client, &id, deed)).await.into_response() };
    api.idempotency().once_if(api, request, Box::pin(work)).await
}

fn unknown() -> Problem {
    Problem::not_found("there is no such run")
}

/// A turn in which the calls of a run go on: in the session they were made in.
fn turn_of(client: &Client, run: &Run) -> Turn {
    let session = run.outstanding().find_map(|one| one.session()).map(str::to_owned);
    client.turn(|options| match session {
        Some(session) => options.session(session),
        None => options,
    })
}

/// Takes over what others have decided, ends what has expired, and keeps that.
async fn refreshed(run: &mut Run, turn: &Turn, store: &dyn RunStore) -> Result<(), Problem> {
    let before = run.record().clone();
    run.expire(turn).await?;
    if run.record() != &before {
        run.save(store).await?;
    }
    Ok(())
}

/// Does it, keeps what came of it, and shows the run. A call that goes on is not left halfway because
/// whoever let it go on has hung up.
async fn done(api: &Api, client: Arc<Client>, id: &str, deed: Deed) -> Result<Response, Problem> {
    let store = store(api)?;
    let id: RunId = id.parse().map_err(|_| unknown())?;
    api.to_the_end(Box::pin(async move {
        let record = store.load(&id).await?.ok_or_else(unknown)?;
        let mut run = Run::from_record(record);
        let turn = turn_of(&client, &run);
        // Answered alike whether it is another's or there is none.
        if run.record().identity() != turn.identity() {
            return Err(unknown());
        }
        let before = run.record().clone();
        let (cancels, removes) = (matches!(deed, Deed::Cancel), matches!(deed, Deed::Remove));
        let outcome = Entered::withdraw_if_ended(&turn, async {
            match deed {
                Deed::Look => Ok(()),
                Deed::Submit(outputs) => run.submit(&turn, outputs).await,
                Deed::Resolve(call, resolution) => run.resolve(&turn, &call, resolution).await,
                Deed::Cancel | Deed::Remove => run.cancel(&turn).await,
            }
        });
        let outcome = Box::pin(outcome).await;
        // Whatever went wrong: what was done before is kept, and time goes on.
        run.expire(&turn).await?;
        if run.record() != &before {
            run.save(&*store).await?;
        }
        let state = run.state();
        match outcome {
            // A run that others have brought to its end can be forgotten.
            Err(_) if removes && state != RunState::RequiresAction => {}
            outcome => outcome?,
        }
        if cancels && state != RunState::Cancelled {
            let detail = format!(
                "the run is {}: every call has its answer, and nothing was left to cancel",
                state.as_str()
            );
            return Err(Problem::new(StatusCode::CONFLICT, detail).kind("already_resolved"));
        }
        Ok(json(StatusCode::OK, &RunBody::from(&run)))
    }))
    .await?
}
