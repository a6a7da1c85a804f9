//! Endpoints for operators.

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

/// The maximum number of audit records per request.
const AUDIT_MAX: usize = 1000;

/// The outcomes of calls.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Stats {
    /// One entry per tool, sorted by name; tools that were never called are absent.
    tools: Vec<ToolStats>,
}

/// The outcomes of a tool's calls.
#[derive(Serialize, JsonSchema)]
struct ToolStats {
    #[serde(flatten)]
    counts: ToolStatistics,
    /// A sentence for models, if the tool often fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    often_fails: Option<String>,
}

/// The last records of the audit log.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AuditTail {
    /// The records, oldest first.
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
        Problem::not_found("this server has no audit log: set `audit.file` in its config")
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

/// The result of a reset.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Reset {
    /// The tool or the upstream MCP server.
    tool: String,
    /// For how many identities the tool was paused.
    paused: usize,
    /// Whether an upstream MCP server of this name is being restarted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    restarted: bool,
}

/// Ends the pause of a tool, or restarts an upstream MCP server.
pub(crate) async fn reset_tool(
    State(api): State<Api>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let asked = name.clone();
    let restarted = api.blocking(move |backend| backend.restart_upstream(&asked)).await?;
    let executor = api.backend().executor();
    let snapshot = executor.registry().snapshot();
    if snapshot.get(&name).is_none() && !restarted {
        let near = did_you_mean(&snapshot.near(&name, |_| true));
        let detail = format!(
            "there is no tool named `{}`, and no MCP server of this name that could be restarted{near}",
            visible(&name)
        );
        return Err(Problem::not_found(detail));
    }
    let paused = executor.resume(&name);
    Ok(json(StatusCode::OK, &Reset { tool: name, paused, restarted }))
}

/// Reports the owner of a name.
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
    let asked = name.clone();
    let released = api.blocking(move |backend| backend.release_name(&asked)).await?;
    let report = released.map_err(|why| Problem::new(StatusCode::CONFLICT, why))?;
    if !report.released && report.owner.is_none() {
        let snapshot = api.backend().executor().registry().snapshot();
        let near = did_you_mean(&snapshot.near(&name, |_| true));
        let detail =
            format!("there is no tool and no reservation of the name `{}`{near}", visible(&name));
        return Err(Problem::not_found(detail));
    }
    Ok(json(StatusCode::OK, &report))
}
