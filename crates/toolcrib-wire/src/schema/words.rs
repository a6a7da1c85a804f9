//! Describes keywords that a target lacks in the description.

use serde_json::Value;
use toolcrib_tool::canonical_json;

use super::Object;
use crate::report::Walk;

/// Longer values are omitted to keep the description readable.
const MAX_CHARS: usize = 200;

/// Adds `(keyword: value, …)` to the description of a converted schema, so that the model still learns of it.
/// Validation of the call enforces it in any case.
pub(crate) fn restate(converted: &mut Object, dropped: &[(&str, &Value)], walk: &mut Walk) {
    let mut words = Vec::new();
    for (keyword, value) in dropped {
        let text = canonical_json(value);
        if text.chars().count() <= MAX_CHARS {
            walk.restate(format!("`{keyword}` is moved to the description"));
            words.push(format!("{keyword}: {text}"));
        } else {
            walk.note(format!("`{keyword}` is left out"));
        }
    }
    if words.is_empty() {
        return;
    }
    let words = format!("({})", words.join(", "));
    let text = match converted.get("description").and_then(Value::as_str) {
        Some(text) if !text.is_empty() => format!("{text} {words}"),
        _ => words,
    };
    converted.insert("description".to_owned(), text.into());
}
