//! Settings of names: who gets one, and which are seen together.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_core::policy::AnnotationPattern;
use toolcrib_core::spill::READ_OUTPUT;
use toolcrib_core::{AnnotationFilter, ToolFilter};

/// How names are resolved.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Registry {
    /// What happens when two sources declare one name. The first wins either way.
    pub on_duplicate: OnDuplicate,
    /// The manifest and upstream tools that may take the place of one of the system's own
    /// (`attempt_completion`, `new_task`), as `unit:name`: `tools.d/own.yaml:new_task`.
    pub allow_override: Vec<String>,
}

/// What happens when two sources declare one name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnDuplicate {
    /// The loser is logged and listed.
    #[default]
    Warn,
    /// Nothing starts.
    Error,
}

impl From<OnDuplicate> for toolcrib_core::OnDuplicate {
    fn from(on_duplicate: OnDuplicate) -> Self {
        match on_duplicate {
            OnDuplicate::Warn => Self::Warn,
            OnDuplicate::Error => Self::Error,
        }
    }
}

/// Named toolsets.
pub type Toolsets = BTreeMap<String, Toolset>;

/// Which tools are listed, searched, described and called together: those that at least one
/// `include` takes, or all if there is none, and no `exclude`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Toolset {
    /// Takes what any of these takes; `read_output` is always taken, too.
    pub include: Vec<Filter>,
    /// Leaves out what any of these takes, whatever includes it.
    pub exclude: Vec<Filter>,
}

/// Takes the tools that meet every condition it states; a list is met by any of its items. In all of
/// them `*` is any text and `?` any one character.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// Names.
    pub names: Vec<String>,
    /// Categories.
    pub categories: Vec<String>,
    /// Tags.
    pub tags: Vec<String>,
    /// Where the tools come from: a layer (`native`), or layer and unit (`manifest:tools.d/*`).
    pub sources: Vec<String>,
    /// What the tools say of their effects.
    pub annotations: AnnotationPattern,
}

impl From<&Toolset> for toolcrib_core::Toolset {
    fn from(written: &Toolset) -> Self {
        let mut toolset = Self::new();
        for filter in &written.include {
            toolset = toolset.include(filter.into());
        }
        if !written.include.is_empty() {
            // What is cut in a turn must be readable in it.
            toolset = toolset.include(ToolFilter::new().name(READ_OUTPUT));
        }
        written.exclude.iter().fold(toolset, |toolset, filter| toolset.exclude(filter.into()))
    }
}

impl From<&Filter> for ToolFilter {
    fn from(written: &Filter) -> Self {
        let Filter { names, categories, tags, sources, annotations } = written;
        let AnnotationPattern { read_only, destructive, idempotent, open_world } = *annotations;
        let filter = names.iter().fold(Self::new(), Self::name);
        let filter = categories.iter().fold(filter, Self::category);
        let filter = tags.iter().fold(filter, Self::tag);
        let filter = sources.iter().fold(filter, Self::source);
        filter.annotations(AnnotationFilter { read_only, destructive, idempotent, open_world })
    }
}
