//! One condition of a toolset.

use serde::Deserialize;
use toolcrib_tool::{Annotations, Source, ToolEntry};

use super::pattern::{Pattern, fits};

/// Takes the tools that meet every condition it states; a list is met by any of its items. A filter
/// without conditions takes all.
///
/// ```
/// use toolcrib_core::{AnnotationFilter, ToolFilter};
///
/// let harmless = AnnotationFilter { read_only: Some(true), ..AnnotationFilter::default() };
/// let filter = ToolFilter::new().category("file").annotations(harmless).source("manifest:tools.d/*");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolFilter {
    names: Vec<Pattern>,
    categories: Vec<Pattern>,
    tags: Vec<Pattern>,
    sources: Vec<Pattern>,
    annotations: AnnotationFilter,
}

/// Conditions on a tool's annotations; `None` is met by either.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnnotationFilter {
    /// Whether the call changes nothing.
    pub read_only: Option<bool>,
    /// Whether the call may destroy something; one that is read-only cannot.
    pub destructive: Option<bool>,
    /// Whether calling twice has no further effect.
    pub idempotent: Option<bool>,
    /// Whether the call reaches things outside the host's control.
    pub open_world: Option<bool>,
}

impl ToolFilter {
    /// Takes all tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes tools of this name, a [`Pattern`]. Given again: of either.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.names.push(Pattern::new(name));
        self
    }

    /// Takes tools of this category, a [`Pattern`]. Given again: of either.
    #[must_use]
    pub fn category(mut self, category: impl Into<String>) -> Self {
        self.categories.push(Pattern::new(category));
        self
    }

    /// Takes tools with this tag, a [`Pattern`]. Given again: with either.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(Pattern::new(tag));
        self
    }

    /// Takes tools from this source: a layer (`native`), or a layer and a unit
    /// (`manifest:tools.d/*`), each a [`Pattern`]. Given again: from either.
    #[must_use]
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.sources.push(Pattern::new(source));
        self
    }

    /// Takes tools with these annotations.
    #[must_use]
    pub fn annotations(mut self, annotations: AnnotationFilter) -> Self {
        self.annotations = annotations;
        self
    }

    /// Whether it takes the tool.
    pub fn takes(&self, entry: &ToolEntry) -> bool {
        let definition = &entry.definition;
        let met = |patterns: &[Pattern], met: &dyn Fn(&Pattern) -> bool| {
            patterns.is_empty() || patterns.iter().any(met)
        };
        met(&self.names, &|pattern| pattern.matches(definition.name()))
            && met(&self.categories, &|pattern| pattern.matches(definition.category()))
            && met(&self.tags, &|pattern| definition.tags().iter().any(|tag| pattern.matches(tag)))
            && met(&self.sources, &|pattern| is_from(pattern, &entry.source))
            && self.annotations.takes(definition.annotations())
    }
}

impl AnnotationFilter {
    fn takes(self, annotations: Annotations) -> bool {
        let met = |wanted: Option<bool>, is: bool| wanted.is_none_or(|wanted| wanted == is);
        met(self.read_only, annotations.read_only)
            && met(self.destructive, annotations.may_destroy())
            && met(self.idempotent, annotations.idempotent)
            && met(self.open_world, annotations.open_world)
    }
}

fn is_from(pattern: &Pattern, source: &Source) -> bool {
    match pattern.as_str().split_once(':') {
        None => pattern.matches(source.layer.as_str()),
        Some((layer, unit)) => fits(layer, source.layer.as_str()) && fits(unit, &source.unit),
    }
}
