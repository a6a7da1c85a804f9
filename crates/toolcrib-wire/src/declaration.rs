//! A tool to export: a definition of ours, or a foreign one that follows none of our rules.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_tool::{Annotations, ToolDefinition, canonical_json};

/// A tool as a provider sees it.
///
/// Made from a [`ToolDefinition`], or from a foreign `(name, description, input_schema)`: such a name may contain any
/// characters, and such a schema may follow any draft.
///
/// ```
/// use serde_json::json;
/// use toolcrib_wire::{Target, export};
///
/// let schema = json!({"type": "object", "properties": {}});
/// let export = export([("say hello", "Greets.", &schema)], Target::OpenAiChat);
/// assert_eq!(export.tools[0]["function"]["name"], "say_hello");
/// assert_eq!(export.names.from_provider("say_hello"), Some("say hello"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Declaration<'a> {
    pub(crate) name: &'a str,
    pub(crate) title: Option<&'a str>,
    pub(crate) description: &'a str,
    pub(crate) input_schema: &'a Value,
    pub(crate) output_schema: Option<&'a Value>,
    pub(crate) input_examples: &'a [Value],
    pub(crate) annotations: Option<Annotations>,
}

impl<'a> Declaration<'a> {
    /// A tool of that name; an empty description means none.
    pub fn new(name: &'a str, description: &'a str, input_schema: &'a Value) -> Self {
        Self {
            name,
            title: None,
            description,
            input_schema,
            output_schema: None,
            input_examples: &[],
            annotations: None,
        }
    }

    /// Everything but the name and the description as one text, which is equal for equal declarations.
    pub(crate) fn rest(&self) -> String {
        let hints = self
            .annotations
            .map(|hints| [hints.read_only, hints.destructive, hints.idempotent, hints.open_world]);
        canonical_json(&json!([
            self.input_schema,
            self.title,
            self.output_schema,
            self.input_examples,
            hints
        ]))
    }

    /// The tool's original name.
    pub fn name(&self) -> &'a str {
        self.name
    }
}

impl<'a> From<(&'a str, &'a str, &'a Value)> for Declaration<'a> {
    fn from((name, description, input_schema): (&'a str, &'a str, &'a Value)) -> Self {
        Self::new(name, description, input_schema)
    }
}

impl<'a> From<&'a ToolDefinition> for Declaration<'a> {
    fn from(definition: &'a ToolDefinition) -> Self {
        Self {
            title: definition.title(),
            output_schema: definition.output_schema(),
            input_examples: definition.input_examples(),
            annotations: Some(definition.annotations()),
            ..Self::new(definition.name(), definition.description(), definition.input_schema())
        }
    }
}

impl<'a> From<&'a Arc<ToolDefinition>> for Declaration<'a> {
    fn from(definition: &'a Arc<ToolDefinition>) -> Self {
        Self::from(&**definition)
    }
}
