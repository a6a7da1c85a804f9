//! Resources and prompts of other MCP servers, read through this server.
//!
//! A client may read a resource that it was given a link to while it may call the tool that gave
//! the link. Each client has its own store of links, so that nobody reads through another client's
//! links.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::ErrorData;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toolcrib_core::Turn;
use toolcrib_tool::Content;

use crate::McpServer;
use crate::catalog::requests::{complete, no_such_prompt, not_found};
use crate::upstream::{OfferedPrompt, UnreadResource};

/// The number of links kept per client; the oldest are forgotten first.
const LINKS_MAX: usize = 1_000;
/// The number of links kept per result.
pub(crate) const LINKS_OF_A_RESULT: usize = 100;
/// The longest address that is kept, in bytes.
const ADDRESS_MAX: usize = 2_048;
/// How long a link can be read after it was last given.
const RETENTION: Duration = Duration::from_secs(60 * 60);
/// Marks content in its `_meta` with the server it comes from, as unverified.
pub(crate) const META_UNTRUSTED: &str = "toolcrib/untrusted";

/// The links that one client was given.
#[derive(Default)]
pub(crate) struct GivenLinks(Mutex<VecDeque<GivenLink>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct GivenLink {
    uri: String,
    /// The tool whose result contained the link.
    tool: String,
    /// The upstream that the tool belongs to.
    upstream: String,
    since: Instant,
}

impl GivenLinks {
    /// Records that a tool of an upstream has linked to an address. If two upstreams use the same
    /// address, the first one has it while its link is kept.
    pub(crate) fn note(&self, uri: &str, tool: &str, upstream: &str) {
        if uri.len() > ADDRESS_MAX {
            return;
        }
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while links.front().is_some_and(|link| link.since.elapsed() > RETENTION) {
            links.pop_front();
        }
        if let Some(at) = links.iter().position(|link| link.uri == uri) {
            if links[at].upstream != upstream {
                return;
            }
            links.remove(at);
        }
        if links.len() == LINKS_MAX {
            links.pop_front();
        }
        let (uri, tool, upstream) = (uri.to_owned(), tool.to_owned(), upstream.to_owned());
        links.push_back(GivenLink { uri, tool, upstream, since: Instant::now() });
    }

    fn find(&self, uri: &str) -> Option<GivenLink> {
        let links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.iter().find(|link| link.uri == uri && link.since.elapsed() <= RETENTION).cloned()
    }
}

/// Reads an address that the client was given by a tool in `turn`, or that an upstream offers it; `None` for other
/// addresses.
pub(crate) async fn read<T: DeserializeOwned>(
    server: &McpServer,
    turn: &Turn,
    uri: &str,
) -> Option<Result<T, ErrorData>> {
    let linked = server.options().linked.as_ref()?;
    let given = server.given_links().find(uri).filter(|given| turn.describe(&given.tool).is_some());
    let given = given.or_else(|| offered(server, uri))?;
    Some(match linked.read(&turn.owner(), &given.upstream, uri).await {
        Ok(parts) => {
            let parts = parts.into_iter().map(|part| server.masked(part));
            let contents: Vec<_> = parts.map(|part| contents(&given, part)).collect();
            complete(json!({"contents": contents}))
        }
        Err(UnreadResource::NotFound) => Err(not_found(uri)),
        Err(UnreadResource::Failed(why)) => Err(unread(server, why)),
    })
}

/// The error for what an upstream does not give.
fn unread(server: &McpServer, why: String) -> ErrorData {
    ErrorData::internal_error(server.masked(Content::Text(why)).as_text().into_owned(), None)
}

/// The messages of an upstream's prompt, as `prompts/get` answers.
pub(crate) async fn prompt<T: DeserializeOwned>(
    server: &McpServer,
    prompt: &OfferedPrompt,
    arguments: &BTreeMap<String, String>,
) -> Result<T, ErrorData> {
    let no_prompt = || no_such_prompt(&prompt.shown.name);
    let linked = server.options().linked.as_ref().ok_or_else(no_prompt)?;
    match linked.prompt(&server.turn().owner(), prompt, arguments).await {
        Ok(messages) => complete(messages),
        Err(UnreadResource::NotFound) => Err(no_prompt()),
        Err(UnreadResource::Failed(why)) => Err(unread(server, why)),
    }
}

/// An address that an upstream offers to this client.
fn offered(server: &McpServer, uri: &str) -> Option<GivenLink> {
    let upstream = server.upstream_offers().reader_of(uri)?.to_owned();
    Some(GivenLink { uri: uri.to_owned(), tool: String::new(), upstream, since: Instant::now() })
}

fn contents(given: &GivenLink, part: Content) -> Value {
    let mut contents = match part {
        Content::TextFile { uri, text, mime_type } => {
            json!({"uri": uri, "mimeType": mime_type.as_deref().unwrap_or("text/plain"), "text": text})
        }
        Content::Blob { uri, data, mime_type } => {
            json!({"uri": uri, "mimeType": mime_type, "blob": STANDARD.encode(data)})
        }
        // A part that could not be read is described in words.
        other => json!({"uri": given.uri, "mimeType": "text/plain", "text": other.as_text()}),
    };
    contents["_meta"] = json!({META_UNTRUSTED: given.upstream});
    contents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_two_servers_belongs_to_the_first() {
        let links = GivenLinks::default();
        links.note("demo://1", "a_list", "a");
        links.note("demo://1", "b_list", "b");
        links.note("demo://1", "a_find", "a");
        let given = links.find("demo://1").unwrap();
        assert_eq!((given.tool.as_str(), given.upstream.as_str()), ("a_find", "a"));
        assert!(links.find("demo://2").is_none());
    }

    #[test]
    fn links_are_bounded_and_the_latest_are_kept() {
        let links = GivenLinks::default();
        links.note(&"x".repeat(ADDRESS_MAX + 1), "t", "a");
        for number in 0..LINKS_MAX {
            links.note(&number.to_string(), "t", "a");
        }
        links.note("0", "t", "a");
        links.note("new", "t", "a");
        assert_eq!(links.0.lock().unwrap().len(), LINKS_MAX);
        assert!(links.find("0").is_some() && links.find("new").is_some());
        assert!(links.find("1").is_none());
    }
}
