//! What operators ask for.

use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use toolcrib_core::ToolStatistics;
use toolcrib_tool::visible;

use super::tools::did_you_mean;
use super::{Api, json};
use crate::Backend;
use crate::api::problem::Problem;
use crate::api::query::Query;

/// Records of the audit log that are read at once.
const AUDIT_MAX: usize = 1000;

/// What has become of calls.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Stats {
    /// A tool each, sorted by name; those that were never called are absent.
    tools: Vec<ToolStats>,
}

/// What has become of the calls of a tool.
#[derive(Serialize, JsonSchema)]
struct ToolStats {
    #[serde(flatten)]
    counts: ToolStatistics,
    /// A line for models, where the tool fails often.
    #[serde(skip_serializing_if = "Option::is_none")]
    often_fails: Option<String>,
}

/// The end of the audit log.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AuditTail {
    /// The records, the oldest first.
    #[schemars(with = "Vec<Map<String, Value>>")]
    records: Vec<Value>,
}

pub(crate) async fn openapi(State(api): State<Api>) -> Response {
    ([("content-type", "application/json")], api.document()).into_response()
}

pub(crate) async fn status(State(api): State<Api>) -> Result<Response, Problem> {
    let status = api.blocking(Backend::status).await?;
    Ok(json(StatusCode::OK, &status))
}

pub(crate) async fn stats(State(api): State<Api>) -> Response {
    let tools = api.backend().executor().statistics().snapshot().into_iter();
    let tools =
        tools.map(|counts| ToolStats { often_fails: counts.often_fails(), counts }).collect();
    json(StatusCode::OK, &Stats { tools })
}

pub(crate) async fn audit(State(api): State<Api>, uri: Uri) -> Result<Response, Problem> {
    let mut query = Query::of(&uri)?;
    let limit = query.count("limit", 100, AUDIT_MAX)?;
    query.finish()?;
    let records = api.blocking(move |backend| backend.audit_tail(limit)).await?;
    let records = records.ok_or_else(|| {
        Problem::not_found("there is no audit log: name an `audit.file` in the server's config")
    })?;
    let records =
        records.map_err(|error| Problem::internal("the audit log could not be read", &error))?;
    Ok(json(StatusCode::OK, &AuditTail { records }))
}

pub(crate) async fn reload(State(api): State<Api>) -> Result<Response, Problem> {
    let reloaded = api.blocking(Backend::reload).await?;
    let report = reloaded.map_err(|why| Problem::new(StatusCode::CONFLICT, why))?;
    Ok(json(StatusCode::OK, &report))
}

/// What a reset has changed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Reset {
    /// The tool.
    tool: String,
    /// How many identities the tool was paused for.
    paused: usize,
}

/// Lets calls of a tool pass again that was paused.
pub(crate) async fn reset_tool(
    State(api): State<Api>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let executor = api.backend().executor();
    let snapshot = executor.registry().snapshot();
    if snapshot.get(&name).is_none() {
        let near = did_you_mean(&snapshot.near(&name, |_| true));
        let detail = format!("no tool is called `{}`{near}", visible(&name));
        return Err(Problem::not_found(detail));
    }
    let paused = executor.resume(&name);
    Ok(json(StatusCode::OK, &Reset { tool: name, paused }))
}

/// Who owns a name.
pub(crate) async fn name_status(
    State(api): State<Api>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let status = api.blocking(move |backend| backend.name_status(&name)).await?;
    Ok(json(StatusCode::OK, &status))
}

/// Ends the reservation of a name.
pub(crate) async fn release_name(
    State(api): State<Api>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let released = api.blocking(move |backend| backend.release_name(&name)).await?;
    let report = released.map_err(|why| Problem::new(StatusCode::CONFLICT, why))?;
    Ok(json(StatusCode::OK, &report))
}
