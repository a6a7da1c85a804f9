//! Tools that the client runs: this server only checks calls and passes them on.

use serde_json::Value;
use toolcrib_tool::InputFormat;

use crate::diagnostic::position::Span;
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::{Entry, Node, NodeValue, Style};
use crate::fields::Fields;
use crate::manifest::keys;

/// Keys of a tool that apply only to tools that run here.
const OF_TOOLS_THAT_RUN_HERE: [&str; 9] =
    ["context", "cwd", "sandbox", "needs", "output", "cache", "dedupe", "retry", "resources"];

/// Keys of `limits` that apply only to tools that run here.
const LIMITS_OF_TOOLS_THAT_RUN_HERE: [&str; 5] =
    ["output", "transfer", "memory", "concurrent", "rate"];

/// Expectations of a test about a run.
const SEEN_IN_A_RUN: [&str; 7] =
    ["argv", "argv_contains", "url", "body", "text_contains", "text_matches", "data"];

/// The fixed input of a client tool's kind; `None` for `client: true`.
pub(in crate::manifest) fn own_input(
    fields: &Fields<'_>,
    findings: &mut Findings<'_>,
) -> Option<Node> {
    let client = fields.entry("client").filter(|entry| is_mapping(entry))?;
    let own = Fields::read(&client.node, &keys::CLIENT, findings)?;
    let kind = own.text("kind")?;
    let wanted = match kind {
        "regex" => Some("pattern"),
        "lark" => Some("grammar"),
        _ => None,
    };
    for key in ["pattern", "grammar"].into_iter().filter(|key| Some(*key) != wanted) {
        if let Some(entry) = own.entry(key) {
            let message = format!("`{key}` does not go with `kind: {kind}`");
            findings.add(
                Diagnostic::error("bad-client", &entry.key_span, message)
                    .help("`pattern` goes with `kind: regex`, `grammar` with `kind: lark`"),
            );
        }
    }
    let definition = wanted.and_then(|key| own.text(key)).unwrap_or_default().to_owned();
    if let Some(key) = wanted.filter(|_| definition.is_empty()) {
        let message = format!("`kind: {kind}` needs `{key}`");
        let place = own.node("kind").map_or(&client.key_span, |node| &node.span);
        let help = format!("write `client: {{kind: {kind}, {key}: …}}`");
        findings.add(Diagnostic::error("bad-client", place, message).help(help));
        return None;
    }
    let schema = match kind {
        "local_shell" => toolcrib_tool::local_shell_schema(),
        "text" => InputFormat::Text.schema(),
        "regex" => InputFormat::Regex { definition }.schema(),
        "lark" => InputFormat::Lark { definition }.schema(),
        _ => return None,
    };
    if let Some(input) = fields.entry("input") {
        let message = format!("`input` and `kind: {kind}` cannot be combined");
        findings.add(
            Diagnostic::error("bad-client", &input.key_span, message)
                .help("remove `input`: the kind defines the input")
                .also(&client.key_span, "the kind is here"),
        );
        return None;
    }
    Some(node_of(&schema, &client.key_span))
}

fn is_mapping(entry: &Entry) -> bool {
    matches!(entry.node.value, NodeValue::Mapping(_))
}

/// A node for a value, with a place in the file.
fn node_of(value: &Value, span: &Span) -> Node {
    let value = match value {
        Value::Null => NodeValue::Null,
        Value::Bool(flag) => NodeValue::Bool(*flag),
        Value::Number(number) => NodeValue::Number(number.clone()),
        Value::String(text) => NodeValue::String(text.clone()),
        Value::Array(items) => {
            NodeValue::Sequence(items.iter().map(|item| node_of(item, span)).collect())
        }
        Value::Object(members) => {
            let entry = |(key, value): (&String, &Value)| Entry {
                key: key.clone(),
                key_span: span.clone(),
                node: node_of(value, span),
            };
            NodeValue::Mapping(members.iter().map(entry).collect())
        }
    };
    Node { value, span: span.clone(), style: Style::Explicit }
}

/// Whether the client runs the tool; reports keys that do not apply then.
pub(in crate::manifest) fn is_client(
    fields: &Fields<'_>,
    limits: Option<&Fields<'_>>,
    findings: &mut Findings<'_>,
) -> bool {
    let declared = |entry: &&Entry| is_mapping(entry) || fields.flag("client") == Some(true);
    let Some(client) = fields.entry("client").filter(declared) else {
        return false;
    };
    for run in ["run", "http"].iter().filter_map(|key| fields.entry(key)) {
        let message = format!(
            "`client: true` and `{}` cannot be combined: the client runs the tool, or this server \
             does",
            run.key
        );
        findings.add(
            Diagnostic::error("client-and-run", &client.key_span, message)
                .label("the client runs it")
                .help("remove one of them")
                .also(&run.key_span, "this server runs it"),
        );
    }
    let own = OF_TOOLS_THAT_RUN_HERE.iter().filter_map(|key| fields.entry(key));
    let limits = LIMITS_OF_TOOLS_THAT_RUN_HERE
        .iter()
        .filter_map(|key| limits.and_then(|limits| limits.entry(key)));
    for entry in own.chain(limits) {
        let message =
            format!("`{}` is for tools that run here; the client runs this one", entry.key);
        findings.add(
            Diagnostic::error("not-for-client", &entry.key_span, message)
                .help("remove it: it would have no effect here")
                .also(&client.key_span, "the client runs it"),
        );
    }
    for test in fields.node("tests").map(Node::items).unwrap_or_default() {
        check_test(test, findings);
    }
    true
}

/// Tests of client tools can only expect refusals, because nothing runs here.
fn check_test(test: &Node, findings: &mut Findings<'_>) {
    let Some(expect) = test.entry("expect") else { return };
    let mut refuse = |entry: &Entry| {
        let message = "a test of a client tool runs nothing, and can only expect a refusal";
        let place = entry.key_span.clone();
        findings.add(
            Diagnostic::error("test-of-client", &place, message)
                .help("write `expect: {error: invalid_args}` for arguments that must be refused"),
        );
    };
    if expect.node.entry("error").is_none() {
        refuse(expect);
        return;
    }
    SEEN_IN_A_RUN.iter().filter_map(|key| expect.node.entry(key)).for_each(refuse);
}
