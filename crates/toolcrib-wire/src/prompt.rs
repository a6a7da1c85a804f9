//! Describes tools as text for models without tool support.

use std::borrow::Borrow;
use std::fmt::Write as _;

use toolcrib_tool::{ToolDefinition, canonical_json};

use crate::parameters::parameters;

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

/// Like [`prompt_text`], with a line of the host's below the description of some tools, for example that one often
/// fails.
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
    let parameters = parameters(definition);
    if parameters.is_empty() {
        text.push_str("  none\n");
    }
    for parameter in parameters {
        let need = if parameter.required { "required" } else { "optional" };
        let _ = write!(text, "  - {}: {} ({need})", one_line(&parameter.name), parameter.types);
        if let Some(description) = &parameter.description {
            let _ = write!(text, " - {}", one_line(description));
        }
        text.push('\n');
        for (label, values) in
            [("Allowed values", &parameter.allowed), ("Examples", &parameter.examples)]
        {
            if !values.is_empty() {
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

/// Text on a single line, so that no description can look like another tool.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text on several lines, none of which can look like one of our headings.
fn indented(text: &str) -> String {
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n  ")
}
