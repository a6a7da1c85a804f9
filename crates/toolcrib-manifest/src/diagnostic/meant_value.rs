//! Suggestions for values of a config file that its schema refuses.

use regex::Regex;
use serde_json::Value;

use crate::document::{Node, NodeValue, shortened};
use crate::fields::{boolean_meant, duration, list_of, rate, size};

/// Values of choices: ours, and words that people write instead.
const CHOICES: &[(&str, &[&str])] = &[
    ("enforce", &["true", "yes", "on", "strict", "enforced", "required"]),
    ("off", &["false", "no", "none", "never", "disabled"]),
    ("deny", &["block", "blocked", "reject", "refuse", "forbid", "forbidden"]),
    ("allow", &["permit", "accept", "grant", "auto"]),
    ("wait", &["ask", "prompt", "confirm", "hold", "manual"]),
    ("chat", &["openai", "openai-compatible", "ollama", "vllm", "llama", "completions", "local"]),
    ("anthropic", &["claude", "messages"]),
    ("ask", &["confirm", "prompt", "approve", "approval", "manual"]),
];

/// The value of a choice for which other programs use another word.
pub(super) fn choice(node: &Node, allowed: &[String]) -> Option<String> {
    let written = plain(node)?.to_ascii_lowercase();
    let is_allowed = |word: &str| allowed.iter().any(|allowed| allowed == word);
    let (word, _) = CHOICES
        .iter()
        .find(|(word, others)| is_allowed(word) && others.contains(&written.as_str()))?;
    Some(format!("write `{word}`"))
}

/// A suggestion for a value that a schema refuses, if there is one.
pub(super) fn help(key: &str, schema: &Value, node: &Node) -> Option<String> {
    let kinds = kinds(schema);
    let takes = |kind: &str| kinds.contains(&kind);
    let pattern = schema.get("pattern").and_then(Value::as_str);
    let pattern = pattern.and_then(|pattern| Regex::new(pattern).ok());
    let fits = |text: &str| pattern.as_ref().is_none_or(|pattern| pattern.is_match(text));
    if node.value == NodeValue::Null {
        let unlimited =
            if pattern.is_some() && fits("none") { ", `none` for no limit," } else { "," };
        return Some(format!(
            "write a value{unlimited} or delete the line, which leaves the default"
        ));
    }
    if let NodeValue::Sequence(names) = &node.value {
        // A toolset, of which people write the names alone.
        let includes = schema.pointer("/properties/include").is_some();
        let names = list_of(names.iter().filter_map(Node::as_str));
        return (includes && takes("object"))
            .then(|| format!("write `{key}: {{include: [{{names: [{names}]}}]}}`"));
    }
    let written = plain(node)?;
    if takes("boolean") && !takes("string") {
        return boolean_meant(&written).map(|meant| format!("write `{meant}`"));
    }
    if takes("array") && !takes("string") {
        let item = match node.value {
            NodeValue::String(_) => list_of(std::iter::once(written.as_str())),
            _ => shortened(&written),
        };
        return Some(format!("write a list: `[{item}]`"));
    }
    if !takes("string") {
        return None;
    }
    if key == "listen" && written.parse::<u16>().is_ok() {
        return Some(format!("write an address with the port: `127.0.0.1:{written}`"));
    }
    if pattern.is_none() {
        let is_text = matches!(node.value, NodeValue::String(_));
        return (!is_text).then(|| format!("quote it: \"{}\"", shortened(&written)));
    }
    if is_zero(&written)
        && let Some(repair) = instead_of_zero(schema, fits)
    {
        return Some(repair);
    }
    let measures = [duration(&written), size(&written), rate(&written)];
    let meant = measures.into_iter().flatten().find(|meant| fits(meant))?;
    Some(format!("write `{meant}`"))
}

/// Whether a measure is zero, with or without a unit.
fn is_zero(written: &str) -> bool {
    let unit = written.trim_start_matches('0').trim_start_matches(' ');
    unit.len() < written.len() && unit.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// What to write where zero is not allowed.
fn instead_of_zero(schema: &Value, fits: impl Fn(&str) -> bool) -> Option<String> {
    if ["0s", "0B"].into_iter().any(&fits) {
        return None;
    }
    if let Some(own) = schema.get("x-zero").and_then(Value::as_str) {
        return Some(own.to_owned());
    }
    let least = ["1s", "1B"].into_iter().find(|least| fits(least))?;
    let unlimited = if fits("none") { "`none` for no limit, or " } else { "" };
    Some(format!("write {unlimited}at least `{least}`"))
}

/// The types that a schema allows.
fn kinds(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// A scalar as it was written.
fn plain(node: &Node) -> Option<String> {
    match &node.value {
        NodeValue::String(text) => Some(text.clone()),
        NodeValue::Number(number) => Some(number.to_string()),
        NodeValue::Bool(value) => Some(value.to_string()),
        NodeValue::Null | NodeValue::Sequence(_) | NodeValue::Mapping(_) => None,
    }
}
