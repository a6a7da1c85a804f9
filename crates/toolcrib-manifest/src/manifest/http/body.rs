//! `json`, `form` and `text`: the body.

use super::check_plain_key;
use crate::declaration::{HttpBody, HttpMethod, JsonTemplate};
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::{Entry, Node, NodeValue, check_literals};
use crate::fields::Fields;
use crate::manifest::tool::references::Scope;

/// Reads the body. The outer `None` means that it is invalid.
#[expect(clippy::option_option, reason = "wrong is not absent")]
pub(super) fn read(
    fields: &Fields<'_>,
    method: HttpMethod,
    scope: &mut Scope,
    findings: &mut Findings<'_>,
) -> Option<Option<HttpBody>> {
    let given: Vec<&Entry> =
        ["json", "form", "text"].iter().filter_map(|key| fields.entry(key)).collect();
    let Some(first) = given.first() else { return Some(None) };
    for second in &given[1..] {
        let message = format!("a request has one body: `{}` or `{}`", first.key, second.key);
        findings.add(
            Diagnostic::error("two-bodies", &second.key_span, message)
                .help("remove one of them")
                .also(&first.key_span, "the other one"),
        );
    }
    if matches!(method, HttpMethod::Get | HttpMethod::Head) {
        let message = format!("a {method} request has no body");
        let help = if fields.has("method") {
            "send it as `query`, or with `method: POST`"
        } else {
            "write `method: POST`; without `method` it is GET"
        };
        findings.add(Diagnostic::error("body-of-get", &first.key_span, message).help(help));
    }
    let body = match first.key.as_str() {
        "json" => {
            check_literals(&first.node, findings);
            json(&first.node, scope, findings).map(HttpBody::Json)
        }
        "form" => {
            let mut form = Vec::new();
            for entry in first.node.entries() {
                let named =
                    check_plain_key(entry, "reference-in-name", "the name of a field", findings);
                let template = scope.template(&entry.node, findings);
                form.extend(template.filter(|_| named).map(|value| (entry.key.clone(), value)));
            }
            Some(HttpBody::Form(form))
        }
        _ => scope.template(&first.node, findings).map(HttpBody::Text),
    };
    body.map(Some)
}

/// JSON whose strings are templates.
fn json(node: &Node, scope: &mut Scope, findings: &mut Findings<'_>) -> Option<JsonTemplate> {
    Some(match &node.value {
        NodeValue::String(_) => JsonTemplate::Text(scope.template(node, findings)?),
        NodeValue::Sequence(items) => {
            let items: Vec<_> = items.iter().map(|item| json(item, scope, findings)).collect();
            JsonTemplate::List(items.into_iter().collect::<Option<_>>()?)
        }
        NodeValue::Mapping(entries) => {
            let mut members = Vec::new();
            for entry in entries {
                if entry.key.contains("${") {
                    let message = "a value must not become a key";
                    findings.add(
                        Diagnostic::error("reference-in-name", &entry.key_span, message).help(
                            "write the key as a literal; to pass an object from the model, refer \
                             to the whole object: \
                             \"${args.fields}\"",
                        ),
                    );
                }
                let member = json(&entry.node, scope, findings);
                members.push(member.map(|member| (entry.key.clone(), member)));
            }
            JsonTemplate::Object(members.into_iter().collect::<Option<_>>()?)
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {
            JsonTemplate::Scalar(node.to_value())
        }
    })
}
