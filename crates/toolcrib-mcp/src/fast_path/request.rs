//! Parses, in place, a message that is certainly a plain call or a plain tool list.
//!
//! Anything unexpected makes a message not plain: unknown members, other types, duplicate keys,
//! escapes in names. The protocol library then decides what it is.

use std::borrow::Cow;

use rmcp::model::{ClientCapabilities, ProtocolVersion};
use serde::Deserialize as _;
use toolcrib_core::RemoteTrace;
use toolcrib_json::{Cursor, Kind, Number, Tape};
use toolcrib_tool::{RawArguments, ToolCall};

const RESERVED: &str = "io.modelcontextprotocol/";

/// A plain request.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlainRequest<'t> {
    id: Cursor<'t>,
    pub(super) wanted: PlainMethod<'t>,
    meta: Meta<'t>,
}

/// The method of a plain request.
#[derive(Debug, Clone, Copy)]
pub(super) enum PlainMethod<'t> {
    /// Requests the first page of the tools.
    List,
    /// A call; its arguments are an object, if there are any.
    Call { name: &'t str, arguments: Option<Cursor<'t>> },
}

/// The parameters of a request.
#[derive(Debug, Default)]
struct Params<'t> {
    name: Option<&'t str>,
    arguments: Option<Cursor<'t>>,
    meta: Meta<'t>,
}

/// What a request says about its client, from revision 2026-07-28 on, and the trace that it belongs
/// to.
#[derive(Debug, Clone, Copy, Default)]
struct Meta<'t> {
    revision: Option<&'t str>,
    capabilities: Option<Cursor<'t>>,
    trace_parent: Option<&'t str>,
    trace_state: Option<&'t str>,
}

impl<'t> PlainRequest<'t> {
    /// Parses a message; `None` if it is not certainly plain.
    pub(super) fn read(tape: &'t Tape<'_>) -> Option<Self> {
        let (mut version, mut id, mut method, mut params) = (None, None, None, None);
        for (key, value) in tape.root().members() {
            let place = match &*key.key_text() {
                "jsonrpc" => &mut version,
                "id" => &mut id,
                "method" => &mut method,
                "params" => &mut params,
                _ => return None,
            };
            *place = Some(value);
        }
        let id = id.filter(|id| is_id(*id))?;
        let method = method.filter(|_| version.is_some_and(|version| version.equals("2.0")))?;
        let is_call = method.equals("tools/call");
        if !is_call && !method.equals("tools/list") {
            return None;
        }
        let Params { name, arguments, meta } = match params {
            Some(params) => Params::read(params, is_call)?,
            None => Params::default(),
        };
        let wanted =
            if is_call { PlainMethod::Call { name: name?, arguments } } else { PlainMethod::List };
        Some(Self { id, wanted, meta })
    }

    /// The id as JSON.
    pub(super) fn id(&self) -> &'t str {
        self.id.source()
    }

    /// The call of the tool `name`.
    pub(super) fn call(&self, name: &str, arguments: Option<Cursor<'_>>) -> ToolCall {
        let arguments = arguments.map(|arguments| RawArguments::from(arguments.to_tape()));
        // The content of a string; a number is used as it is written.
        let id = self.id.as_str().unwrap_or(Cow::Borrowed(self.id.source()));
        ToolCall::new(&*id, name, arguments.unwrap_or_default())
    }

    /// Whether it says nothing about its client, which identified itself before.
    pub(super) fn is_bare(&self) -> bool {
        self.meta.revision.is_none() && self.meta.capabilities.is_none()
    }

    /// The trace that it belongs to, if it names one.
    pub(super) fn trace(&self) -> Option<RemoteTrace<'t>> {
        let state = self.meta.trace_state;
        self.meta.trace_parent.map(|parent| RemoteTrace { parent, state })
    }

    /// The client's capabilities, if the message contains everything that revision 2026-07-28
    /// requires.
    pub(super) fn client(&self) -> Option<ClientCapabilities> {
        let Meta { revision, capabilities, .. } = self.meta;
        if revision? != ProtocolVersion::V_2026_07_28.as_str() {
            return None;
        }
        ClientCapabilities::deserialize(capabilities?).ok()
    }
}

impl<'t> Params<'t> {
    fn read(params: Cursor<'t>, of_call: bool) -> Option<Self> {
        if params.kind() != Kind::Object {
            return None;
        }
        let mut read = Self::default();
        for (key, value) in params.members() {
            match &*key.key_text() {
                "_meta" => read.meta = Meta::read(value)?,
                "name" if of_call => read.name = Some(plain(value)?),
                "arguments" if of_call && value.kind() == Kind::Object => {
                    read.arguments = Some(value);
                }
                "arguments" if of_call && value.kind() == Kind::Null => {}
                _ => return None,
            }
        }
        Some(read)
    }
}

impl<'t> Meta<'t> {
    /// Unknown keys in the reserved namespace may mean anything, and progress or log messages are
    /// the library's task, so these are not plain. Other keys have no meaning here.
    fn read(meta: Cursor<'t>) -> Option<Self> {
        if meta.kind() != Kind::Object {
            return None;
        }
        let mut read = Self::default();
        for (key, value) in meta.members() {
            let key = key.key_text();
            match key.strip_prefix(RESERVED) {
                Some("protocolVersion") => read.revision = Some(plain(value)?),
                Some("clientCapabilities") => read.capabilities = Some(value),
                Some("clientInfo") => {}
                Some(_) => return None,
                None => match &*key {
                    "progressToken" => return None,
                    "traceparent" => read.trace_parent = plain(value),
                    "tracestate" => read.trace_state = plain(value),
                    _ => {}
                },
            }
        }
        Some(read)
    }
}

/// A string without escapes.
fn plain(value: Cursor<'_>) -> Option<&str> {
    match value.as_str()? {
        Cow::Borrowed(text) => Some(text),
        Cow::Owned(_) => None,
    }
}

fn is_id(id: Cursor<'_>) -> bool {
    match id.number() {
        Some(Number::Unsigned(number)) => i64::try_from(number).is_ok(),
        Some(Number::Negative(_)) => true,
        Some(Number::Float(_)) => false,
        None => plain(id).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_plain(text: &str) -> bool {
        toolcrib_json::parse(text).is_ok_and(|tape| PlainRequest::read(&tape).is_some())
    }

    fn call_with(params: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
    }

    #[test]
    fn calls_and_lists_are_plain() {
        for text in [
            call_with(r#"{"name":"a"}"#),
            call_with(r#"{"name":"a","arguments":null}"#),
            call_with(r#"{"arguments":{"b":[1,2,{"c":null}]},"name":"a","_meta":{}}"#),
            call_with(r#"{"name":"a","_meta":{"traceparent":"00-1-2-03"}}"#),
            r#"{"jsonrpc":"2.0","id":"x","method":"tools/list"}"#.to_owned(),
            r#" {"params":{},"method":"tools/list","id":-4,"jsonrpc":"2.0"} "#.to_owned(),
            r#"{"jsonrpc":"2.0","id":9223372036854775807,"method":"tools/list"}"#.to_owned(),
        ] {
            assert!(is_plain(&text), "{text}");
        }
    }

    #[test]
    fn ambiguous_messages_are_not_plain() {
        for text in [
            call_with(r#"{"name":"a","arguments":[]}"#),
            call_with(r#"{"name":"a","arguments":"{}"}"#),
            call_with(r#"{"name":"a","arguments":{"b":1,"b":2}}"#),
            call_with(r#"{"name":"a","arguments":{"b":"\ud800"}}"#),
            call_with(r#"{"name":"\u0061"}"#),
            call_with(r#"{"name":1}"#),
            call_with(r#"{"arguments":{}}"#),
            call_with(r#"{"name":"a","task":{}}"#),
            call_with(r#"{"name":"a","requestState":"s"}"#),
            call_with(r#"{"name":"a","inputResponses":{}}"#),
            call_with(r#"{"name":"a","_meta":{"progressToken":1}}"#),
            call_with(r#"{"name":"a","_meta":{"io.modelcontextprotocol/logLevel":"info"}}"#),
            call_with(r#"{"name":"a","_meta":{"io.modelcontextprotocol/related-task":{}}}"#),
            call_with(r#"{"name":"a","_meta":null}"#),
            call_with("[]"),
            r#"{"jsonrpc":"2.0","method":"tools/list"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1.0,"method":"tools/list"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"tools/list"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":"\n","method":"tools/list"}"#.to_owned(),
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#.to_owned(),
            r#"{"id":1,"method":"tools/list"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","x":1}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/list"}"#.to_owned(),
            r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(),
            "7".to_owned(),
        ] {
            assert!(!is_plain(&text), "{text}");
        }
    }

    #[test]
    fn a_request_identifies_its_client_only_with_all_required_members() {
        let client = |meta: &str| {
            let text = call_with(&format!(r#"{{"name":"a","_meta":{meta}}}"#));
            let tape = toolcrib_json::parse(&text).unwrap();
            PlainRequest::read(&tape).unwrap().client()
        };
        let revision = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
        let can = |what: &str| {
            client(&format!(
                r#"{{{revision},"io.modelcontextprotocol/clientCapabilities":{what}}}"#
            ))
        };
        assert_eq!(can("{}"), Some(ClientCapabilities::default()));
        assert!(can(r#"{"elicitation":{}}"#).unwrap().elicitation.is_some());
        assert_eq!(can("7"), None);
        assert_eq!(client(&format!("{{{revision}}}")), None);
        assert_eq!(client(r#"{"io.modelcontextprotocol/clientCapabilities":{}}"#), None);
    }
}
