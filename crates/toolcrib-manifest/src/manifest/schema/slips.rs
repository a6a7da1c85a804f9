//! Common mistakes in schemas, with better messages than "does not fit the metaschema".

use jsonschema::ValidationError;

use super::keywords;
use crate::diagnostic::fix::Fix;
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::document::{Entry, Node, NodeValue, shortened};

const TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "array", "object", "null"];

/// Types of other languages, each with its keyword in JSON Schema.
const OTHER_TYPES: &[(&str, &[&str])] = &[
    ("string", &["str", "text", "char", "varchar", "path", "file", "secret", "password"]),
    ("integer", &["int", "long", "int32", "int64", "uint", "number_int"]),
    ("boolean", &["bool", "flag"]),
    ("number", &["float", "double", "decimal", "numeric"]),
    ("array", &["list", "tuple", "set"]),
    ("object", &["dict", "map", "mapping", "struct", "json"]),
    ("null", &["none", "nil"]),
];

/// Types of other languages that are texts with a format in JSON Schema.
const FORMATS: &[(&str, &[&str])] = &[
    ("date-time", &["datetime", "date-time", "date_time", "timestamp", "time_stamp"]),
    ("date", &["date"]),
    ("time", &["time"]),
    ("uuid", &["uuid", "guid"]),
    ("email", &["email", "mail"]),
    ("uri", &["uri", "url"]),
    ("ipv4", &["ip", "ipv4"]),
    ("ipv6", &["ipv6"]),
    ("hostname", &["hostname", "host"]),
];

fn word(written: &str, table: &[(&'static str, &[&str])]) -> Option<&'static str> {
    let written = written.to_ascii_lowercase();
    table.iter().find(|(_, words)| words.contains(&written.as_str())).map(|(word, _)| *word)
}

/// The schema of a type by its name, here or in another language: `{type: string}`.
fn schema_of(written: &str) -> Option<String> {
    let name = TYPES.into_iter().find(|name| *name == written).or(word(written, OTHER_TYPES));
    let format = word(written, FORMATS);
    name.map(|name| format!("{{type: {name}}}"))
        .or_else(|| format.map(|format| format!("{{type: string, format: {format}}}")))
}

/// The diagnostic for a common mistake.
pub(super) fn find(root: &Node, error: &ValidationError<'_>, text: &str) -> Option<Diagnostic> {
    let pointer = error.instance_path().as_str();
    let (node, entry) = root.at_pointer(pointer);
    let mut above = pointer.rsplit('/').skip(1);
    let (owner, name) = (above.next().unwrap_or_default(), above.next());
    let raw = text.get(node.span.clone()).unwrap_or_default();
    let Some(entry) = entry else { return of_item(node, pointer) };
    if owner == "properties" {
        return misplaced(node, entry, raw);
    }
    let place = node.visible_span(Some(entry));
    // The content of `default` and `enum` is a value, whatever its keys are.
    match (entry.key.as_str(), &node.value) {
        ("type", NodeValue::String(written)) => Some(unknown_type(node, entry, written)),
        ("required", NodeValue::Bool(_)) => {
            let message = "`required` is a list of names beside `properties`, not a flag";
            let owner = if name == Some("properties") { owner } else { "name" };
            let help = format!("write `required: [{owner}]` beside `properties`");
            let span = entry.key_span.start..place.end;
            Some(Diagnostic::error("bad-schema", &span, message).help(help))
        }
        ("required", NodeValue::String(written)) => {
            let names = names(written);
            let message = "`required` is a list of names";
            Some(
                Diagnostic::error("bad-schema", &place, message)
                    .help(format!("write `required: [{names}]`")),
            )
        }
        ("enum", NodeValue::String(written)) => Some(
            Diagnostic::error("bad-schema", &place, "`enum` is a list of values")
                .help(format!("write `enum: [{}]`", names(written))),
        ),
        ("enum", NodeValue::Mapping(entries)) => {
            let values: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
            let help = format!("write `enum: [{}]`", shortened(&values.join(", ")));
            let message = "`enum` is a list of values, but braces make a mapping";
            Some(Diagnostic::error("bad-schema", &place, message).help(help))
        }
        (key, NodeValue::String(written)) if keywords::holds_schema(key) => {
            Some(text_for_schema(key, node, entry, written))
        }
        (_, NodeValue::String(written)) if written.parse::<f64>().is_ok() => {
            let message = format!("`{}` expects a number, found a text", entry.key);
            let help = format!("write it without quotes: `{}: {written}`", entry.key);
            let fix = Fix::replace(&place, written.as_str(), format!("unquote `{written}`"));
            Some(Diagnostic::error("bad-schema", &place, message).help(help).fix(fix))
        }
        ("examples", NodeValue::String(_) | NodeValue::Number(_) | NodeValue::Bool(_)) => Some(
            Diagnostic::error("bad-schema", &place, "`examples` is a list of values")
                .help(format!("write `examples: [{}]`", shortened(raw))),
        ),
        ("exclusiveMinimum" | "exclusiveMaximum", NodeValue::Bool(_)) => {
            let bound = entry.key.trim_start_matches("exclusive").to_ascii_lowercase();
            let message = format!("`{}` is the bound itself, not a flag", entry.key);
            let help = format!("write the number that `{bound}` has here, and remove `{bound}`");
            Some(Diagnostic::error("bad-schema", &place, message).help(help))
        }
        _ => None,
    }
}

/// A mistake in an item of a list: `type: [string, null]`.
fn of_item(node: &Node, pointer: &str) -> Option<Diagnostic> {
    let list = pointer.rsplit('/').nth(1)?;
    (list == "type" && node.value == NodeValue::Null).then(|| {
        let message = "`null` without quotes is the null value, but a type is a name";
        Diagnostic::error("bad-schema", &node.span, message)
            .help("quote it: \"null\"; an argument that may only be absent needs no null")
            .fix(Fix::replace(&node.span, "\"null\"", "quote `null`"))
    })
}

/// A property that is not a schema.
fn misplaced(node: &Node, entry: &Entry, raw: &str) -> Option<Diagnostic> {
    let key = entry.key.as_str();
    if matches!(node.value, NodeValue::Mapping(_)) {
        return None;
    }
    if keywords::all().any(|known| known == key) && schema_of(raw).is_none_or(|_| key == "type") {
        let message = format!("`{key}` is a keyword for all arguments, but here it is one of them");
        let help =
            format!("write it beside `properties`, not inside: indent `{key}` as `properties`");
        return Some(Diagnostic::error("bad-schema", &entry.key_span, message).help(help));
    }
    let message = format!("the argument `{key}` needs a schema, found {}", node.describe());
    let help = match node.as_str().and_then(schema_of) {
        Some(schema) => format!("write `{key}: {schema}`"),
        None if node.value == NodeValue::Null => format!("write `{key}: {{}}` for any value"),
        None => format!("write `{key}: {{type: string}}`, with the type that is meant"),
    };
    let place = node.visible_span(Some(entry));
    Some(Diagnostic::error("bad-schema", &place, message).help(help))
}

/// A text in the place of a schema.
fn text_for_schema(key: &str, node: &Node, entry: &Entry, written: &str) -> Diagnostic {
    let place = node.visible_span(Some(entry));
    let message = format!("`{key}` expects a schema, found the text `{}`", shortened(written));
    let flag = matches!(written.to_ascii_lowercase().as_str(), "no" | "false" | "off" | "none");
    let help = match schema_of(written) {
        _ if flag && key == "additionalProperties" => format!("write `{key}: false`"),
        Some(schema) => format!("write `{key}: {schema}`"),
        None => format!("write `{key}: {{type: string}}`, with the type that is meant"),
    };
    Diagnostic::error("bad-schema", &place, message).help(help)
}

fn unknown_type(node: &Node, entry: &Entry, written: &str) -> Diagnostic {
    let place = node.visible_span(Some(entry));
    let message = format!("JSON Schema has no type `{written}`");
    if let Some(format) = word(written, FORMATS) {
        return Diagnostic::error("bad-schema", &place, message)
            .help(format!("write `type: string, format: {format}`"));
    }
    if written == "any" {
        return Diagnostic::error("bad-schema", &place, message)
            .help("remove `type`: a schema without it takes values of every type");
    }
    if written == "enum" {
        return Diagnostic::error("bad-schema", &place, message)
            .help("remove `type`, and write `enum: [first, second]`");
    }
    let meant = word(written, OTHER_TYPES);
    let help = meant.map(|name| format!("did you mean `{name}`?"));
    let help = help
        .or_else(|| did_you_mean(written, TYPES))
        .unwrap_or_else(|| format!("types are {}", TYPES.join(", ")));
    let fix = meant.map(|name| Fix::replace(&place, name, format!("write `type: {name}`")));
    Diagnostic::error("bad-schema", &place, message).help(help).fix(fix)
}

/// The names in a text with commas, as items of a list.
fn names(written: &str) -> String {
    let names: Vec<&str> =
        written.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    shortened(&names.join(", "))
}
