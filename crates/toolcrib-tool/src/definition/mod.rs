//! A tool's definition: everything that is known without running it.

pub(crate) mod annotations;
mod builder;
mod error;
pub(crate) mod icon;
mod injection;
pub(crate) mod limits;
pub(crate) mod name;
pub(crate) mod parameter;
pub(crate) mod schema;
mod shared_schema;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::{
    Annotations, Approval, CachePolicy, Dedupe, Icon, RateLimit, Resources, RetryPolicy, TaskMode,
    ToolName,
};

pub use builder::ToolDefinitionBuilder;
pub use error::DefinitionError;
pub use injection::Injection;

/// The longest description in bytes: longer texts cost a model more than they are worth, and providers cut or refuse
/// them.
pub const DESCRIPTION_MAX: usize = 16 * 1024;

/// The definition of a tool. Immutable; made by [`ToolDefinition::builder`].
///
/// ```
/// use serde_json::json;
/// use toolcrib_tool::ToolDefinition;
///
/// let definition = ToolDefinition::builder("disk_usage")
///     .description("Show how full the file systems are. Read-only.")
///     .input_schema(json!({"properties": {"path": {"type": "string"}}}))
///     .read_only(true)
///     .build()?;
/// assert_eq!(definition.name(), "disk_usage");
/// assert_eq!(definition.input_schema()["type"], "object");
/// # Ok::<(), toolcrib_tool::DefinitionError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct ToolDefinition {
    name: ToolName,
    title: Option<String>,
    description: String,
    category: String,
    tags: Vec<String>,
    version: Option<String>,
    /// Shared between equal schemas.
    input_schema: Arc<Value>,
    output_schema: Option<Arc<Value>>,
    input_examples: Vec<Value>,
    injections: Vec<Injection>,
    timeout: Option<Duration>,
    output_chars: Option<usize>,
    /// Settings that few tools use; `None` if all have their defaults.
    rare: Option<Box<RareSettings>>,
    annotations: Annotations,
    dedupe: Dedupe,
    approval: Approval,
    blocking: bool,
    parallel: bool,
    client: bool,
    hidden: bool,
    final_output: bool,
    terminal: bool,
}

/// Limits and policies that few tools use.
#[derive(Debug, Clone, Default, PartialEq)]
struct RareSettings {
    max_concurrent: Option<usize>,
    rate: Option<RateLimit>,
    cache: Option<CachePolicy>,
    retry: Option<RetryPolicy>,
    refresh_every: Option<Duration>,
    resources: Resources,
    empty_as_absent: Vec<String>,
    assert_formats: bool,
    claims: Option<Annotations>,
    task: TaskMode,
    icons: Vec<Icon>,
}

/// The resources of a tool that declares none.
static NO_RESOURCES: Resources = Resources::NONE;

impl ToolDefinition {
    /// Starts a definition with that name.
    pub fn builder(name: impl Into<String>) -> ToolDefinitionBuilder {
        ToolDefinitionBuilder::new(name.into())
    }

    /// Starts a definition with all settings of this one: for [`Tool::refresh`](crate::Tool::refresh), which changes
    /// some of them.
    ///
    /// ```
    /// use toolcrib_tool::ToolDefinition;
    ///
    /// let search = ToolDefinition::builder("search").description("Search 3 tables.").build()?;
    /// let grown = search.to_builder().description("Search 4 tables.").build()?;
    /// assert_eq!((grown.name(), grown.description()), ("search", "Search 4 tables."));
    /// # Ok::<(), toolcrib_tool::DefinitionError>(())
    /// ```
    pub fn to_builder(&self) -> ToolDefinitionBuilder {
        ToolDefinitionBuilder::of(self.clone())
    }

    pub(crate) fn for_client(mut self) -> Self {
        self.client = true;
        self
    }

    /// The same tool with the context value `key` required, if the tool uses it: calls without it fail with
    /// `missing_context`.
    #[must_use]
    pub fn requiring_context(mut self, key: &str) -> Self {
        for injection in self.injections.iter_mut().filter(|own| own.context_key() == key) {
            injection.require();
        }
        self
    }

    /// The name, unique in a registry.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The checked name; clones are cheap.
    pub fn tool_name(&self) -> &ToolName {
        &self.name
    }

    /// The display name, if there is one besides [`name`](Self::name).
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Icons for display.
    pub fn icons(&self) -> &[Icon] {
        self.rare.as_ref().map_or(&[], |rare| &rare.icons)
    }

    /// What the tool does, for the model.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The category, for example `data` or `file`. Default `custom`.
    pub fn category(&self) -> &str {
        &self.category
    }

    /// Free labels.
    pub fn tags(&self) -> &[String] {
        &self.tags
    }

    /// The tool's own version.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// JSON Schema of the arguments that a model may send; its root is an object schema.
    pub fn input_schema(&self) -> &Value {
        &self.input_schema
    }

    /// JSON Schema of the result's `data`.
    pub fn output_schema(&self) -> Option<&Value> {
        self.output_schema.as_deref()
    }

    /// [`input_schema`](Self::input_schema) as a shared pointer. Definitions with equal schemas share one, so its
    /// address identifies it as long as somebody holds it.
    pub fn shared_input_schema(&self) -> &Arc<Value> {
        &self.input_schema
    }

    /// [`output_schema`](Self::output_schema) as a shared pointer, like [the input's](Self::shared_input_schema).
    pub fn shared_output_schema(&self) -> Option<&Arc<Value>> {
        self.output_schema.as_ref()
    }

    /// Examples of valid arguments for a model.
    pub fn input_examples(&self) -> &[Value] {
        &self.input_examples
    }

    /// The effects of a call.
    pub fn annotations(&self) -> Annotations {
        self.annotations
    }

    /// What the tool's source claims about its effects, if nobody vouches for it. It is shown to people, but only
    /// [`annotations`](Self::annotations) affect decisions.
    pub fn claims(&self) -> Option<Annotations> {
        self.rare.as_ref()?.claims
    }

    /// Parameters that the host fills in.
    pub fn injections(&self) -> &[Injection] {
        &self.injections
    }

    /// Properties for which an empty string means "not given".
    pub fn empty_as_absent(&self) -> &[String] {
        self.rare.as_ref().map_or(&[], |rare| &rare.empty_as_absent)
    }

    /// Whether a text that does not match the `format` in its schema is refused. Default `false`: a format informs the
    /// model and is not enforced.
    pub fn assert_formats(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.assert_formats)
    }

    /// The tool's own time limit; `None` for the executor's default.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// How many characters of text the model gets; `None` for the executor's default.
    pub fn output_chars(&self) -> Option<usize> {
        self.output_chars
    }

    /// How many calls may run at once in this process; `None` for no limit.
    pub fn max_concurrent(&self) -> Option<usize> {
        self.rare.as_ref()?.max_concurrent
    }

    /// How many calls may start in a period; `None` for no limit.
    pub fn rate(&self) -> Option<RateLimit> {
        self.rare.as_ref()?.rate
    }

    /// Whether successful answers are cached.
    pub fn cache(&self) -> Option<CachePolicy> {
        self.rare.as_ref()?.cache
    }

    /// How repeated calls are recognized. Default: every call runs.
    pub fn dedupe(&self) -> Dedupe {
        self.dedupe
    }

    /// The resources that the tool reads and writes.
    pub fn resources(&self) -> &Resources {
        self.rare.as_ref().map_or(&NO_RESOURCES, |rare| &rare.resources)
    }

    /// Whether a call may block its thread and therefore runs on the blocking pool.
    pub fn blocking(&self) -> bool {
        self.blocking
    }

    /// Whether other calls of a batch may run at the same time. Default `true`; `false` makes the call a barrier.
    pub fn parallel(&self) -> bool {
        self.parallel
    }

    /// When a call waits for approval. Default: never. Policy rules take precedence.
    pub fn approval(&self) -> Approval {
        self.approval
    }

    /// Whether a failed call is retried; `None`: never.
    pub fn retry(&self) -> Option<RetryPolicy> {
        self.rare.as_ref()?.retry
    }

    /// Whether calls may be answered with a task. Default: long calls are.
    pub fn task(&self) -> TaskMode {
        self.rare.as_ref().map_or(TaskMode::Auto, |rare| rare.task)
    }

    /// How often the definition is refreshed; `None`: only when its source reports a change.
    pub fn refresh_every(&self) -> Option<Duration> {
        self.rare.as_ref()?.refresh_every
    }

    /// Whether the client runs the tool: calls are handed to it and nothing is executed here.
    pub fn client(&self) -> bool {
        self.client
    }

    /// Whether the call is hidden from people.
    pub fn hidden(&self) -> bool {
        self.hidden
    }

    /// Whether the output becomes the assistant's message.
    pub fn final_output(&self) -> bool {
        self.final_output
    }

    /// Whether the call ends an agent's loop.
    pub fn terminal(&self) -> bool {
        self.terminal
    }

    /// The complete definition as a JSON object, for hashes: [`to_value`](Self::to_value), and settings that people are
    /// not shown.
    pub fn to_full_value(&self) -> Value {
        let mut value = self.to_value();
        // As declared: stored digests cover this value.
        value["annotations"]["destructive"] = self.annotations.destructive.into();
        if let Some(claims) = self.claims() {
            value["claims"]["destructive"] = claims.destructive.into();
        }
        let injections: Vec<_> = self
            .injections
            .iter()
            .map(|known| json!([known.parameter(), known.context_key(), known.required()]))
            .collect();
        if !injections.is_empty() {
            value["injections"] = injections.into();
        }
        if !self.empty_as_absent().is_empty() {
            value["empty_as_absent"] = self.empty_as_absent().into();
        }
        if let Some(retry) = self.retry() {
            value["retry"]["backoff_seconds"] = retry.backoff().as_secs_f64().into();
        }
        if let Some(period) = self.refresh_every() {
            value["refresh_every_seconds"] = period.as_secs_f64().into();
        }
        value
    }

    /// The definition as a JSON object with stable key names, as `show --json` prints it.
    /// Absent and default fields are left out. A read-only tool is never `destructive`.
    pub fn to_value(&self) -> Value {
        let mut object = Map::new();
        object.insert("name".into(), self.name().into());
        let mut optional = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                object.insert(key.into(), value);
            }
        };
        optional("title", self.title.clone().map(Value::from));
        optional(
            "icons",
            (!self.icons().is_empty()).then(|| self.icons().iter().map(Icon::to_value).collect()),
        );
        optional("description", Some(self.description.clone().into()));
        optional("category", Some(self.category.clone().into()));
        optional("tags", (!self.tags.is_empty()).then(|| json!(self.tags)));
        optional("version", self.version.clone().map(Value::from));
        optional("input_schema", Some(self.input_schema().clone()));
        optional("output_schema", self.output_schema().cloned());
        optional(
            "input_examples",
            (!self.input_examples.is_empty()).then(|| json!(self.input_examples)),
        );
        let hints = |hints: Annotations| {
            let Annotations { read_only, destructive: _, idempotent, open_world } = hints;
            json!({
                "read_only": read_only,
                "destructive": hints.may_destroy(),
                "idempotent": idempotent,
                "open_world": open_world,
            })
        };
        optional("annotations", Some(hints(self.annotations)));
        optional("claims", self.claims().map(hints));
        optional("timeout_seconds", self.timeout.map(|limit| json!(limit.as_secs_f64())));
        optional("output_chars", self.output_chars.map(Value::from));
        optional("blocking", self.blocking.then_some(true.into()));
        optional("parallel", (!self.parallel).then_some(false.into()));
        optional("max_concurrent", self.max_concurrent().map(Value::from));
        optional("rate", self.rate().map(|rate| rate.to_string().into()));
        optional(
            "cache",
            self.cache().map(|cache| match (cache.ttl(), cache.is_shared()) {
                (None, false) => true.into(),
                (None, true) => json!({"shared": true}),
                (Some(ttl), false) => json!({"ttl_seconds": ttl.as_secs_f64()}),
                (Some(ttl), true) => json!({"ttl_seconds": ttl.as_secs_f64(), "shared": true}),
            }),
        );
        optional("assert_formats", self.assert_formats().then_some(Value::Bool(true)));
        optional("dedupe", (self.dedupe != Dedupe::None).then(|| self.dedupe.as_str().into()));
        let Resources { reads, writes } = self.resources();
        optional(
            "resources",
            (!reads.is_empty() || !writes.is_empty())
                .then(|| json!({"reads": reads, "writes": writes})),
        );
        optional(
            "approval",
            (self.approval != Approval::Never).then(|| self.approval.as_str().into()),
        );
        optional("retry", self.retry().map(|retry| json!({"max": retry.max()})));
        optional("task", (self.task() != TaskMode::Auto).then(|| self.task().as_str().into()));
        optional("client", self.client.then_some(true.into()));
        optional("hidden", self.hidden.then_some(true.into()));
        optional("final_output", self.final_output.then_some(true.into()));
        optional("terminal", self.terminal.then_some(true.into()));
        Value::Object(object)
    }
}
