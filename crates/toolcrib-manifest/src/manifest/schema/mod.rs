//! Checks JSON Schemas in manifests, with the places of problems.

pub(crate) mod addresses;
pub(crate) mod checked;
mod keywords;
mod nulls;
pub(crate) mod pattern;
mod slips;
pub(in crate::manifest) mod too_free;
pub(crate) mod value_shape;

use jsonschema::ValidationError;
use serde_json::{Value, json};

use crate::diagnostic::position::first_line;
use crate::diagnostic::violation::ValidatedValue;
use crate::diagnostic::{Diagnostic, Findings, Severity, did_you_mean, meant};
use crate::document::{Entry, Node, NodeValue, Style, check_schema_literals, other_reading};
use crate::manifest::schema::checked::{Checked, compile};
use keywords::all as keywords;
pub(crate) use keywords::subschemas;

/// Keywords at a root beside which `additionalProperties` would refuse what they allow.
const COMBINING: [&str; 9] =
    ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas"];

/// Checks the schema of a tool's arguments: an object, closed unless it says otherwise.
pub(super) fn check_input(
    node: &Node,
    assert_formats: bool,
    findings: &mut Findings<'_>,
) -> Option<Checked> {
    let mut value = node.to_value();
    let root = value.as_object_mut()?;
    if let Some(entry) = node.entry("type")
        && entry.node.as_str() != Some("object")
    {
        let message = "the arguments of a tool are an object";
        findings.add(
            Diagnostic::error("bad-schema", &entry.node.visible_span(Some(entry)), message).help(
                "remove `type`, or write `type: object`, and declare arguments in `properties`",
            ),
        );
        return None;
    }
    if report_misplaced(node, findings) {
        return None;
    }
    root.insert("type".to_owned(), "object".into());
    if !root.contains_key("additionalProperties") && !root.contains_key("unevaluatedProperties") {
        let combined = COMBINING.iter().any(|keyword| root.contains_key(*keyword));
        let closing = if combined { "unevaluatedProperties" } else { "additionalProperties" };
        root.insert(closing.to_owned(), false.into());
    }
    nulls::leave_out(node, &mut value, findings);
    let checked = check(node, value, assert_formats, findings)?;
    check_required(node, findings);
    check_defaults(node, &checked, findings);
    Some(checked)
}

/// Required properties must be declared; otherwise every call would fail if other properties are
/// refused.
fn check_required(node: &Node, findings: &mut Findings<'_>) {
    let open = ["additionalProperties", "unevaluatedProperties", "patternProperties"];
    if COMBINING.iter().chain(&open).any(|keyword| node.entry(keyword).is_some()) {
        return;
    }
    let declared = node.entry("properties").map(|entry| entry.node.entries()).unwrap_or_default();
    for item in node.entry("required").map(|entry| entry.node.items()).unwrap_or_default() {
        let Some(name) = item.as_str() else { continue };
        if declared.iter().any(|property| property.key == name) {
            continue;
        }
        let near = meant(name, declared.iter().map(|property| property.key.as_str()));
        let help = near.map_or_else(
            || format!("declare it in `properties`: `{name}: {{type: string}}`"),
            |near| format!("did you mean `{near}`?"),
        );
        let message = format!("`{name}` is required but not declared, so every call would fail");
        findings.add(Diagnostic::error("undeclared-argument", &item.span, message).help(help));
    }
}

/// Refuses arguments in the place of keywords: a validator would ignore them, and the tool would
/// have none.
fn report_misplaced(node: &Node, findings: &mut Findings<'_>) -> bool {
    if node.entry("properties").is_some() {
        return false;
    }
    let mut found = false;
    for entry in node.entries() {
        let key = entry.key.as_str();
        let is_keyword = keywords().any(|known| known == key) || key.starts_with("x-");
        if is_keyword || entry.node.entries().is_empty() || did_you_mean(key, keywords()).is_some()
        {
            continue;
        }
        found = true;
        let message = format!("JSON Schema has no keyword `{key}`; is it an argument?");
        let help = format!("declare arguments in `properties`: `properties: {{{key}: …}}`");
        findings.add(Diagnostic::error("misplaced-argument", &entry.key_span, message).help(help));
    }
    found
}

/// Checks any schema: its literals, its keywords, and that it compiles.
pub(super) fn check(
    node: &Node,
    value: Value,
    assert_formats: bool,
    findings: &mut Findings<'_>,
) -> Option<Checked> {
    check_schema_literals(node, findings);
    keywords::check(node, findings);
    let checked = Checked::new(value, assert_formats);
    checked.map_err(|(value, error)| explain(node, &value, &error, findings)).ok()
}

/// The code, severity and message of an invalid default.
const BAD_DEFAULT: (&str, Severity, &str) =
    ("bad-default", Severity::Error, "the default does not fit its own schema: ");

/// Defaults of arguments must fit the schema they stand in.
fn check_defaults(node: &Node, checked: &Checked, findings: &mut Findings<'_>) {
    let properties = node.entry("properties").map(|entry| entry.node.entries()).unwrap_or_default();
    let defaults: Vec<Entry> = properties
        .iter()
        .filter_map(|property| {
            let default = property.node.entry("default")?;
            if nulls::means_none(&property.node, &checked.value) {
                return None;
            }
            let raw = findings.text.get(default.node.span.clone()).unwrap_or_default();
            if default.node.style == Style::Plain && other_reading(raw).is_some() {
                return None; // An ambiguous value, already reported.
            }
            Some(Entry {
                key: property.key.clone(),
                key_span: default.key_span.clone(),
                node: default.node.clone(),
            })
        })
        .collect();
    for property in properties {
        subschemas(&property.node, &mut |below| check_nested(below, checked, findings));
    }
    if defaults.is_empty() {
        return;
    }
    let object = Node {
        value: NodeValue::Mapping(defaults),
        span: node.span.clone(),
        style: Style::Explicit,
    };
    // Problems of the whole object (required arguments) are not caused by defaults.
    checked.report_inside(&object.to_value(), &object, BAD_DEFAULT, findings);
}

/// Checks nested defaults, each against its schema.
fn check_nested(schema: &Node, checked: &Checked, findings: &mut Findings<'_>) {
    subschemas(schema, &mut |below| check_nested(below, checked, findings));
    let Some(default) = schema.entry("default") else { return };
    if nulls::means_none(schema, &checked.value) {
        return;
    }
    let raw = findings.text.get(default.node.span.clone()).unwrap_or_default();
    if default.node.style == Style::Plain && other_reading(raw).is_some() {
        return;
    }
    let mut own = schema.to_value();
    for shared in ["$defs", "definitions", "$schema"] {
        if let (Some(own), Some(value)) = (own.as_object_mut(), checked.value.get(shared)) {
            own.entry(shared).or_insert_with(|| value.clone());
        }
    }
    // Skip schemas that refer to other parts of the whole schema.
    let Ok(checked) = Checked::new(own, checked.assert_formats) else { return };
    let node = Node { span: default.node.visible_span(Some(default)), ..default.node.clone() };
    checked.report(&default.node.to_value(), &node, BAD_DEFAULT, findings);
}

/// Reports why a schema is invalid, at its place.
fn explain(node: &Node, schema: &Value, error: &ValidationError<'_>, findings: &mut Findings<'_>) {
    if let Ok(meta) = jsonschema::meta::validator_for(schema)
        && !meta.is_valid(schema)
    {
        let nothing = Value::Null;
        let subject = ValidatedValue {
            node,
            schema: &nothing,
            code: "bad-schema",
            severity: Severity::Error,
            prefix: "not a valid JSON Schema: ",
        };
        let (known, others): (Vec<_>, Vec<_>) = meta
            .iter_errors(schema)
            .partition(|error| slips::find(node, error, findings.text).is_some());
        for error in &known {
            findings.add_all(slips::find(node, error, findings.text));
        }
        subject.report(others, findings);
        return;
    }
    if !explain_below(node, schema, node, findings) {
        let place = first_line(findings.text, &node.span);
        let message = format!("this JSON Schema cannot be used: {error}");
        findings.add(Diagnostic::error("bad-schema", &place, message));
    }
}

/// Reports invalid patterns and dangling references.
fn explain_below(root: &Node, schema: &Value, node: &Node, findings: &mut Findings<'_>) -> bool {
    let mut found = false;
    for entry in node.entries() {
        match (entry.key.as_str(), entry.node.as_str()) {
            ("pattern", Some(pattern)) => {
                found |= explain_pattern(pattern, &entry.node.span, findings);
            }
            ("$ref" | "$dynamicRef", Some(target)) if !resolves(target, schema) => {
                found = true;
                let local = target.starts_with('#');
                let message = if local {
                    format!("the schema has nothing at `{target}`")
                } else {
                    format!("`{target}` refers to another document; nothing is fetched")
                };
                let known = root.entry("$defs").map(|defs| defs.node.entries()).unwrap_or_default();
                let known: Vec<String> =
                    known.iter().map(|def| format!("#/$defs/{}", def.key)).collect();
                let help = did_you_mean(target, known.iter().map(String::as_str));
                let help = help
                    .unwrap_or_else(|| "put it under `$defs` and write `#/$defs/name`".to_owned());
                findings.add(Diagnostic::error("bad-schema", &entry.node.span, message).help(help));
            }
            ("patternProperties", None) => {
                for named in entry.node.entries() {
                    found |= explain_pattern(&named.key, &named.key_span, findings);
                }
                found |= explain_below(root, schema, &entry.node, findings);
            }
            _ => found |= explain_below(root, schema, &entry.node, findings),
        }
        for item in entry.node.items() {
            found |= explain_below(root, schema, item, findings);
        }
    }
    found
}

fn explain_pattern(
    pattern: &str,
    place: &crate::diagnostic::position::Span,
    findings: &mut Findings<'_>,
) -> bool {
    if compile(&json!({"pattern": pattern})).is_ok() {
        return false;
    }
    findings.add(bad_pattern(pattern, place));
    true
}

/// The diagnostic for a regular expression that does not compile.
pub(super) fn bad_pattern(pattern: &str, place: &crate::diagnostic::position::Span) -> Diagnostic {
    // The last line of the compiler's text contains the problem; the others show the place.
    let reason = regex::Regex::new(pattern).err().map(|error| error.to_string());
    let reason =
        reason.as_deref().and_then(|text| text.lines().last()).unwrap_or("error: not supported");
    let reason = reason.trim().trim_start_matches("error: ").to_owned();
    let repair = look_ahead_repair(pattern);
    let diagnostic = Diagnostic::error(
        "bad-pattern",
        place,
        format!(
            "this regular expression does not compile: \
     {reason}"
        ),
    );
    if let Some(repair) = repair {
        return diagnostic.help(repair);
    }
    diagnostic.help(toolcrib_tool::pattern_repair(&reason).unwrap_or(
        "patterns run in linear time: no look-around, no back-references; in YAML, single \
         quotes keep backslashes",
    ))
}

/// What says the same as a look-ahead at the beginning that forbids some first characters: `^(?!-).*$`, `^(?![.-])`.
fn look_ahead_repair(pattern: &str) -> Option<String> {
    let (forbidden, rest) = pattern.strip_prefix("^(?!")?.split_once(')')?;
    let inner = forbidden.strip_prefix('[').and_then(|class| class.strip_suffix(']'));
    let inner = inner.unwrap_or(forbidden).trim_start_matches('\\');
    let is_plain = |one: char| !one.is_alphanumeric() && !"^[]()|*+?{}$".contains(one);
    if inner.is_empty() || !inner.chars().all(is_plain) {
        return None;
    }
    let may_be = "say what the first character may be: `^[A-Za-z0-9][A-Za-z0-9._-]*$`";
    if !rest.starts_with('.') {
        return Some(may_be.to_owned());
    }
    let class =
        if inner.contains('-') { format!("{}-", inner.replace('-', "")) } else { inner.to_owned() };
    Some(format!("{may_be}; or what it may not be: `^[^{class}]{rest}`"))
}

fn resolves(target: &str, schema: &Value) -> bool {
    match target.strip_prefix('#') {
        Some("") => true,
        Some(pointer) if pointer.starts_with('/') => schema.pointer(pointer).is_some(),
        Some(anchor) => has_anchor(schema, anchor),
        None => false,
    }
}

fn has_anchor(schema: &Value, anchor: &str) -> bool {
    match schema {
        Value::Object(object) => {
            let named = |keyword: &str| object.get(keyword).and_then(Value::as_str) == Some(anchor);
            named("$anchor")
                || named("$dynamicAnchor")
                || object.values().any(|v| has_anchor(v, anchor))
        }
        Value::Array(items) => items.iter().any(|item| has_anchor(item, anchor)),
        _ => false,
    }
}
