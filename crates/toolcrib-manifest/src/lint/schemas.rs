//! Probable mistakes in valid JSON Schemas.

use serde_json::Number;

use super::shown;
use crate::diagnostic::{Diagnostic, Findings, did_you_mean};
use crate::document::{Entry, Node, NodeValue};
use crate::manifest::subschemas;

/// Pairs of lower and upper bounds.
const BOUNDS: [(&str, &str); 4] = [
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
];

/// Keywords for which null is an ordinary value.
const KEYWORDS_OF_ANY_VALUE: [&str; 2] = ["const", "default"];

pub(super) fn check(schema: &Node, findings: &mut Findings<'_>) {
    check_bounds(schema, findings);
    check_options(schema, findings);
    check_pattern(schema, findings);
    check_required(schema, findings);
    check_cut_text(schema, findings);
    subschemas(schema, &mut |below| check(below, findings));
}

/// Formats that a validator can assert.
const FORMATS: [&str; 17] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "time",
    "uri",
    "uri-reference",
    "uuid",
];

/// Reports formats that do not refuse values, because the tool does not assert formats.
pub(super) fn check_formats(tool: &Node, findings: &mut Findings<'_>) {
    let asserted = tool.entry("assert_formats").map(|entry| &entry.node.value);
    if let Some(input) = tool.entry("input") {
        check_format(&input.node, asserted == Some(&NodeValue::Bool(true)), findings);
    }
}

fn check_format(schema: &Node, is_asserted: bool, findings: &mut Findings<'_>) {
    if let Some(entry) = schema.entry("format")
        && let Some(format) = entry.node.as_str()
        && is_of_text(schema)
        && ["pattern", "enum", "const"].iter().all(|bound| schema.entry(bound).is_none())
    {
        let is_known = FORMATS.contains(&format);
        let found = if !is_known {
            let message = format!(
                "no validator knows the format {format}: it informs models, but no text is refused"
            );
            let help = match did_you_mean(format, FORMATS.iter().copied()) {
                Some(near) => format!("{near} Otherwise give the argument a `pattern`"),
                None => "give the argument a `pattern`".to_owned(),
            };
            Some((message, help))
        } else if !is_asserted {
            let message = format!(
                "the format {format} informs models, but texts of other formats are not refused"
            );
            let help = "write `assert_formats: true` in the tool, or give the argument a `pattern`";
            Some((message, help.to_owned()))
        } else {
            None
        };
        if let Some((message, help)) = found {
            findings.add(Diagnostic::hint("unasserted-format", &shown(entry), message).help(help));
        }
    }
    subschemas(schema, &mut |below| check_format(below, is_asserted, findings));
}

/// Whether the values of a schema may be texts. Formats of numbers describe their storage and are
/// no rules about values.
fn is_of_text(schema: &Node) -> bool {
    let kind = schema.entry("type").and_then(|entry| entry.node.as_str());
    !matches!(kind, Some("integer" | "number" | "boolean"))
}

/// A lower bound above the upper one.
fn check_bounds(schema: &Node, findings: &mut Findings<'_>) {
    for (low, high) in BOUNDS {
        let (Some(low), Some(high)) = (schema.entry(low), schema.entry(high)) else { continue };
        let (Some(least), Some(most)) = (number(low), number(high)) else { continue };
        if least > most {
            let message = format!("no value is at least {least} and at most {most}");
            findings.add(
                Diagnostic::warning("nothing-fits", &low.node.span, message)
                    .label(format!("`{}`", low.key))
                    .help("swap them, or correct one: as it stands, every value is refused")
                    .also(&high.node.span, format!("`{}`", high.key)),
            );
        }
    }
}

fn number(entry: &Entry) -> Option<f64> {
    match &entry.node.value {
        NodeValue::Number(number) => Number::as_f64(number),
        _ => None,
    }
}

/// Reports listed values whose type differs from `type`.
fn check_options(schema: &Node, findings: &mut Findings<'_>) {
    let Some(kind) = schema.entry("type").and_then(|entry| entry.node.as_str()) else { return };
    for item in schema.entry("enum").map(|entry| entry.node.items()).unwrap_or_default() {
        let fits = match &item.value {
            NodeValue::Null => kind == "null",
            NodeValue::Bool(_) => kind == "boolean",
            NodeValue::Number(number) => {
                kind == "number"
                    || kind == "integer" && number.as_f64().is_none_or(|n| n.fract() == 0.0)
            }
            NodeValue::String(_) => kind == "string",
            NodeValue::Sequence(_) => kind == "array",
            NodeValue::Mapping(_) => kind == "object",
        };
        if !fits {
            let message = format!("{} can never be chosen: `type` is {kind}", item.describe());
            let help =
                if kind == "string" { "quote it, or remove `type`" } else { "remove `type`" };
            findings.add(Diagnostic::warning("nothing-fits", &item.span, message).help(help));
        }
    }
}

/// Reports unanchored patterns, which allow any text around a match.
fn check_pattern(schema: &Node, findings: &mut Findings<'_>) {
    let Some((entry, pattern)) = schema.entry("pattern").and_then(|e| Some((e, e.node.as_str()?)))
    else {
        return;
    };
    let anchored = pattern.contains('^')
        || pattern.ends_with('$')
        || ["\\A", "\\b", "\\z"].iter().any(|anchor| pattern.contains(anchor));
    if !anchored {
        let message =
            "the pattern matches anywhere in the value: the rest of the value is not checked";
        findings.add(
            Diagnostic::hint("unanchored-pattern", &shown(entry), message)
                .help(format!("anchor it: '^(?:{pattern})$'")),
        );
    }
}

/// Reports defaults of required arguments.
fn check_required(schema: &Node, findings: &mut Findings<'_>) {
    let properties = schema.entry("properties").map(|entry| &entry.node);
    for item in schema.entry("required").map(|entry| entry.node.items()).unwrap_or_default() {
        let property = item.as_str().and_then(|name| properties?.entry(name));
        if let Some(default) = property.and_then(|property| property.node.entry("default")) {
            let name = item.as_str().unwrap_or_default();
            let message = format!("`{name}` has a default, but is required");
            findings.add(
                Diagnostic::hint("required-default", &item.span, message)
                    .label("required here")
                    .help("remove it from `required`, or remove the default")
                    .also(&default.key_span, "the default"),
            );
        }
    }
}

/// Reports the rest of an unquoted text after a comma, which has become a key without a value.
fn check_cut_text(schema: &Node, findings: &mut Findings<'_>) {
    for pair in schema.entries().windows(2) {
        let [before, rest] = pair else { continue };
        let is_cut = rest.node.value == NodeValue::Null
            && before.node.as_str().is_some()
            && !KEYWORDS_OF_ANY_VALUE.contains(&rest.key.as_str());
        if is_cut {
            let message =
                format!("the text of `{}` ends at the comma before `{}`", before.key, rest.key);
            findings.add(
                Diagnostic::warning("cut-text", &rest.key_span, message)
                    .label("a key without a value")
                    .help("quote the whole text; without quotes a comma ends it inside `{…}`"),
            );
        }
    }
}
