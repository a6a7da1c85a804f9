//! Filters of toolsets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_tool::ToolEntry;

use crate::toolset::pattern::{AnnotationPattern, Pattern, SourcePattern};

/// Matches the tools that meet all of its conditions; a list is met by any of its items. A filter
/// without conditions matches all tools.
///
/// ```
/// use toolcrib_core::{AnnotationPattern, ToolFilter};
///
/// let harmless = AnnotationPattern { read_only: Some(true), ..AnnotationPattern::default() };
/// let filter = ToolFilter::new().category("file").annotations(harmless).source("manifest:tools.d/*");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(
    description = "Takes the tools that meet every condition it states; a list is met by any of \
                   its items. In names, categories, tags and units `*` is any text and `?` any one \
                   character."
)]
#[serde(default, deny_unknown_fields)]
pub struct ToolFilter {
    /// Names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<Pattern>,
    /// Categories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    categories: Vec<Pattern>,
    /// Tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<Pattern>,
    /// Where the tools come from: a layer (host, native, manifest, upstream, fallback), a unit
    /// (crate, file or upstream name), or both as layer:unit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sources: Vec<SourcePattern>,
    /// The tools' annotations of their effects.
    #[serde(skip_serializing_if = "AnnotationPattern::is_empty")]
    annotations: AnnotationPattern,
}

impl ToolFilter {
    /// Matches all tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Matches tools by name, a [`Pattern`]. Repeated calls add alternatives.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.names.push(Pattern::new(name));
        self
    }

    /// Matches tools by category, a [`Pattern`]. Repeated calls add alternatives.
    #[must_use]
    pub fn category(mut self, category: impl Into<String>) -> Self {
        self.categories.push(Pattern::new(category));
        self
    }

    /// Matches tools by tag, a [`Pattern`]. Repeated calls add alternatives.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(Pattern::new(tag));
        self
    }

    /// Matches tools by source, a [`SourcePattern`]. Repeated calls add alternatives.
    #[must_use]
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.sources.push(SourcePattern::new(source));
        self
    }

    /// Matches tools by their annotations.
    #[must_use]
    pub fn annotations(mut self, annotations: AnnotationPattern) -> Self {
        self.annotations = annotations;
        self
    }

    /// Whether it matches the tool.
    pub fn takes(&self, entry: &ToolEntry) -> bool {
        let definition = &entry.definition;
        let met = |patterns: &[Pattern], text: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(text))
        };
        met(&self.names, definition.name())
            && met(&self.categories, definition.category())
            && (self.tags.is_empty() || definition.tags().iter().any(|tag| met(&self.tags, tag)))
            && (self.sources.is_empty()
                || self.sources.iter().any(|pattern| pattern.matches(&entry.source)))
            && self.annotations.matches(definition.annotations())
    }
}
