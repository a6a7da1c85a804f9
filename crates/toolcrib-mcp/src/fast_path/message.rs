//! One message that is surely a plain call or a plain list of tools, read in place.
//!
//! Whatever a reader could doubt is no plain message: members that are not named here, other types,
//! duplicate keys, escapes in names. The protocol library then says what it is.

use std::borrow::Cow;

use rmcp::model::{ClientCapabilities, ProtocolVersion, RequestId};
use serde::Deserialize as _;
use toolcrib_core::RemoteTrace;
use toolcrib_json::{Cursor, Kind, Number, Tape};
use toolcrib_tool::{RawArguments, ToolCall};

const RESERVED: &str = "io.modelcontextprotocol/";

/// A plain message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message<'t> {
    id: Cursor<'t>,
    pub(crate) wanted: Wanted<'t>,
    meta: Meta<'t>,
}

/// What it asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted<'t> {
    /// The first page of the tools.
    List,
    /// A call; its arguments are an object, if there are any.
    Call { name: &'t str, arguments: Option<Cursor<'t>> },
}

/// What a message says of its client, from revision 2026-07-28 on, and the trace that it is part of.
#[derive(Debug, Clone, Copy, Default)]
struct Meta<'t> {
    revision: Option<&'t str>,
    capabilities: Option<Cursor<'t>>,
    trace_parent: Option<&'t str>,
    trace_state: Option<&'t str>,
}

impl<'t> Message<'t> {
    /// Reads a message; `None` for every one that is not surely plain.
    pub(crate) fn of(tape: &'t Tape<'_>) -> Option<Self> {
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
        if !version?.equals("2.0") {
            return None;
        }
        let (wanted, meta) = match plain(method?)? {
            "tools/call" => call(params?)?,
            "tools/list" => (Wanted::List, params.map_or(Some(Meta::default()), list)?),
            _ => return None,
        };
        Some(Self { id, wanted, meta })
    }

    /// The id as it is written in JSON.
    pub(crate) fn id(&self) -> &'t str {
        self.id.source()
    }

    /// The id as the protocol library has it.
    pub(crate) fn request_id(&self) -> RequestId {
        match self.id.number() {
            Some(Number::Unsigned(number)) => RequestId::Number(number.cast_signed()),
            Some(Number::Negative(number)) => RequestId::Number(number),
            _ => RequestId::String(self.id.key_text().into()),
        }
    }

    /// The call it makes of `name`.
    pub(crate) fn call(&self, name: &str, arguments: Option<Cursor<'_>>) -> ToolCall {
        let arguments = arguments.map(|arguments| RawArguments::from(arguments.to_tape()));
        // Of a text; a number is called as it is written.
        let id = self.id.as_str().unwrap_or(Cow::Borrowed(self.id.source()));
        ToolCall::new(&*id, name, arguments.unwrap_or_default())
    }

    /// The method's name.
    pub(crate) fn method(&self) -> &'static str {
        match self.wanted {
            Wanted::List => "tools/list",
            Wanted::Call { .. } => "tools/call",
        }
    }

    /// Whether it says nothing of its client: what is known of it was said before.
    pub(crate) fn is_bare(&self) -> bool {
        self.meta.revision.is_none() && self.meta.capabilities.is_none()
    }

    /// The trace that it is part of, if it names one.
    pub(crate) fn trace(&self) -> Option<RemoteTrace<'t>> {
        let state = self.meta.trace_state;
        self.meta.trace_parent.map(|parent| RemoteTrace { parent, state })
    }

    /// What the client can, where the message says all that revision 2026-07-28 wants to be said.
    pub(crate) fn client(&self) -> Option<ClientCapabilities> {
        let Meta { revision, capabilities, .. } = self.meta;
        if revision? != ProtocolVersion::V_2026_07_28.as_str() {
            return None;
        }
        let capabilities = capabilities?;
        if capabilities.kind() == Kind::Object && capabilities.is_empty() {
            return Some(ClientCapabilities::default());
        }
        ClientCapabilities::deserialize(capabilities).ok()
    }
}

fn call(params: Cursor<'_>) -> Option<(Wanted<'_>, Meta<'_>)> {
    let (mut name, mut arguments, mut said) = (None, None, Meta::default());
    for (key, value) in params.members() {
        match &*key.key_text() {
            "name" => name = Some(plain(value)?),
            "arguments" => match value.kind() {
                Kind::Object => arguments = Some(value),
                Kind::Null => {}
                _ => return None,
            },
            "_meta" => said = meta(value)?,
            _ => return None,
        }
    }
    Some((Wanted::Call { name: name?, arguments }, said))
}

fn list(params: Cursor<'_>) -> Option<Meta<'_>> {
    if params.kind() != Kind::Object {
        return None;
    }
    let mut said = Meta::default();
    for (key, value) in params.members() {
        said = if key.equals("_meta") { meta(value)? } else { return None };
    }
    Some(said)
}

/// What is reserved for the protocol and not known here may mean anything; a client that wants to be
/// told of progress, or of what is logged, is not plain. Other keys are nobody's here.
fn meta(meta: Cursor<'_>) -> Option<Meta<'_>> {
    if meta.kind() != Kind::Object {
        return None;
    }
    let mut said = Meta::default();
    for (key, value) in meta.members() {
        let key = key.key_text();
        match key.strip_prefix(RESERVED) {
            Some("protocolVersion") => said.revision = Some(plain(value)?),
            Some("clientCapabilities") => said.capabilities = Some(value),
            Some("clientInfo") => {}
            Some(_) => return None,
            None => match &*key {
                "progressToken" => return None,
                "traceparent" => said.trace_parent = plain(value),
                "tracestate" => said.trace_state = plain(value),
                _ => {}
            },
        }
    }
    Some(said)
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
        toolcrib_json::parse(text).is_ok_and(|tape| Message::of(&tape).is_some())
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
    fn whatever_could_be_doubted_is_not() {
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
    fn a_client_is_known_where_all_is_said_of_it() {
        let client = |meta: &str| {
            let text = call_with(&format!(r#"{{"name":"a","_meta":{meta}}}"#));
            let tape = toolcrib_json::parse(&text).unwrap();
            Message::of(&tape).unwrap().client()
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
