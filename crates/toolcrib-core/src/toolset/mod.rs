//! Toolsets: which tools a client may list, search, describe and call.

mod filter;
pub(crate) mod pattern;
mod view;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use toolcrib_tool::ToolEntry;

use crate::output::spill::READ_OUTPUT;
use crate::registry::RegistrySnapshot;
use crate::toolset::pattern::Pattern;
pub use filter::ToolFilter;
use view::Chosen;
pub use view::ToolsetView;

/// A set of tools: those that match at least one `include` and no `exclude`. Without an `include`,
/// all tools are included. Cloning it is cheap.
///
/// A tool outside the toolset cannot be listed, found, described or called, as if it did not exist.
///
/// ```
/// use toolcrib_core::{Registry, ToolFilter, Toolset};
///
/// let registry = Registry::scratch()
///     .tool("read_file", |_, _| async { "text" })
///     .tool("remove_file", |_, _| async { "gone" })
///     .build()?;
///
/// let reader = Toolset::new().include(ToolFilter::new().name("*_file")).exclude(ToolFilter::new().name("remove_*"));
/// let view = reader.view(&registry.snapshot());
/// assert_eq!(view.definitions().len(), 1);
/// assert!(view.get("read_file").is_some() && view.get("remove_file").is_none());
/// # Ok::<(), toolcrib_tool::DefinitionError>(())
/// ```
///
/// In a configuration:
///
/// ```
/// # use toolcrib_core::Toolset;
/// let toolset: Toolset = serde_json::from_value(serde_json::json!({
///     "include": [{"categories": ["file"], "annotations": {"read_only": true}}, {"names": ["ping"]}],
///     "exclude": [{"sources": ["upstream:*"]}],
/// }))?;
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(from = "ToolsetRules")]
#[schemars(with = "ToolsetRules")]
pub struct Toolset(Arc<ToolsetInner>);

#[derive(Default)]
struct ToolsetInner {
    rules: ToolsetRules,
    /// The selection for the most recent snapshot, because many turns use the same one.
    last: ArcSwapOption<Chosen>,
}

/// The error for an empty `include`, which would include all tools.
const EMPTY_INCLUDE: &str = "a list with at least one filter: an empty `include` selects nothing; leave it out for all tools";

fn not_empty<'de, D: Deserializer<'de>>(include: D) -> Result<Vec<ToolFilter>, D::Error> {
    let include = Vec::<ToolFilter>::deserialize(include)?;
    if include.is_empty() {
        return Err(D::Error::invalid_length(0, &EMPTY_INCLUDE));
    }
    Ok(include)
}

/// Which tools are listed, searched, described and called together: those that at least one
/// `include` takes, or all if there is none, and no `exclude`. Beside them, prompts and resources by
/// their names: none, unless they are named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Toolset")]
#[serde(default, deny_unknown_fields)]
struct ToolsetRules {
    /// Takes what any of these takes. Without it, all tools are taken; an empty list is refused.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "not_empty")]
    #[schemars(length(min = 1), extend("x-expected" = EMPTY_INCLUDE))]
    include: Vec<ToolFilter>,
    /// Leaves out what any of these takes, whatever includes it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exclude: Vec<ToolFilter>,
    /// Names of the prompts that MCP clients are offered beside the tools; `*` is any text. None without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prompts: Vec<Pattern>,
    /// Addresses of the resources that MCP clients are offered beside the tools, of those with variables
    /// as they are declared; `*` is any text. None without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resources: Vec<Pattern>,
    /// Values for the context of calls within the toolset: over those of the server, under those of a
    /// client. A model can neither see nor set them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    context: BTreeMap<String, Value>,
    /// Toolsets that have to take a tool as well: that of the agent which started this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    within: Vec<Self>,
    /// Names of tools that only toolsets have which name them here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    opt_in: Vec<String>,
}

impl ToolsetRules {
    fn allows(&self, entry: &ToolEntry) -> bool {
        if entry.opt_in {
            return self.names(entry.name()) && !self.leaves_out(entry);
        }
        (self.include.is_empty() || self.include.iter().any(|filter| filter.takes(entry)))
            && !self.exclude.iter().any(|filter| filter.takes(entry))
            && self.within.iter().all(|outer| outer.allows(entry))
    }
}

impl ToolsetRules {
    /// Whether these rules, or some that they are within, name a tool that needs it.
    fn names(&self, tool: &str) -> bool {
        self.opt_in.iter().any(|name| name == tool) || self.within.iter().any(|o| o.names(tool))
    }

    /// Whether these rules, or some that they are within, exclude a tool.
    fn leaves_out(&self, entry: &ToolEntry) -> bool {
        self.exclude.iter().any(|filter| filter.takes(entry))
            || self.within.iter().any(|outer| outer.leaves_out(entry))
    }
}

impl Toolset {
    /// A toolset of all tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Includes the tools that match the filter.
    #[must_use]
    pub fn include(self, filter: ToolFilter) -> Self {
        self.with(|rules| rules.include.push(filter))
    }

    /// Excludes the tools that match the filter, even if they are included.
    #[must_use]
    pub fn exclude(self, filter: ToolFilter) -> Self {
        self.with(|rules| rules.exclude.push(filter))
    }

    /// Includes prompts by name, a [`Pattern`]. Repeated calls add alternatives.
    #[must_use]
    pub fn prompt(self, name: impl Into<String>) -> Self {
        self.with(|rules| rules.prompts.push(Pattern::new(name)))
    }

    /// Includes resources by address, a [`Pattern`]. For an address with variables, the declared
    /// form is matched. Repeated calls add alternatives.
    #[must_use]
    pub fn resource(self, uri: impl Into<String>) -> Self {
        self.with(|rules| rules.resources.push(Pattern::new(uri)))
    }

    /// Adds a context value for calls within the toolset. It overrides a host value
    /// ([`TurnOptions::host_values`](crate::TurnOptions::host_values)), and is overridden by a
    /// value of the turn ([`TurnOptions::values`](crate::TurnOptions::values)).
    #[must_use]
    pub fn context(self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.with(|rules| {
            rules.context.insert(key.into(), value.into());
        })
    }

    /// The context values for calls within it, sorted by key.
    pub(crate) fn context_values(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.rules.context.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Whether it includes any prompt or resource.
    pub fn has_offers(&self) -> bool {
        !self.0.rules.prompts.is_empty() || !self.0.rules.resources.is_empty()
    }

    /// Whether it includes the prompt of this name.
    pub fn allows_prompt(&self, name: &str) -> bool {
        self.0.rules.prompts.iter().any(|pattern| pattern.matches(name))
    }

    /// Whether it includes the resource with this declared address.
    pub fn allows_resource(&self, uri: &str) -> bool {
        self.0.rules.resources.iter().any(|pattern| pattern.matches(uri))
    }

    /// Includes `read_output` as well, so that cut outputs of a turn can be read in it. An
    /// `exclude` still excludes it.
    #[must_use]
    pub fn with_read_output(self) -> Self {
        self.with_tool(READ_OUTPUT)
    }

    /// Includes one more tool. An `exclude` still excludes it.
    #[must_use]
    pub fn with_tool(self, name: &str) -> Self {
        if self.0.rules.include.is_empty() {
            return self;
        }
        self.include(ToolFilter::new().name(name))
    }

    /// Includes a tool that only toolsets have which name it so ([`ToolEntry::for_opt_in`]), whatever they
    /// include and whatever they are [within](Self::within). An `exclude` still excludes it.
    ///
    /// ```
    /// use toolcrib_core::{Registry, Toolset};
    /// use toolcrib_tool::ToolEntry;
    ///
    /// # fn delegate() -> ToolEntry {
    /// #     use toolcrib_tool::{Layer, Source, ToolDefinition, tool_fn};
    /// #     let definition = ToolDefinition::builder("delegate").description("Give a task away.");
    /// #     let body = tool_fn(|_: serde_json::Value, _| async { "done" });
    /// #     ToolEntry::new(definition.build().unwrap(), std::sync::Arc::new(body), Source::new(Layer::Host, "doc"))
    /// # }
    /// let registry = Registry::scratch().entry(delegate().for_opt_in()).build()?;
    /// assert!(Toolset::new().view(&registry.snapshot()).get("delegate").is_none());
    /// assert!(Toolset::new().opt_in("delegate").view(&registry.snapshot()).get("delegate").is_some());
    /// # Ok::<(), toolcrib_tool::DefinitionError>(())
    /// ```
    #[must_use]
    pub fn opt_in(self, name: &str) -> Self {
        self.with(|rules| rules.opt_in.push(name.to_owned()))
    }

    /// Limits it to the tools of another toolset, whose context values are over its own.
    ///
    /// ```
    /// use toolcrib_core::{Registry, ToolFilter, Toolset};
    ///
    /// let registry = Registry::scratch()
    ///     .tool("read_file", |_, _| async { "text" })
    ///     .tool("remove_file", |_, _| async { "gone" })
    ///     .build()?;
    ///
    /// let reader = Toolset::new().include(ToolFilter::new().name("read_*"));
    /// let all_files = Toolset::new().include(ToolFilter::new().name("*_file"));
    /// let view = all_files.within(&reader).view(&registry.snapshot());
    /// assert_eq!(view.definitions().len(), 1);
    /// # Ok::<(), toolcrib_tool::DefinitionError>(())
    /// ```
    #[must_use]
    pub fn within(self, outer: &Self) -> Self {
        self.with(|rules| {
            rules.context.extend(outer.0.rules.context.clone());
            rules.within.push(outer.0.rules.clone());
        })
    }

    fn with(self, change: impl FnOnce(&mut ToolsetRules)) -> Self {
        let mut rules = self.0.rules.clone();
        change(&mut rules);
        Self::from(rules)
    }

    /// Whether it includes the tool.
    pub fn allows(&self, entry: &ToolEntry) -> bool {
        self.0.rules.allows(entry)
    }

    /// The view of a snapshot through the toolset. The filter runs once per snapshot and tool.
    pub fn view(&self, snapshot: &Arc<RegistrySnapshot>) -> ToolsetView {
        let last = self.0.last.load_full();
        let known = last.filter(|chosen| chosen.is_of(snapshot));
        let chosen = known.unwrap_or_else(|| {
            let chosen = Arc::new(Chosen::of(snapshot, |entry| self.allows(entry)));
            self.0.last.store(Some(Arc::clone(&chosen)));
            chosen
        });
        ToolsetView::new(Arc::clone(snapshot), chosen)
    }
}

impl PartialEq for Toolset {
    fn eq(&self, other: &Self) -> bool {
        self.0.rules == other.0.rules
    }
}

impl Eq for Toolset {}

impl Serialize for Toolset {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.rules.serialize(serializer)
    }
}

impl From<ToolsetRules> for Toolset {
    fn from(rules: ToolsetRules) -> Self {
        Self(Arc::new(ToolsetInner { rules, last: ArcSwapOption::empty() }))
    }
}

impl fmt::Debug for ToolsetInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rules.fmt(f)
    }
}
