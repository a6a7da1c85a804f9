//! Which requests over HTTP can be answered without the protocol library, by their heads.
//!
//! As for messages: what is not surely right is left to it, refusals included.

use http::header::{ACCEPT, HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderName};
use rmcp::model::ProtocolVersion;
use toolcrib_wire::McpData;

use super::message::{Message, Wanted};

const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// How nearly all clients say that they take both kinds of answer.
const AS_WRITTEN_BY_MOST: &str = "application/json, text/event-stream";

/// The hosts that are served.
#[derive(Debug)]
pub(crate) struct Hosts(Vec<Host>);

#[derive(Debug)]
struct Host {
    text: String,
    any_port: bool,
}

impl Hosts {
    /// Of `name` (any port) or `name:port`; no name stands for every host.
    pub(crate) fn new(allowed: &[String]) -> Self {
        let host = |text: &String| {
            let authority: Authority = text.parse().ok()?;
            let plain = !text.contains('@');
            plain.then(|| Host { text: text.clone(), any_port: authority.port().is_none() })
        };
        Self(allowed.iter().filter_map(host).collect())
    }

    /// Whether a request is for one of them, and surely not sent by a page of another.
    pub(crate) fn admit(&self, headers: &HeaderMap) -> bool {
        let asked = only(headers, &HOST);
        !headers.contains_key(ORIGIN)
            && asked.is_some_and(|asked| {
                self.0.is_empty() || self.0.iter().any(|host| host.admits(asked))
            })
    }
}

impl Host {
    fn admits(&self, asked: &str) -> bool {
        if asked == self.text {
            return true;
        }
        let Some((name, rest)) = asked.split_at_checked(self.text.len()) else { return false };
        name.eq_ignore_ascii_case(&self.text)
            && match rest.strip_prefix(':') {
                Some(port) => self.any_port && is_port(port),
                None => rest.is_empty(),
            }
    }
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

/// Whether the client takes both kinds of answer, as it has to, without ifs and buts.
pub(crate) fn accepts_answers(headers: &HeaderMap) -> bool {
    if only(headers, &ACCEPT) == Some(AS_WRITTEN_BY_MOST) {
        return true;
    }
    let (mut json, mut events) = (false, false);
    for value in headers.get_all(ACCEPT) {
        let Ok(value) = value.to_str() else { return false };
        if value.contains([';', '"']) {
            return false;
        }
        for kind in value.split(',') {
            let kind = kind.trim();
            json |= kind.eq_ignore_ascii_case("application/json");
            events |= kind.eq_ignore_ascii_case("text/event-stream");
        }
    }
    json && events
}

/// What the request's revision takes as structured data, where the head and the message agree on the
/// revision and on what the head repeats.
///
/// Arguments that a tool wants repeated are not looked at: its calls are not plain from 2026-07-28 on.
pub(crate) fn takes(headers: &HeaderMap, message: &Message<'_>) -> Option<McpData> {
    let Some(revision) = headers.get(REVISION) else {
        return message.is_bare().then_some(McpData::Objects);
    };
    let revision = revision.to_str().ok()?;
    if message.is_bare() {
        let known = ProtocolVersion::KNOWN_VERSIONS.iter().find(|one| one.as_str() == revision)?;
        return known.has_initialize().then_some(McpData::Objects);
    }
    let client = message.client()?;
    // A client that takes tasks may get one.
    let plain = revision == ProtocolVersion::V_2026_07_28.as_str()
        && !client.supports_tasks()
        && only(headers, &METHOD)? == message.method()
        && match message.wanted {
            Wanted::List => true,
            Wanted::Call { name, .. } => {
                // `=?…?=` is the form in which names are sent that fit no header.
                only(headers, &NAME)? == name && !name.starts_with("=?")
            }
        };
    plain.then_some(McpData::Any)
}

/// The text of a header that is there once.
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
    fn hosts_are_the_allowed_ones_and_no_others() {
        let hosts = Hosts::new(&["localhost".into(), "[::1]:7".into(), "a@b".into(), " ".into()]);
        let admits = |host| hosts.admit(&headers(&[("host", host)]));
        for host in ["localhost", "LocalHost:80", "localhost:65535", "[::1]:7"] {
            assert!(admits(host), "{host}");
        }
        for host in
            ["localhost.a", "localhost:", "localhost:+1", "localhost:99999", "[::1]", "[::1]:8"]
        {
            assert!(!admits(host), "{host}");
        }
        assert!(!admits("a@b") && !admits("b") && !hosts.admit(&HeaderMap::new()));
        assert!(!hosts.admit(&headers(&[("host", "localhost"), ("host", "localhost")])));
        assert!(!hosts.admit(&headers(&[("host", "localhost"), ("origin", "http://localhost")])));
    }

    #[test]
    fn both_kinds_of_answer_have_to_be_accepted() {
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
