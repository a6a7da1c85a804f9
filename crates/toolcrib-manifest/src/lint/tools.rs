//! Annotations, tests and literal secrets of a tool.

use super::shown;
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::{Entry, Node, NodeValue};

/// Parts of variable names that suggest a secret.
const SECRET_NAMES: [&str; 7] =
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "PRIVATE_KEY"];

pub(super) fn check(tool: &Node, findings: &mut Findings<'_>) {
    let Some(name) = tool.entry("name") else { return };
    check_annotations(tool, name, findings);
    check_secrets(tool, findings);
    if tool.entry("tests").is_none_or(|tests| tests.node.items().is_empty()) {
        let expected = match (tool.entry("http"), tool.entry("worker")) {
            (Some(_), _) => "url: …",
            (None, Some(_)) => "text_contains: […]",
            (None, None) => "argv_contains: […]",
        };
        let help = format!(
            "add one that must succeed and one that must be refused: \
             `tests: [{{name: plain, args: {{…}}, expect: {{{expected}}}}}]`; `toolcrib test` runs them"
        );
        findings
            .add(Diagnostic::hint("untested", &shown(name), "the tool has no tests").help(help));
    }
}

/// Reports names that begin with the namespace, which is put before each of them.
pub(super) fn check_namespace(root: &Node, findings: &mut Findings<'_>) {
    let namespace = root.entry("namespace").and_then(|entry| entry.node.as_str());
    let Some(namespace) = namespace.filter(|namespace| !namespace.is_empty()) else { return };
    for key in ["tools", "upstream", "prompts"] {
        for item in root.entry(key).map(|list| list.node.items()).unwrap_or_default() {
            let Some(name) = item.entry("name").map(|name| &name.node) else { continue };
            let written = name.as_str().unwrap_or_default();
            let own = written.strip_prefix(namespace).and_then(|rest| rest.strip_prefix('_'));
            let Some(own) = own.filter(|own| !own.is_empty()) else { continue };
            let message = format!(
                "it will be called `{namespace}_{written}`: `namespace` comes before each name"
            );
            let help = format!("write `name: {own}`, or remove `namespace`");
            findings.add(Diagnostic::hint("doubled-namespace", &name.span, message).help(help));
        }
    }
}

fn check_annotations(tool: &Node, name: &Entry, findings: &mut Findings<'_>) {
    let Some(annotations) = tool.entry("annotations") else {
        findings.add(
            Diagnostic::hint(
                "unannotated",
                &shown(name),
                "the tool does not say what effects a call has, so clients treat it as destructive",
            )
            .help("add for example `annotations: {read_only: true, idempotent: true}`"),
        );
        return;
    };
    let set = |key: &str| {
        annotations
            .node
            .entry(key)
            .filter(|entry| matches!(entry.node.value, NodeValue::Bool(true)))
    };
    if let (Some(read_only), Some(destructive)) = (set("read_only"), set("destructive")) {
        let message = "a tool that only reads destroys nothing: one of the two is wrong";
        findings.add(
            Diagnostic::warning("contradicting-annotations", &destructive.key_span, message)
                .label("this says that a call may destroy something")
                .help(
                    "remove `destructive` if a call changes nothing, else write `read_only: false`",
                )
                .also(&read_only.key_span, "this says that a call changes nothing"),
        );
    }
}

/// Reports a literal secret: everybody who can read the file has it.
fn check_secrets(tool: &Node, findings: &mut Findings<'_>) {
    let places = [("run", "env"), ("http", "headers"), ("http", "query")];
    for (part, key) in places {
        let Some(values) = tool.entry(part).and_then(|part| part.node.entry(key)) else { continue };
        for entry in values.node.entries() {
            let name = entry.key.to_uppercase().replace('-', "_");
            let secret = SECRET_NAMES.iter().any(|part| name.contains(part))
                || name == "AUTHORIZATION"
                || name == "COOKIE";
            // Paths and switches are not secrets.
            let literal = entry.node.as_str().filter(|value| {
                value.len() >= 8 && !value.contains("${") && !value.starts_with(['/', '.', '~'])
            });
            if secret && literal.is_some() {
                let message = format!("the value of `{}` looks like a secret", entry.key);
                findings.add(Diagnostic::warning("literal-secret", &shown(entry), message).help(
                    "keep it out of the file: configure a secret and write \"${secret.name}\"",
                ));
            }
        }
    }
}
