//! The keywords of JSON Schema, keywords without effect on a type, and words of other schema
//! languages.

use crate::diagnostic::fix::rename;
use crate::diagnostic::{Diagnostic, Findings, did_you_mean};
use crate::document::{Entry, Node, NodeValue};
use crate::words::Words;

/// Keywords whose value is a schema, or a list of schemas.
static SCHEMA_KEYWORDS: Words = Words::of(
    "items additionalProperties additionalItems not if then else contains propertyNames \
     unevaluatedItems unevaluatedProperties contentSchema allOf anyOf oneOf prefixItems",
);
/// Keywords whose value maps names to schemas.
static SCHEMA_MAP_KEYWORDS: Words =
    Words::of("properties patternProperties $defs definitions dependentSchemas");
/// All other keywords of the drafts in use.
static OTHER_KEYWORDS: Words = Words::of(
    "$schema $id $ref $anchor $dynamicRef $dynamicAnchor $vocabulary $comment type enum const \
     multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern \
     maxItems minItems uniqueItems maxContains minContains maxProperties minProperties required \
     dependentRequired dependencies title description default deprecated readOnly writeOnly \
     examples format contentMediaType contentEncoding $recursiveRef $recursiveAnchor id example",
);
/// Words of other schema languages, and what to write here for values of any type.
const FOREIGN: &[(&str, &str)] = &[
    ("regex", "write `pattern`"),
    ("regexp", "write `pattern`"),
    ("match", "write `pattern`"),
    ("matches", "write `pattern`"),
    ("values", "write `enum: [first, second]`"),
    ("choices", "write `enum: [first, second]`"),
    ("options", "write `enum: [first, second]`"),
    ("allowed", "write `enum: [first, second]`"),
    ("allowed_values", "write `enum: [first, second]`"),
    ("one_of", "write `enum: [first, second]` for values, `oneOf` for schemas"),
    (
        "nullable",
        "remove it: an argument that is not in `required` may be absent; where null is a value of \
         its own, write `type: [string, \"null\"]`",
    ),
    ("optional", "remove it: arguments that `required` does not name are optional"),
    ("mandatory", "write the name into `required: […]` beside `properties`"),
    ("between", "write `minimum` and `maximum`"),
    ("range", "write `minimum` and `maximum`"),
    ("desc", "write `description`"),
    ("doc", "write `description`"),
    ("help", "write `description`"),
    ("defaultValue", "write `default`"),
    ("default_value", "write `default`"),
    ("allow_empty", "write `minLength: 1` where a text must not be empty"),
    ("length", "write `minLength` and `maxLength`"),
    ("array", "write `type: array` and `items: {type: …}`"),
    ("multiple", "write `type: array` and `items: {type: …}`"),
    ("repeated", "write `type: array` and `items: {type: …}`"),
    ("unique", "write `uniqueItems: true`"),
    ("fields", "write `properties`"),
];

/// Words for a bound, with the keyword for numbers, texts, lists and mappings.
const BOUNDS: [(&[&str], [&str; 4]); 2] = [
    (
        &[
            "min",
            "minLen",
            "minlen",
            "min_len",
            "min_length",
            "minSize",
            "min_items",
            "gte",
            "ge",
            "greaterThan",
        ],
        ["minimum", "minLength", "minItems", "minProperties"],
    ),
    (
        &[
            "max",
            "maxLen",
            "maxlen",
            "max_len",
            "max_length",
            "maxSize",
            "max_items",
            "lte",
            "le",
            "lessThan",
        ],
        ["maximum", "maxLength", "maxItems", "maxProperties"],
    ),
];

/// The types that a keyword affects; other keywords affect all types. `format` is not listed,
/// because other systems have formats of numbers.
const ABOUT: &[(&[&str], &[&str])] = &[
    (
        &["integer", "number"],
        &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
    ),
    (&["string"], &["minLength", "maxLength", "pattern"]),
    (&["array"], &["items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"]),
    (
        &["object"],
        &[
            "properties",
            "patternProperties",
            "additionalProperties",
            "minProperties",
            "maxProperties",
            "propertyNames",
        ],
    ),
];

/// Every keyword of the drafts in use.
pub(super) fn all() -> impl Iterator<Item = &'static str> {
    SCHEMA_KEYWORDS.iter().chain(SCHEMA_MAP_KEYWORDS.iter()).chain(OTHER_KEYWORDS.iter())
}

/// Calls `each` with every schema directly inside a schema.
pub(crate) fn subschemas<'n>(schema: &'n Node, each: &mut dyn FnMut(&'n Node)) {
    for entry in schema.entries() {
        let key = entry.key.as_str();
        if SCHEMA_KEYWORDS.contains(key) {
            if entry.node.items().is_empty() {
                each(&entry.node);
            }
            entry.node.items().iter().for_each(&mut *each);
        } else if SCHEMA_MAP_KEYWORDS.contains(key) {
            entry.node.entries().iter().for_each(|named| each(&named.node));
        }
    }
}

/// Whether a keyword's value is a schema, or a list of schemas.
pub(super) fn has_schemas(key: &str) -> bool {
    SCHEMA_KEYWORDS.contains(key)
}

/// Whether a keyword's value maps names to schemas.
pub(super) fn maps_to_schemas(key: &str) -> bool {
    SCHEMA_MAP_KEYWORDS.contains(key)
}

/// Whether a keyword's value is a schema, and not a list or a mapping of them.
pub(super) fn holds_schema(key: &str) -> bool {
    SCHEMA_KEYWORDS.contains(key) && !["allOf", "anyOf", "oneOf", "prefixItems"].contains(&key)
}

/// Warns about keywords without effect: unknown ones, and those for values of another type.
pub(super) fn check(node: &Node, findings: &mut Findings<'_>) {
    for entry in node.entries() {
        let key = entry.key.as_str();
        if all().any(|known| known == key) {
            check_idle(node, entry, findings);
        } else if !key.starts_with("x-") {
            findings.add_all(unknown(node, entry));
        }
    }
    subschemas(node, &mut |below| check(below, findings));
}

/// The diagnostic for an unknown keyword, if there is a suggestion.
fn unknown(node: &Node, entry: &Entry) -> Option<Diagnostic> {
    let key = entry.key.as_str();
    let foreign = FOREIGN.iter().find(|(word, _)| *word == key).map(|(_, help)| (*help).to_owned());
    let bound = || {
        let (_, keywords) = BOUNDS.iter().find(|(words, _)| words.contains(&key))?;
        let at = ["string", "array", "object"].iter().position(|kind| has_type(node, kind));
        Some(format!("write `{}`", keywords[at.map_or(0, |at| at + 1)]))
    };
    let help = foreign.or_else(bound).or_else(|| did_you_mean(key, all()))?;
    let message = format!("JSON Schema has no keyword `{key}`, so it has no effect");
    // Only another case is certainly a mistake.
    let known: Vec<_> = all().filter(|name| name.eq_ignore_ascii_case(key)).collect();
    let fix = rename("a schema", entry, node.entries(), &known, |_| true);
    Some(Diagnostic::warning("unknown-keyword", &entry.key_span, message).help(help).fix(fix))
}

/// Warns about a keyword for values of another type.
fn check_idle(node: &Node, entry: &Entry, findings: &mut Findings<'_>) {
    let key = entry.key.as_str();
    let Some((about, _)) = ABOUT.iter().find(|(_, keywords)| keywords.contains(&key)) else {
        return;
    };
    let Some(kind) = node.entry("type").and_then(|kind| kind.node.as_str()) else { return };
    let known = ABOUT.iter().any(|(types, _)| types.contains(&kind)) || kind == "boolean";
    if !known || about.contains(&kind) {
        return;
    }
    let meant = BOUNDS.iter().find_map(|(_, keywords)| {
        keywords.contains(&key).then_some(())?;
        let at = [&["integer", "number"][..], &["string"], &["array"], &["object"]];
        keywords.get(at.iter().position(|types| types.contains(&kind))?)
    });
    let help = meant.map_or_else(
        || "remove it, or correct `type`".to_owned(),
        |meant| format!("write `{meant}`, or correct `type`"),
    );
    let message = format!("`{key}` has no effect on values of the type {kind}");
    findings.add(Diagnostic::warning("idle-keyword", &entry.key_span, message).help(help));
}

fn has_type(node: &Node, kind: &str) -> bool {
    node.entry("type").is_some_and(|entry| match &entry.node.value {
        NodeValue::String(name) => name == kind,
        NodeValue::Sequence(names) => names.iter().any(|name| name.as_str() == Some(kind)),
        _ => false,
    })
}
