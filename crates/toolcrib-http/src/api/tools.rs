//! Lists, describes and searches tools.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};
use toolcrib_core::{ToolStatistics, Turn};
use toolcrib_tool::{ToolDefinition, visible};
use toolcrib_wire::prompt_text_with_notes;

use super::{Api, json};
use crate::api::problem::Problem;
use crate::api::query::Query;
use crate::api::route_table::PAGE_MAX;
use crate::auth::client::Client;

/// The media type of the tools as a prompt.
pub(crate) const PROMPT_MEDIA_TYPE: &str = "text/plain; charset=utf-8";

/// A page of tools.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ToolList {
    /// The generation of the registry: equal numbers mean equal tools.
    generation: u64,
    /// The tools, sorted by name.
    tools: Vec<Described>,
    /// The cursor of the next page, to pass as `after`. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The definition of a tool.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct Described(Value);

/// The members of every definition. Other members have the names of `show --json`.
#[derive(JsonSchema)]
#[schemars(rename = "Tool")]
#[expect(dead_code, reason = "the shape of what `ToolDefinition::to_value` makes")]
struct DefinitionShape {
    /// The name to call it by.
    name: String,
    /// A name for people.
    title: Option<String>,
    /// What it does, for a model.
    description: String,
    /// Its category.
    category: String,
    /// The JSON Schema of its arguments.
    input_schema: Map<String, Value>,
    /// The JSON Schema of its structured data.
    output_schema: Option<Map<String, Value>>,
    /// Its effects.
    annotations: Hints,
}

#[derive(JsonSchema)]
#[schemars(rename = "Annotations")]
#[expect(dead_code, clippy::struct_excessive_bools, reason = "the four annotations of a tool")]
struct Hints {
    /// It changes nothing.
    read_only: bool,
    /// It may destroy something.
    destructive: bool,
    /// Repeating it with the same arguments has no further effect.
    idempotent: bool,
    /// It interacts with external systems.
    open_world: bool,
}

impl JsonSchema for Described {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        DefinitionShape::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        DefinitionShape::json_schema(generator)
    }
}

/// The result of a search.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SearchResult {
    /// How many tools match.
    found: usize,
    /// The best matches.
    tools: Vec<Hit>,
}

/// A tool that was found.
#[derive(Serialize, JsonSchema)]
struct Hit {
    /// Its name.
    name: String,
    /// What it does.
    description: String,
}

fn described(definition: &Arc<ToolDefinition>) -> Described {
    Described(definition.to_value())
}

/// Similar names, as the end of a clause; empty if there are none.
pub(super) fn did_you_mean(near: &[&str]) -> String {
    let near: Vec<_> = near.iter().map(|name| format!("`{name}`")).collect();
    if near.is_empty() {
        return String::new();
    }
    format!("; did you mean {}?", near.join(" or "))
}

fn turn(client: &Client) -> Turn {
    client.turn(|options| options)
}

pub(crate) async fn list(
    Extension(client): Extension<Arc<Client>>,
    uri: Uri,
) -> Result<Response, Problem> {
    let mut query = Query::of(&uri)?;
    let after = query.text("after");
    let limit = query.count("limit", PAGE_MAX, PAGE_MAX)?;
    query.finish()?;
    let turn = turn(&client);
    let all = turn.definitions();
    let begin = after.map_or(0, |after| all.partition_point(|tool| tool.name() <= after.as_str()));
    let rest = &all[begin..];
    let page = &rest[..rest.len().min(limit)];
    let next = page.last().filter(|_| page.len() < rest.len());
    let list = ToolList {
        generation: turn.generation(),
        tools: page.iter().map(described).collect(),
        next: next.map(|last| last.name().to_owned()),
    };
    Ok(json(StatusCode::OK, &list))
}

/// The tools as a prompt for models without tool support.
pub(crate) async fn prompt(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    uri: Uri,
) -> Result<Response, Problem> {
    let mut query = Query::of(&uri)?;
    let notes = query.switch("notes")?;
    query.finish()?;
    let statistics =
        if notes { api.backend().executor().statistics().snapshot() } else { Vec::new() };
    let note = |tool: &ToolDefinition| {
        let known = statistics.iter().find(|known| known.tool == tool.name());
        known.and_then(ToolStatistics::often_fails)
    };
    let turn = turn(&client);
    let text = prompt_text_with_notes(turn.definitions().iter().map(|tool| &**tool), note);
    Ok(([("content-type", PROMPT_MEDIA_TYPE)], text).into_response())
}

pub(crate) async fn describe(
    Extension(client): Extension<Arc<Client>>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let turn = turn(&client);
    let definition = turn.describe(&name).ok_or_else(|| {
        let near = did_you_mean(&turn.near(&name));
        Problem::not_found(format!(
            "there is no tool `{}` here; GET /v1/tools lists all tools{near}",
            visible(&name)
        ))
    })?;
    Ok(json(StatusCode::OK, &described(definition)))
}

pub(crate) async fn search(
    Extension(client): Extension<Arc<Client>>,
    uri: Uri,
) -> Result<Response, Problem> {
    let mut query = Query::of(&uri)?;
    let words = query.text("q").filter(|words| !words.trim().is_empty());
    let limit = query.count("limit", 10, 1000)?;
    query.finish()?;
    let words = words.ok_or_else(|| {
        Problem::unprocessable("describe what the tool is for: /v1/search?q=disk+space")
    })?;
    let turn = turn(&client);
    let found = turn.search(&words, usize::MAX);
    let hits = found.iter().take(limit).map(|tool| Hit {
        name: tool.definition.name().to_owned(),
        description: tool.definition.description().to_owned(),
    });
    Ok(json(StatusCode::OK, &SearchResult { found: found.len(), tools: hits.collect() }))
}
