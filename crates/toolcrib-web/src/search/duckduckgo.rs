//! DuckDuckGo's page for browsers without scripts.

use toolcrib_net::{Method, Request, Response, StatusCode, Target};
use toolcrib_tool::ToolError;
use url::Url;

use super::provider::{Found, limited, with_query};
use crate::page::parsed;
use crate::untrusted::one_line;

pub(super) fn request(address: &Target, query: &str) -> Result<Request, ToolError> {
    let target = with_query(address, &[("q", query)])?;
    Ok(Request::new(Method::GET, target))
}

pub(super) fn results(response: &Response) -> Result<Vec<Found>, ToolError> {
    let html = String::from_utf8_lossy(&response.body);
    let unreadable =
        || ToolError::execution("its page cannot be read").with_hint("Try again later.");
    let document = parsed(&html).ok_or_else(unreadable)?;
    let is_challenge = response.status == StatusCode::ACCEPTED
        || document.select(".anomaly-modal__modal, #challenge-form").exists();
    if is_challenge {
        return Err(limited("it wants to see a person, since there were too many searches"));
    }
    let results = document.select(".result:not(.result--ad)");
    let found = results.nodes().iter().filter_map(|result| {
        let link = result.descendants_it().find(|node| node.has_class("result__a"))?;
        let url = target(&link.attr("href")?, response.target.url())?;
        let snippet = result.descendants_it().find(|node| node.has_class("result__snippet"));
        let snippet = snippet.map(|node| one_line(&node.text(), 500)).unwrap_or_default();
        Some(Found { title: one_line(&link.text(), 200), url, snippet, published: None })
    });
    let found: Vec<_> = found.collect();
    let says_none = || document.select(".no-results, .result--no-result").exists();
    if found.is_empty() && !says_none() && !document.select("form[action*=html]").exists() {
        let error = ToolError::execution("its page has another form than expected");
        return Err(
            error.with_hint("Try again later, or tell the user to configure another provider.")
        );
    }
    Ok(found)
}

/// The page that a link of the results leads to: the link goes over DuckDuckGo, with the page in `uddg`.
fn target(href: &str, base: &Url) -> Option<String> {
    let link = base.join(href).ok()?;
    let direct =
        link.query_pairs().find(|(name, _)| name == "uddg").map(|(_, page)| page.into_owned());
    if link.path() == "/y.js" {
        return None;
    }
    Some(direct.unwrap_or_else(|| link.into()))
}
