//! Tavily: `POST /search`.

use serde_json::{Value, json};
use toolcrib_net::header::{CONTENT_TYPE, HeaderValue};
use toolcrib_net::{Method, Request, Target};
use toolcrib_tool::ToolError;

use super::provider::{Found, list};

pub(super) fn request(address: Target, query: &str, limit: u32) -> Request {
    let body = json!({"query": query, "max_results": limit.min(20), "search_depth": "basic"});
    let json = HeaderValue::from_static("application/json");
    Request::new(Method::POST, address).header(CONTENT_TYPE, json).body(body.to_string())
}

pub(super) fn results(answer: &Value) -> Result<Vec<Found>, ToolError> {
    let keys = ["title", "url", "content", "published_date"];
    let found = list(answer, "/results")?.iter();
    Ok(found.filter_map(|one| Found::from_members(one, keys)).collect())
}
