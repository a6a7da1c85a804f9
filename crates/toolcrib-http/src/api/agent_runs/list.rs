//! Lists runs of calls and of agents.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolcrib_core::run::{Journal, Run, RunCursor, RunId, RunState, RunStore as _};
use toolcrib_core::suspension::StoreError;

use super::AnyRun;
use crate::AgentRunError;
use crate::api::problem::Problem;
use crate::api::query::Query;
use crate::api::run_body::RunBody;
use crate::api::runs::{refreshed, store, turn_of};
use crate::api::{Api, json};
use crate::auth::client::Client;

/// The default number of runs on a page.
const PAGE: usize = 20;
/// The maximum number of runs on a page.
const PAGE_MAX: usize = 100;
/// Runs that are looked at for one page.
const LOOKED_AT: usize = 500;

/// A page of the runs of an identity.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RunList {
    /// The runs, oldest first, without those of sub-agents.
    #[schemars(with = "Vec<AnyRun>")]
    runs: Vec<Value>,
    /// The cursor of the next page, to pass as `after`. Absent on the last page. With `status`, a page can have fewer
    /// runs than its limit, or none, although others follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

pub(crate) async fn list(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    uri: Uri,
) -> Result<Response, Problem> {
    let mut query = Query::of(&uri)?;
    let limit = query.count("limit", PAGE, PAGE_MAX)?;
    let after = query.text("after").map(|after| after.parse::<RunCursor>());
    let status = query.text("status");
    query.finish()?;
    let mut after = after.transpose().map_err(|_| {
        Problem::unprocessable("`after` in the query has to be the `next` of the previous page")
    })?;
    if let Some(status) = &status
        && !RunState::ALL.iter().any(|known| known.as_str() == status)
    {
        let known = RunState::ALL.map(RunState::as_str).join(", ");
        let detail = format!("`status` in the query is one of {known}");
        return Err(Problem::unprocessable(detail));
    }
    let turn = client.turn(|options| options);
    let store = store(&api)?;
    let (mut runs, mut looked_at) = (Vec::with_capacity(limit), 0);
    let next = 'pages: loop {
        let page = store.list(turn.identity(), after.as_ref(), PAGE_MAX).await?;
        let is_last = page.len() < PAGE_MAX;
        for cursor in page {
            if runs.len() == limit || looked_at == LOOKED_AT {
                break 'pages after;
            }
            looked_at += 1;
            let run = shown(&api, &client, &*store, cursor.id()).await?;
            let is_wanted =
                |run: &Value| status.as_ref().is_none_or(|status| run["status"] == **status);
            runs.extend(run.filter(is_wanted));
            after = Some(cursor);
        }
        if is_last {
            break None;
        }
    };
    let next = next.map(|cursor| cursor.to_string());
    Ok(json(StatusCode::OK, &RunList { runs, next }))
}

/// A run as lists show it; `None` if it is a sub-agent's, cannot be read, or was removed since it was listed.
async fn shown(
    api: &Api,
    client: &Client,
    store: &dyn Journal,
    id: &RunId,
) -> Result<Option<Value>, Problem> {
    let written = |shown: serde_json::Result<Value>| {
        shown.map_err(|error| Problem::internal("a run could not be written", &error))
    };
    if let Some(agents) = api.backend().agents() {
        match agents.report(client.turn_options(), id.clone()).await {
            Ok(run) if run.parent.is_some() => return Ok(None),
            Ok(mut run) => {
                run.active |= api.active_runs().get(id).is_some();
                return written(serde_json::to_value(&run)).map(Some);
            }
            Err(AgentRunError::Unknown) => {}
            Err(AgentRunError::Store(StoreError::Expired)) => return Ok(None),
            Err(
                error @ (AgentRunError::Store(StoreError::Corrupt { .. })
                | AgentRunError::Internal(_)),
            ) => {
                tracing::warn!(run = %id, %error, "a run was passed over in a list");
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        }
    }
    let record = match store.load(id).await {
        Ok(Some(record)) => record,
        Ok(None) | Err(StoreError::Expired) => return Ok(None),
        Err(error @ StoreError::Corrupt { .. }) => {
            tracing::warn!(run = %id, %error, "a run was passed over in a list");
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let mut run = Run::from_record(record);
    // Lists show others' decisions and expired calls, as a single run does.
    if run.outstanding().next().is_some() {
        let turn = turn_of(client, &run);
        refreshed(&mut run, &turn, store).await?;
    }
    let mask = api.backend().executor().mask();
    written(serde_json::to_value(RunBody::from(&run).masked(&mask))).map(Some)
}
