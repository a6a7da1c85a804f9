//! What a tool says about itself: everything that can be known without running it.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::{Annotations, CachePolicy, Dedupe, InvalidToolName, RateLimit, Resources, ToolName};

/// The longest description, in bytes, that [`ToolDefinition`] accepts: longer texts cost a model
/// more than they tell it, and providers cut or refuse them.
pub const DESCRIPTION_MAX: usize = 16 * 1024;

/// A parameter whose value comes from the host's context and never from a model.
///
/// The parameter is in no schema a model sees; a value a model sends for it is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    parameter: String,
    context_key: String,
    required: bool,
}

impl Injection {
    /// Fills `parameter` from the context value `context_key`; required unless said otherwise.
    pub fn new(parameter: impl Into<String>, context_key: impl Into<String>) -> Self {
        Self { parameter: parameter.into(), context_key: context_key.into(), required: true }
    }

    /// Lets the call go on when the context has no such value.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.required = false;
        self
    }

    /// The parameter's name.
    pub fn parameter(&self) -> &str {
        &self.parameter
    }

    /// The key in the host's context.
    pub fn context_key(&self) -> &str {
        &self.context_key
    }

    /// Whether a missing value fails the call (`missing_context`).
    pub fn required(&self) -> bool {
        self.required
    }
}

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
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent switches, one per documented behaviour"
)]
pub struct ToolDefinition {
    name: ToolName,
    title: Option<String>,
    description: String,
    category: String,
    tags: Vec<String>,
    version: Option<String>,
    input_schema: Value,
    output_schema: Option<Value>,
    input_examples: Vec<Value>,
    annotations: Annotations,
    injections: Vec<Injection>,
    empty_as_absent: Vec<String>,
    timeout: Option<Duration>,
    output_chars: Option<usize>,
    max_concurrent: Option<usize>,
    rate: Option<RateLimit>,
    cache: Option<CachePolicy>,
    dedupe: Dedupe,
    resources: Resources,
    blocking: bool,
    parallel: bool,
    hidden: bool,
    final_output: bool,
    terminal: bool,
}

impl ToolDefinition {
    /// Starts a definition of that name.
    pub fn builder(name: impl Into<String>) -> ToolDefinitionBuilder {
        ToolDefinitionBuilder::new(name.into())
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

    /// Parameters the host fills in.
    pub fn injections(&self) -> &[Injection] {
        &self.injections
    }

    /// Properties for which an empty string means "not given".
    pub fn empty_as_absent(&self) -> &[String] {
        &self.empty_as_absent
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
        self.max_concurrent
    }

    /// How many calls may start in a time; no limit where there is none.
    pub fn rate(&self) -> Option<RateLimit> {
        self.rate
    }

    /// Whether successful answers may be used again.
    pub fn cache(&self) -> Option<CachePolicy> {
        self.cache
    }

    /// How a repeated call is told from a new one. Default: every call runs.
    pub fn dedupe(&self) -> Dedupe {
        self.dedupe
    }

    /// What the tool reads and writes.
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    /// Whether a call may block its thread, and so runs on the blocking pool.
    pub fn blocking(&self) -> bool {
        self.blocking
    }

    /// Whether calls of a batch may run beside this one. Default `true`; `false` is a barrier.
    pub fn parallel(&self) -> bool {
        self.parallel
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
        optional("description", Some(self.description.clone().into()));
        optional("category", Some(self.category.clone().into()));
        optional("tags", (!self.tags.is_empty()).then(|| json!(self.tags)));
        optional("version", self.version.clone().map(Value::from));
        optional("input_schema", Some(self.input_schema.clone()));
        optional("output_schema", self.output_schema.clone());
        optional(
            "input_examples",
            (!self.input_examples.is_empty()).then(|| json!(self.input_examples)),
        );
        let Annotations { read_only, destructive, idempotent, open_world } = self.annotations;
        optional(
            "annotations",
            Some(json!({
                "read_only": read_only,
                "destructive": destructive,
                "idempotent": idempotent,
                "open_world": open_world,
            })),
        );
        optional("timeout_seconds", self.timeout.map(|limit| json!(limit.as_secs_f64())));
        optional("output_chars", self.output_chars.map(Value::from));
        optional("blocking", self.blocking.then_some(true.into()));
        optional("parallel", (!self.parallel).then_some(false.into()));
        optional("hidden", self.hidden.then_some(true.into()));
        optional("final_output", self.final_output.then_some(true.into()));
        optional("terminal", self.terminal.then_some(true.into()));
        Value::Object(object)
    }
}

/// Builds a [`ToolDefinition`]; every setter may be left out but the description.
#[derive(Debug, Clone)]
pub struct ToolDefinitionBuilder {
    name: String,
    draft: ToolDefinition,
}

/// Setters that store one value under their own name.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty => $store:expr;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: $type) -> Self {
            self.draft.$name = $store;
            self
        }
    )*};
}

impl ToolDefinitionBuilder {
    fn new(name: String) -> Self {
        let placeholder = ToolName::placeholder();
        Self {
            name,
            draft: ToolDefinition {
                name: placeholder,
                title: None,
                description: String::new(),
                category: "custom".to_owned(),
                tags: Vec::new(),
                version: None,
                input_schema: json!({"type": "object", "properties": {}, "additionalProperties": false}),
                output_schema: None,
                input_examples: Vec::new(),
                annotations: Annotations::default(),
                injections: Vec::new(),
                empty_as_absent: Vec::new(),
                timeout: None,
                output_chars: None,
                max_concurrent: None,
                rate: None,
                cache: None,
                dedupe: Dedupe::None,
                resources: Resources::new(),
                blocking: false,
                parallel: true,
                hidden: false,
                final_output: false,
                terminal: false,
            },
        }
    }

    setters! {
        /// Sets all four annotations at once.
        annotations: Annotations => annotations;
        /// Sets example argument objects.
        input_examples: Vec<Value> => input_examples;
        /// Sets the parameters the host fills in.
        injections: Vec<Injection> => injections;
        /// Sets the properties for which `""` means "not given".
        empty_as_absent: Vec<String> => empty_as_absent;
        /// Sets the free labels.
        tags: Vec<String> => tags;
        /// Sets the tool's own time limit.
        timeout: Duration => Some(timeout);
        /// Sets how many characters of text the model gets.
        output_chars: usize => Some(output_chars);
        /// Sets how many calls may run at once in this process; at least 1.
        max_concurrent: usize => Some(max_concurrent);
        /// Sets how many calls may start in a time.
        rate: RateLimit => Some(rate);
        /// Lets successful answers be used again. Only for tools that are read-only and idempotent.
        cache: CachePolicy => Some(cache);
        /// Sets how a repeated call is told from a new one.
        dedupe: Dedupe => dedupe;
        /// Sets what the tool reads and writes.
        resources: Resources => resources;
        /// Sends calls to the blocking pool.
        blocking: bool => blocking;
        /// `false`: nothing of a batch runs beside this call.
        parallel: bool => parallel;
        /// Keeps the call out of what people are shown.
        hidden: bool => hidden;
        /// Makes the output the assistant's message.
        final_output: bool => final_output;
        /// Makes the call end an agent's loop.
        terminal: bool => terminal;
        /// Sets the schema of the result's `data`.
        output_schema: Value => Some(output_schema);
    }

    /// Sets the name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.draft.title = Some(title.into());
        self
    }

    /// Sets what the tool does, for the model.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.draft.description = description.into();
        self
    }

    /// Sets the family.
    #[must_use]
    pub fn category(mut self, category: impl Into<String>) -> Self {
        self.draft.category = category.into();
        self
    }

    /// Sets the tool's own version.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.draft.version = Some(version.into());
        self
    }

    /// Sets the schema of the arguments. A root without `type` is an object.
    #[must_use]
    pub fn input_schema(mut self, mut schema: Value) -> Self {
        if let Some(root) = schema.as_object_mut()
            && !root.contains_key("type")
        {
            root.insert("type".into(), "object".into());
        }
        self.draft.input_schema = schema;
        self
    }

    /// Sets one annotation: the call changes nothing.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.draft.annotations.read_only = read_only;
        self
    }

    /// Sets one annotation: the call may destroy something.
    #[must_use]
    pub fn destructive(mut self, destructive: bool) -> Self {
        self.draft.annotations.destructive = destructive;
        self
    }

    /// Sets one annotation: calling twice is like calling once.
    #[must_use]
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.draft.annotations.idempotent = idempotent;
        self
    }

    /// Sets one annotation: the call reaches beyond the host.
    #[must_use]
    pub fn open_world(mut self, open_world: bool) -> Self {
        self.draft.annotations.open_world = open_world;
        self
    }

    /// Checks everything and makes the definition.
    pub fn build(self) -> Result<ToolDefinition, DefinitionError> {
        let Self { name, mut draft } = self;
        draft.name = ToolName::new(&name).map_err(DefinitionError::Name)?;
        let fail =
            |problem: &'static str| Err(DefinitionError::Field { name: name.clone(), problem });
        if draft.description.trim().is_empty() {
            return fail("it has no description: a model cannot choose a tool it knows nothing of");
        }
        if draft.description.len() > DESCRIPTION_MAX {
            return fail("its description is longer than 16 KiB");
        }
        if draft.input_schema.get("type").and_then(Value::as_str) != Some("object") {
            return fail("its input schema is not an object schema (`type: object`)");
        }
        if draft
            .output_schema
            .as_ref()
            .is_some_and(|schema| !schema.is_object() && !schema.is_boolean())
        {
            return fail("its output schema is not a JSON Schema");
        }
        if draft.input_examples.iter().any(|example| !example.is_object()) {
            return fail("one of its input examples is not an object of arguments");
        }
        let annotations = draft.annotations;
        if draft.cache.is_some() && !(annotations.read_only && annotations.idempotent) {
            return fail("it is cached, which only read-only and idempotent tools may be");
        }
        if draft.max_concurrent == Some(0) {
            return fail("its limit of calls at once is 0, so that none could run");
        }
        hide_injected(&mut draft);
        Ok(draft)
    }
}

/// Removes injected parameters from what a model sees.
fn hide_injected(draft: &mut ToolDefinition) {
    let hidden = |name: &str| draft.injections.iter().any(|injection| injection.parameter == name);
    let Some(root) = draft.input_schema.as_object_mut() else { return };
    if let Some(Value::Object(properties)) = root.get_mut("properties") {
        properties.retain(|name, _| !hidden(name));
    }
    if let Some(Value::Array(required)) = root.get_mut("required") {
        required.retain(|name| !name.as_str().is_some_and(hidden));
    }
}

/// Why a definition was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DefinitionError {
    /// The name breaks the rule.
    Name(InvalidToolName),
    /// Another field is wrong.
    Field {
        /// The tool's name.
        name: String,
        /// What is wrong, as a clause.
        problem: &'static str,
    },
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::Field { name, problem } => write!(f, "tool {name:?} is refused: {problem}"),
        }
    }
}

impl std::error::Error for DefinitionError {}
