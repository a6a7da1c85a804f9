//! What a tool says about itself: everything that can be known without running it.

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

/// The longest description, in bytes, that [`ToolDefinition`] accepts: longer texts cost a model
/// more than they tell it, and providers cut or refuse them.
pub const DESCRIPTION_MAX: usize = 16 * 1024;

/// Everything a tool says about itself. Immutable; made by [`ToolDefinition::builder`].
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
    /// Equal schemas are one.
    input_schema: Arc<Value>,
    output_schema: Option<Arc<Value>>,
    input_examples: Vec<Value>,
    injections: Vec<Injection>,
    timeout: Option<Duration>,
    output_chars: Option<usize>,
    /// What few tools set; `None` where all of it has its default.
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

/// Limits and policies that few tools state.
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

/// What a tool reads and writes that states nothing.
static NO_RESOURCES: Resources = Resources::NONE;

impl ToolDefinition {
    /// Starts a definition of that name.
    pub fn builder(name: impl Into<String>) -> ToolDefinitionBuilder {
        ToolDefinitionBuilder::new(name.into())
    }

    /// Starts a definition that says all that this one says: for
    /// [`Tool::refresh`](crate::Tool::refresh), which changes some of it.
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

    /// The same tool where the host's context must have a value under `key`, if the tool takes it at
    /// all: calls without it fail with `missing_context`.
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

    /// The checked name; cloning it is cheap.
    pub fn tool_name(&self) -> &ToolName {
        &self.name
    }

    /// A name for people; [`name`](Self::name) where there is none.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Pictures of it, for people.
    pub fn icons(&self) -> &[Icon] {
        self.rare.as_ref().map_or(&[], |rare| &rare.icons)
    }

    /// What the tool does, for the model.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The family, for example `data` or `file`. Default `custom`.
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

    /// JSON Schema of the arguments a model may send; its root is an object schema.
    pub fn input_schema(&self) -> &Value {
        &self.input_schema
    }

    /// JSON Schema of the result's `data`.
    pub fn output_schema(&self) -> Option<&Value> {
        self.output_schema.as_deref()
    }

    /// [`input_schema`](Self::input_schema), to be kept. Definitions with equal schemas have one: it
    /// can be told by its address as long as somebody keeps it.
    pub fn shared_input_schema(&self) -> &Arc<Value> {
        &self.input_schema
    }

    /// [`output_schema`](Self::output_schema), to be kept like the
    /// [input's](Self::shared_input_schema).
    pub fn shared_output_schema(&self) -> Option<&Arc<Value>> {
        self.output_schema.as_ref()
    }

    /// Argument objects that are right, to show a model.
    pub fn input_examples(&self) -> &[Value] {
        &self.input_examples
    }

    /// What a call does to the world.
    pub fn annotations(&self) -> Annotations {
        self.annotations
    }

    /// What the tool's source claims about its effects where nobody vouches for it: shown to people,
    /// and nothing is decided by it. [`annotations`](Self::annotations) are what counts.
    pub fn claims(&self) -> Option<Annotations> {
        self.rare.as_ref()?.claims
    }

    /// Parameters the host fills in.
    pub fn injections(&self) -> &[Injection] {
        &self.injections
    }

    /// Properties for which an empty string means "not given".
    pub fn empty_as_absent(&self) -> &[String] {
        self.rare.as_ref().map_or(&[], |rare| &rare.empty_as_absent)
    }

    /// Whether a text that is not of the `format` its schema names is refused. Default `false`: a
    /// format tells the model what is meant, and nothing is held against it.
    pub fn assert_formats(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.assert_formats)
    }

    /// The tool's own time limit; the executor's default where there is none.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// How many characters of text the model gets; the executor's default where there is none.
    pub fn output_chars(&self) -> Option<usize> {
        self.output_chars
    }

    /// How many calls may run at once in this process; no limit where there is none.
    pub fn max_concurrent(&self) -> Option<usize> {
        self.rare.as_ref()?.max_concurrent
    }

    /// How many calls may start in a time; no limit where there is none.
    pub fn rate(&self) -> Option<RateLimit> {
        self.rare.as_ref()?.rate
    }

    /// Whether successful answers may be used again.
    pub fn cache(&self) -> Option<CachePolicy> {
        self.rare.as_ref()?.cache
    }

    /// How a repeated call is told from a new one. Default: every call runs.
    pub fn dedupe(&self) -> Dedupe {
        self.dedupe
    }

    /// What the tool reads and writes.
    pub fn resources(&self) -> &Resources {
        self.rare.as_ref().map_or(&NO_RESOURCES, |rare| &rare.resources)
    }

    /// Whether a call may block its thread, and so runs on the blocking pool.
    pub fn blocking(&self) -> bool {
        self.blocking
    }

    /// Whether calls of a batch may run beside this one. Default `true`; `false` is a barrier.
    pub fn parallel(&self) -> bool {
        self.parallel
    }

    /// When a call waits for a person. Default: never. Policy decides first.
    pub fn approval(&self) -> Approval {
        self.approval
    }

    /// Whether a failed call is tried again; `None`: never.
    pub fn retry(&self) -> Option<RetryPolicy> {
        self.rare.as_ref()?.retry
    }

    /// Whether calls may be answered with a task. Default: those that take long.
    pub fn task(&self) -> TaskMode {
        self.rare.as_ref().map_or(TaskMode::Auto, |rare| rare.task)
    }

    /// How often the definition is asked for again; `None`: only when its source says so.
    pub fn refresh_every(&self) -> Option<Duration> {
        self.rare.as_ref()?.refresh_every
    }

    /// Whether the client runs the tool: a call is handed to it and nothing is executed here.
    pub fn client(&self) -> bool {
        self.client
    }

    /// Whether the call is kept out of what people are shown.
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

    /// All it says as a JSON object, for hashes: [`to_value`](Self::to_value), and what people are not
    /// shown.
    pub fn to_full_value(&self) -> Value {
        let mut value = self.to_value();
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
    /// Absent and default fields are left out.
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
            let Annotations { read_only, destructive, idempotent, open_world } = hints;
            json!({
                "read_only": read_only,
                "destructive": destructive,
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
