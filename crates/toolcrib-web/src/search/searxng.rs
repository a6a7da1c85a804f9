//! SearXNG: `GET /search?format=json`.

use serde_json::Value;
use toolcrib_net::{Method, Request, Target};
use toolcrib_tool::ToolError;

use super::provider::{Found, list, with_query};

pub(super) fn request(address: &Target, query: &str) -> Result<Request, ToolError> {
    let mut url = address.url().clone();
    if !url.path().ends_with("/search") {
        let path = format!("{}/search", url.path().trim_end_matches('/'));
        url.set_path(&path);
    }
    let refused =
        |refusal| ToolError::unavailable(format!("its address cannot be used: {refusal}"));
    let address = Target::parse(url.as_str(), toolcrib_net::NamedBy::Operator).map_err(refused)?;
    let target = with_query(&address, &[("q", query), ("format", "json")])?;
    Ok(Request::new(Method::GET, target))
}

pub(super) fn results(answer: &Value) -> Result<Vec<Found>, ToolError> {
    let keys = ["title", "url", "content", "publishedDate"];
    let found = list(answer, "/results")?.iter();
    Ok(found.filter_map(|one| Found::from_members(one, keys)).collect())
}
