//! The requests that every client makes, and the results that every client must get.

use serde_json::{Value, json};

use crate::crib::{GREETING, GREETING_SHA256};

/// A family of protocol revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Revision {
    /// It begins with `initialize`.
    Handshake,
    /// Every request is independent.
    Stateless,
}

impl Revision {
    pub(crate) const ALL: [Self; 2] = [Self::Handshake, Self::Stateless];

    /// The newest of the family.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Handshake => "2025-11-25",
            Self::Stateless => "2026-07-28",
        }
    }
}

/// One `tools/call`.
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) arguments: Value,
}

impl Call {
    pub(crate) fn new(name: &'static str, arguments: Value) -> Self {
        Self { name, arguments }
    }
}

/// The results of a client.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// The negotiated revision.
    pub(crate) protocol_version: String,
    /// The listed tools.
    pub(crate) tools: Vec<Value>,
    /// For each call `{"result": …}` or `{"error": …}`.
    pub(crate) replies: Vec<Value>,
}

impl Conversation {
    pub(crate) fn tool_names(&self) -> Vec<&str> {
        self.tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
    }
}

const NATIVE: &str = "calculator";
const DECLARED: &str = "file_checksum";

/// The calls of [`assert_served`], in order.
pub(crate) fn questions() -> Vec<Call> {
    vec![
        Call::new(NATIVE, json!({"expression": "2 + 2"})),
        Call::new(DECLARED, json!({"path": GREETING})),
        Call::new(NATIVE, json!({"expression": true})),
        Call::new("calculatr", json!({"expression": "2 + 2"})),
    ]
}

/// Checks the list and the answers to [`questions`], except the one for the unknown name: that
/// answer is returned, because some clients do not ask the server for it.
pub(crate) fn assert_served(seen: &Conversation, revision: Revision) -> &Value {
    println!("{} with {} tools", seen.protocol_version, seen.tools.len());
    assert_eq!(seen.protocol_version, revision.name());

    let names = seen.tool_names();
    assert!(names.len() >= 16, "{names:?}");
    assert!(names.contains(&NATIVE) && names.contains(&DECLARED), "{names:?}");

    let [native, declared, refused, unknown] = seen.replies.as_slice() else {
        panic!("{:?}", seen.replies)
    };
    assert_eq!(success(native), "4");
    assert_eq!(native["result"]["structuredContent"]["result"], "4", "{native}");
    assert!(success(declared).contains(GREETING_SHA256), "{declared}");

    assert_eq!(refused["result"]["isError"], true, "{refused}");
    let text = text(refused);
    for part in ["/expression", "expected a string", "got true"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    unknown
}

/// The text of a successful call.
pub(crate) fn success(reply: &Value) -> String {
    // `false` may be omitted.
    assert_ne!(reply["result"]["isError"], true, "{reply}");
    text(reply)
}

fn text(reply: &Value) -> String {
    let parts = reply["result"]["content"].as_array().unwrap_or_else(|| panic!("{reply}"));
    parts.iter().filter_map(|part| part["text"].as_str()).collect()
}
