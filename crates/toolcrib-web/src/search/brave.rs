//! Brave Search: `GET /res/v1/web/search`.

use serde_json::Value;
use toolcrib_net::header::{ACCEPT, HeaderValue};
use toolcrib_net::{Method, Request, Target};
use toolcrib_tool::ToolError;

use super::provider::{Found, list, with_query};

/// The most words and characters of a query that the API takes.
const MAX_CHARS: usize = 400;
const MAX_WORDS: usize = 50;

pub(super) fn request(address: &Target, query: &str, limit: u32) -> Result<Request, ToolError> {
    let words: Vec<&str> = query.split_whitespace().take(MAX_WORDS).collect();
    let query: String = words.join(" ").chars().take(MAX_CHARS).collect();
    let target = with_query(address, &[("q", &query), ("count", &limit.min(20).to_string())])?;
    let json = HeaderValue::from_static("application/json");
    Ok(Request::new(Method::GET, target).header(ACCEPT, json))
}

pub(super) fn results(answer: &Value) -> Result<Vec<Found>, ToolError> {
    // An answer without pages has no `web`.
    if answer["type"] == "search" && answer.get("web").is_none() {
        return Ok(Vec::new());
    }
    let keys = ["title", "url", "description", "age"];
    let found = list(answer, "/web/results")?.iter();
    Ok(found.filter_map(|one| Found::from_members(one, keys)).collect())
}
