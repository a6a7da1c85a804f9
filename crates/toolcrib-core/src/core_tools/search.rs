//! Tools by words: what is searched of a definition, and what is found.

use std::sync::Arc;

use serde_json::Value;
use toolcrib_search::{Document, Parameter, Searchable};
pub use toolcrib_search::{Field, Match};
use toolcrib_tool::ToolDefinition;

/// A tool that a question's words fit.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct FoundTool<'t> {
    /// Its definition.
    pub definition: &'t Arc<ToolDefinition>,
    /// How well it fits, from 0 to 1; of use only beside the others of its search.
    pub score: f32,
}

/// The words of a definition: its name, title, category, tags, description, and the names and
/// descriptions of the parameters that a caller gives.
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
