//! Searching tools by words.

use std::sync::Arc;

use serde_json::Value;
use toolcrib_search::{Document, Parameter, Searchable};
pub use toolcrib_search::{Field, Match};
use toolcrib_tool::ToolDefinition;

/// A search result.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct FoundTool<'t> {
    /// Its definition.
    pub definition: &'t Arc<ToolDefinition>,
    /// The score from 0 to 1, comparable only within one search.
    pub score: f32,
}

/// The searchable words of a definition: name, title, category, tags, description, and the names
/// and descriptions of its parameters.
pub(crate) fn document(definition: &ToolDefinition) -> Document {
    let properties = definition.input_schema().get("properties").and_then(Value::as_object);
    let tags = definition.tags().iter().map(String::as_str);
    Document::of(&Searchable {
        name: definition.name(),
        title: definition.title().unwrap_or_default(),
        tags: std::iter::once(definition.category()).chain(tags).collect(),
        description: definition.description(),
        parameters: properties.into_iter().flatten().map(parameter).collect(),
    })
}

fn parameter<'s>((name, schema): (&'s String, &'s Value)) -> Parameter<'s> {
    let description = schema.get("description").and_then(Value::as_str);
    Parameter { name, description: description.unwrap_or_default() }
}
