//! Runs of agents.

pub(crate) mod active;
mod items;
mod list;
mod start;
mod steer;
mod stream;

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolcrib_core::TurnOptions;
use toolcrib_core::run::{RunId, Seq};

use super::runs::{RunOperation, store, unknown};
use super::{Api, json, wants_events};
use crate::api::problem::Problem;
use crate::api::query::Query;
use crate::auth::client::Client;
use crate::auth::entitlement::AdmittedRequest;
use crate::idempotency::{Request, STORE_RETRY};
use crate::serving::request_body::JsonBody;
use crate::{
    AgentRunControl, AgentRunError, AgentRunReport, AgentRunRow, AgentRunStep, AgentRunStop,
    AgentRuns, Right, SERVER_STOPPED,
};
use active::Work;
pub(crate) use items::{ItemList, items};
pub(crate) use list::{RunList, list};
pub(super) use start::start;
pub(crate) use start::{AnyRun, StartRequest};
pub(crate) use steer::{SteerRequest, steer};

/// The default number of rows on a page.
const ROWS: usize = 100;
/// The maximum number of rows on a page.
const ROWS_MAX: usize = 1_000;
/// The highest number of a row.
pub(crate) const ROW_MAX: usize = 1_000_000_000;

/// How a run is continued.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResumeRequest {
    /// What the agent is told, even if the run had ended. Default: nothing.
    #[serde(default)]
    #[schemars(extend("pattern" = "\\S"))]
    input: Option<String>,
    /// Whether to answer at once, while the agent works. Default: answer when the run has ended or waits.
    #[serde(default)]
    background: bool,
}

/// Rows of a run's journal.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RowList {
    /// The rows, in order. The number of the last one is the next page's `after`.
    rows: Vec<AgentRunRow>,
}

/// Whether an operation on a run was one on an agent's run.
pub(super) enum Answered {
    Now(Response),
    NotAnAgents(RunOperation),
}

fn agents(api: &Api) -> Result<&dyn AgentRuns, Problem> {
    api.backend().agents().ok_or_else(|| {
        let detail = "this server has no agents";
        Problem::new(StatusCode::NOT_IMPLEMENTED, detail).kind("unavailable")
    })
}

/// Begins work on a run, which goes on even if the client disconnects. It is paused when the server stops or the client
/// may not continue, and counts as a request of the client until it rests.
pub(super) fn work(
    api: &Api,
    client: &Client,
    id: &RunId,
    step: AgentRunStep,
) -> Result<JoinHandle<Result<(), Problem>>, Problem> {
    let mut active = api.active_runs().begin(id)?;
    let (own, id, turn) = (api.clone(), id.clone(), client.turn_options());
    Ok(api.spawn(async move {
        let stopped = Box::pin(stopped(own.clone(), active.run.cancel.clone()));
        let said = active.said.take().unwrap_or_else(|| mpsc::unbounded_channel().1);
        let followers = active.run.followers();
        let control = AgentRunControl { stopped, said, followers };
        let done = agents(&own)?.work(turn, id.clone(), step, control).await;
        drop::<Work>(active);
        done.map_err(|error| {
            tracing::debug!(run = %id, %error, "work on a run has stopped");
            error.into()
        })
    }))
}

/// Completes when work of the current request has to stop.
pub(super) async fn stopped(api: Api, cancel: CancellationToken) -> AgentRunStop {
    let ended = async {
        match AdmittedRequest::of_this_request() {
            Some(admitted) => admitted.ended().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => AgentRunStop::Cancel("the client cancelled the run".to_owned()),
        () = api.closing().cancelled() => AgentRunStop::Pause(SERVER_STOPPED.to_owned()),
        lost = ended => AgentRunStop::Pause(lost.to_string()),
    }
}

pub(super) async fn finished(work: JoinHandle<Result<(), Problem>>) -> Result<(), Problem> {
    work.await.map_err(|error| Problem::internal("the run could not be continued", &error))?
}

/// A run of this client that is not a sub-agent's: only the run that started that one continues or ends it.
async fn own_run(api: &Api, client: &Client, id: &RunId) -> Result<AgentRunReport, Problem> {
    let run = report(api, client, id).await?;
    not_of_sub_agent(&run)?;
    Ok(run)
}

fn not_of_sub_agent(run: &AgentRunReport) -> Result<(), Problem> {
    let Some(parent) = &run.parent else { return Ok(()) };
    let detail = format!("this is the run of a sub-agent: use the run {parent}, which started it");
    Err(Problem::new(StatusCode::CONFLICT, detail).nothing_done())
}

/// Refuses input that says nothing, which models refuse as well.
fn check_input(input: &str) -> Result<(), Problem> {
    if input.trim().is_empty() {
        return Err(Problem::unprocessable("/input: it says nothing"));
    }
    Ok(())
}

async fn report(api: &Api, client: &Client, id: &RunId) -> Result<AgentRunReport, Problem> {
    if api.backend().agents().is_none() {
        return Err(unknown());
    }
    let mut report = agents(api)?.report(client.turn_options(), id.clone()).await?;
    report.active |= api.active_runs().get(id).is_some();
    Ok(report)
}

/// Performs an operation if the run is an agent's.
pub(super) async fn perform(
    api: &Api,
    client: &Client,
    id: &RunId,
    operation: RunOperation,
) -> Result<Answered, Problem> {
    let Some(agents) = api.backend().agents() else {
        return Ok(Answered::NotAnAgents(operation));
    };
    let before = match agents.report(client.turn_options(), id.clone()).await {
        Ok(report) => report,
        Err(AgentRunError::Unknown) => return Ok(Answered::NotAnAgents(operation)),
        Err(error) => return Err(error.into()),
    };
    if !matches!(operation, RunOperation::Show) {
        not_of_sub_agent(&before)?;
    }
    match operation {
        RunOperation::Show => {}
        RunOperation::Submit(outputs) => {
            finished(work(api, client, id, AgentRunStep::Submit(outputs))?).await?;
        }
        RunOperation::Resolve(call, resolution) => {
            let (resolution, may_approve) = (Box::new(resolution), client.may(Right::Approve));
            let step = AgentRunStep::Resolve { call, resolution, may_approve };
            finished(work(api, client, id, step)?).await?;
        }
        RunOperation::Cancel => cancel(api, client, id, &before).await?,
        RunOperation::Remove => {
            // Nobody continues it meanwhile.
            let _work = api.active_runs().begin(id)?;
            let removed = agents.remove(client.turn_options(), id.clone()).await?;
            return Ok(Answered::Now(json(StatusCode::OK, &removed)));
        }
    }
    Ok(Answered::Now(json(StatusCode::OK, &report(api, client, id).await?)))
}

async fn cancel(
    api: &Api,
    client: &Client,
    id: &RunId,
    before: &AgentRunReport,
) -> Result<(), Problem> {
    if let Some(active) = api.active_runs().get(id) {
        active.cancel.cancel();
        active.ended.cancelled().await;
        if report(api, client, id).await?.status.has_ended() {
            return Ok(());
        }
        // What was done there could not cancel it: it was told something, for example.
    } else if before.status.has_ended() {
        let detail = format!("the run is {}: there is nothing to cancel", before.status.as_str());
        return Err(Problem::new(StatusCode::CONFLICT, detail).kind("already_resolved"));
    }
    let step = AgentRunStep::Cancel("the client cancelled the run".to_owned());
    finished(work(api, client, id, step)?).await
}

pub(crate) async fn resume(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    store(&api)?;
    let wanted: ResumeRequest = JsonBody::parse(&headers, &body)?.read()?;
    let request = Request::of(&headers, &client.key_owner, &["resume", &id], &body)?;
    let own = api.clone();
    let work = async move { resumed(&own, &client, &id, wanted).await.into_response() };
    api.idempotency().once_if(&api, request, Box::pin(work)).await
}

async fn resumed(
    api: &Api,
    client: &Client,
    id: &str,
    wanted: ResumeRequest,
) -> Result<Response, Problem> {
    wanted.input.as_deref().map_or(Ok(()), check_input)?;
    let id: RunId = id.parse().map_err(|_| unknown())?;
    // Others' runs do not exist, whether there is work on them or not.
    own_run(api, client, &id).await?;
    let step = wanted.input.map_or(AgentRunStep::Resume, AgentRunStep::Input);
    let work = work(api, client, &id, step)?;
    if !wanted.background {
        finished(work).await?;
    }
    Ok(json(StatusCode::OK, &report(api, client, &id).await?))
}

pub(crate) async fn events(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let is_stream = wants_events(&headers);
    let mut query = Query::of(&uri)?;
    let after = query.count("after", 0, ROW_MAX)?;
    let limit = if is_stream { ROWS } else { query.count("limit", ROWS, ROWS_MAX)? };
    query.finish()?;
    let after = stream::last_event_id(&headers)?.unwrap_or(after);
    let id: RunId = id.parse().map_err(|_| unknown())?;
    if is_stream {
        // Others' runs do not exist.
        report(&api, &client, &id).await?;
        return Ok(stream::events(&api, client, id, after as Seq));
    }
    let rows = rows(&api, client.turn_options(), &id, after as Seq, limit).await?;
    Ok(json(StatusCode::OK, &RowList { rows }))
}

/// Rows of a run's journal.
async fn rows(
    api: &Api,
    client: TurnOptions,
    id: &RunId,
    after: Seq,
    limit: usize,
) -> Result<Vec<AgentRunRow>, Problem> {
    let Some(agents) = api.backend().agents() else { return Err(unknown()) };
    let mask = api.backend().executor().mask();
    let mut rows = agents.rows(client, id.clone(), after, limit).await?;
    for row in &mut rows {
        // A value may have become a secret since it was stored.
        row.entry = mask.value(std::mem::take(&mut row.entry));
    }
    Ok(rows)
}

impl From<AgentRunError> for Problem {
    fn from(error: AgentRunError) -> Self {
        let detail = error.to_string();
        match error {
            AgentRunError::Unknown => unknown(),
            AgentRunError::NotNow(_) => Self::new(StatusCode::CONFLICT, detail).nothing_done(),
            AgentRunError::Invalid(_) => Self::unprocessable(detail).kind("invalid_args"),
            AgentRunError::Unavailable(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, detail),
            AgentRunError::Busy(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
                .retry_after(STORE_RETRY)
                .nothing_done(),
            AgentRunError::NotAllowed => Self::new(StatusCode::FORBIDDEN, detail).nothing_done(),
            AgentRunError::Store(error) => error.into(),
            AgentRunError::Resolve(error) => error.into(),
            AgentRunError::Internal(cause) => {
                Self::internal("the run could not be continued", &cause)
            }
        }
    }
}
