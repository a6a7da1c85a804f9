//! Decides from its headers whether an HTTP request is plain. Anything uncertain, including
//! refusals, is left to the protocol library.

use std::sync::Arc;

use http::header::{ACCEPT, HOST, ORIGIN};
use http::{HeaderMap, HeaderName};
use rmcp::model::ProtocolVersion;
use toolcrib_wire::McpData;

use super::request::{PlainMethod, PlainRequest};
use crate::call::client::Client;

const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Whether a request is for an allowed host, `name` (any port) or `name:port`, compared literally,
/// and certainly not sent by another site's web page. An empty list allows every host.
pub(super) fn is_for_one_of(allowed: &[String], headers: &HeaderMap) -> bool {
    let Some(host) = only(headers, &HOST) else { return false };
    let name = without_port(host).filter(|name| without_port(name).is_none());
    let is_it = |allowed: &String| allowed == host || Some(allowed.as_str()) == name;
    !headers.contains_key(ORIGIN) && (allowed.is_empty() || allowed.iter().any(is_it))
}

fn without_port(host: &str) -> Option<&str> {
    let (name, port) = host.rsplit_once(':')?;
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    is_port.then_some(name)
}

/// Whether the client accepts both kinds of answer, as the specification requires, without
/// conditions.
pub(super) fn accepts_answers(headers: &HeaderMap) -> bool {
    // The spelling of nearly all clients.
    if only(headers, &ACCEPT) == Some("application/json, text/event-stream") {
        return true;
    }
    let values = || headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let accepts = |wanted: &str| {
        let kinds = values().flat_map(|value| value.split(','));
        kinds.into_iter().any(|kind| kind.trim().eq_ignore_ascii_case(wanted))
    };
    !values().any(|value| value.contains([';', '"']))
        && accepts("application/json")
        && accepts("text/event-stream")
}

/// The sender of a request whose headers and message agree on the revision and on repeated values.
/// `unknown` is a client of the revisions with a handshake.
///
/// Arguments that a tool wants repeated in headers are not compared here.
pub(super) fn sender(
    headers: &HeaderMap,
    request: &PlainRequest<'_>,
    unknown: &Arc<Client>,
) -> Option<Arc<Client>> {
    let Some(revision) = headers.get(REVISION) else {
        return request.is_bare().then(|| Arc::clone(unknown));
    };
    let revision = revision.to_str().ok()?;
    if request.is_bare() {
        let known = ProtocolVersion::KNOWN_VERSIONS.iter().find(|one| one.as_str() == revision)?;
        return known.has_initialize().then(|| Arc::clone(unknown));
    }
    let capabilities = request.client()?;
    // A client that supports tasks may get one.
    let agrees = revision == ProtocolVersion::V_2026_07_28.as_str()
        && !capabilities.supports_tasks()
        && match (request.wanted, only(headers, &METHOD)?) {
            (PlainMethod::List, method) => method == "tools/list",
            // `=?…?=` encodes names that cannot be sent as they are.
            (PlainMethod::Call { name, .. }, method) => {
                method == "tools/call" && only(headers, &NAME)? == name && !name.starts_with("=?")
            }
        };
    agrees.then(|| Arc::new(Client::alone(capabilities, McpData::Any)))
}

/// The text of a header that occurs exactly once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    value.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn only_allowed_hosts_pass() {
        let allowed = ["localhost".to_owned(), "[::1]:7".to_owned(), " ".to_owned()];
        let admits = |pairs: &[_]| is_for_one_of(&allowed, &headers(pairs));
        for host in ["localhost", "localhost:80", "localhost:65535", "[::1]:7"] {
            assert!(admits(&[("host", host)]), "{host}");
        }
        for host in [
            "localhost.a",
            "localhost:",
            "localhost:+1",
            "localhost:99999",
            "localhost:80:80",
            "[::1]",
            "[::1]:8",
            "[::1]:7:8",
            "LocalHost",
            ":80",
            "",
        ] {
            assert!(!admits(&[("host", host)]), "{host}");
        }
        let local = headers(&[("host", "localhost")]);
        assert!(is_for_one_of(&[], &local) && !is_for_one_of(&[" ".to_owned()], &local));
        assert!(!admits(&[]));
        assert!(!admits(&[("host", "localhost"), ("host", "localhost")]));
        assert!(!admits(&[("host", "localhost"), ("origin", "http://localhost")]));
    }

    #[test]
    fn a_client_has_to_accept_both_media_types() {
        let accepts = |value| accepts_answers(&headers(&[("accept", value)]));
        assert!(accepts("application/json, text/event-stream"));
        assert!(accepts("*/*,Text/Event-Stream , application/JSON"));
        assert!(accepts_answers(&headers(&[
            ("accept", "application/json"),
            ("accept", "text/event-stream"),
        ])));
        assert!(!accepts("*/*"));
        assert!(!accepts("application/json"));
        assert!(!accepts("application/json;q=0, text/event-stream"));
        assert!(!accepts_answers(&HeaderMap::new()));
    }
}
