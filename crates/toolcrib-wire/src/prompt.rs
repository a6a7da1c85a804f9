//! Tools as a text for models that know no tools.

use std::borrow::Borrow;
use std::fmt::Write as _;

use serde_json::Value;
use toolcrib_tool::{ToolDefinition, canonical_json};

use crate::report::Walk;
use crate::schema::kinds::kinds;
use crate::schema::reference::resolve;
use crate::schema::shape::{Shape, shape};
use crate::schema::tidy::input_schema;
use crate::schema::{Object, required, sorted};

/// Unions inside unions that are still spelled out.
const MAX_DEPTH: usize = 4;

/// The tools as text, sorted by name; empty for no tools.
///
/// ```
/// use serde_json::json;
/// use toolcrib_tool::ToolDefinition;
/// use toolcrib_wire::prompt_text;
///
/// let weather = ToolDefinition::builder("get_weather")
///     .title("Weather")
///     .category("weather")
///     .description("Tells the weather.")
///     .input_schema(json!({
///         "properties": {
///             "city": {"type": "string", "description": "Where.", "examples": ["Graz"]},
///             "unit": {"enum": ["C", "F"]},
///         },
///         "required": ["city"],
///     }))
///     .build()?;
/// assert_eq!(
///     prompt_text([&weather]),
///     "\
/// ## Available Tools
///
/// You have access to the following 1 tool(s):
///
/// ### get_weather
/// Display Name: Weather
/// Category: weather
/// Description: Tells the weather.
///
/// Parameters:
///   - city: string (required) - Where.
///     Examples: \"Graz\"
///   - unit: string (optional)
///     Allowed values: \"C\", \"F\"
/// ",
/// );
/// # Ok::<(), toolcrib_tool::DefinitionError>(())
/// ```
pub fn prompt_text<D: Borrow<ToolDefinition>>(definitions: impl IntoIterator<Item = D>) -> String {
    prompt_text_with_notes(definitions, |_| None)
}

/// As [`prompt_text`], with a line of the host's under the description of some tools: what it knows
/// of them from elsewhere, for example that one often fails.
///
/// ```
/// use toolcrib_tool::ToolDefinition;
/// use toolcrib_wire::prompt_text_with_notes;
///
/// let fetch = ToolDefinition::builder("fetch").description("Fetches a page.").build()?;
/// let text = prompt_text_with_notes([&fetch], |tool| {
///     (tool.name() == "fetch").then(|| "fails often: 6 of 10 runs".to_owned())
/// });
/// assert!(text.contains("Description: Fetches a page.\nNote: fails often: 6 of 10 runs\n"));
/// # Ok::<(), toolcrib_tool::DefinitionError>(())
/// ```
pub fn prompt_text_with_notes<D: Borrow<ToolDefinition>>(
    definitions: impl IntoIterator<Item = D>,
    note: impl Fn(&ToolDefinition) -> Option<String>,
) -> String {
    let mut definitions: Vec<D> = definitions.into_iter().collect();
    if definitions.is_empty() {
        return String::new();
    }
    definitions.sort_by(|left, right| left.borrow().name().cmp(right.borrow().name()));
    let mut text = format!(
        "# Available Tools\n\nYou have access to the following {} tool(s):\n",
        definitions.len()
    );
    for definition in &definitions {
        let definition = definition.borrow();
        tool(definition, note(definition).as_deref(), &mut text);
    }
    text
}

fn tool(definition: &ToolDefinition, note: Option<&str>, text: &mut String) {
    let name = definition.name();
    // Writing to a `String` cannot fail.
    let _ = write!(
        text,
        "\n## {name}\nDisplay Name: {}\nCategory: {}\nDescription: {}\n",
        one_line(definition.title().unwrap_or(name)),
        one_line(definition.category()),
        indented(definition.description().trim()),
    );
    if let Some(note) = note {
        let _ = writeln!(text, "Note: {}", one_line(note));
    }
    text.push_str("\nParameters:\n");
    let root = input_schema(definition.input_schema(), &mut Walk::default());
    let root = root.as_ref().unwrap_or(definition.input_schema());
    let parameters = object_shape(root).unwrap_or_default();
    let mut walk = Walk::default();
    let required = required(&parameters);
    let properties = parameters.get("properties").and_then(Value::as_object);
    if properties.is_none_or(Object::is_empty) {
        text.push_str("  none\n");
    }
    for (key, property) in properties.map(sorted).unwrap_or_default() {
        let need = if required.contains(&key) { "required" } else { "optional" };
        let mut line =
            format!("  - {}: {} ({need})", one_line(key), type_words(property, root, 0, &mut walk));
        if let Some(description) = word(property, root, "description") {
            let _ = write!(line, " - {}", one_line(description.as_str().unwrap_or_default()));
        }
        text.push_str(&line);
        text.push('\n');
        for (label, values) in [
            ("Allowed values", allowed(property, root)),
            ("Examples", word(property, root, "examples").and_then(Value::as_array).cloned()),
        ] {
            if let Some(values) = values.filter(|values| !values.is_empty()) {
                let values: Vec<String> = values.iter().map(canonical_json).collect();
                let _ = writeln!(text, "    {label}: {}", values.join(", "));
            }
        }
    }
    if !definition.input_examples().is_empty() {
        text.push_str("\nExamples:\n");
        for example in definition.input_examples() {
            let _ = writeln!(text, "  {}", canonical_json(example));
        }
    }
}

/// The keywords of the root, references and `allOf` written out.
fn object_shape(root: &Value) -> Option<Object> {
    match shape(root, root, &mut Walk::default()) {
        Ok(Shape::Plain(object)) => Some(object),
        Ok(Shape::Reference { reference, .. }) => resolve(root, &reference)?.as_object().cloned(),
        // A root that is a choice still names its own properties.
        _ => root.as_object().cloned(),
    }
}

/// A property's types, for example `string`, `array of integer` or `string or null`.
fn type_words(schema: &Value, root: &Value, depth: usize, walk: &mut Walk) -> String {
    let any = || "any".to_owned();
    if depth > MAX_DEPTH {
        return any();
    }
    match shape(schema, root, walk) {
        Ok(Shape::Plain(object)) => {
            let words: Vec<String> = kinds(&object)
                .into_iter()
                .map(|kind| match object.get("items") {
                    Some(items) if kind == "array" => {
                        format!("array of {}", type_words(items, root, depth + 1, walk))
                    }
                    _ => kind,
                })
                .collect();
            if words.is_empty() { any() } else { words.join(" or ") }
        }
        Ok(Shape::Reference { reference, .. }) => resolve(root, &reference)
            .map_or_else(any, |target| type_words(target, root, depth + 1, walk)),
        Ok(Shape::Union { branches, .. }) => {
            let mut words: Vec<String> = Vec::new();
            for branch in &branches {
                let word = type_words(branch, root, depth + 1, walk);
                if !words.contains(&word) {
                    words.push(word);
                }
            }
            words.join(" or ")
        }
        Ok(Shape::Bool(_)) | Err(_) => any(),
    }
}

/// A keyword of the property, or of what it refers to.
fn word<'a>(property: &'a Value, root: &'a Value, keyword: &str) -> Option<&'a Value> {
    property.get(keyword).or_else(|| {
        let reference = property.get("$ref").and_then(Value::as_str)?;
        resolve(root, reference)?.get(keyword)
    })
}

fn allowed(property: &Value, root: &Value) -> Option<Vec<Value>> {
    let options = word(property, root, "enum").and_then(Value::as_array).cloned();
    options.or_else(|| word(property, root, "const").map(|only| vec![only.clone()]))
}

/// Text that stays in its line, so that no description can pass for a tool.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text of several lines, none of which can pass for a heading of ours.
fn indented(text: &str) -> String {
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n  ")
}
