//! Builds a definition and checks it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::shared_schema::shared_schema;
use super::{DESCRIPTION_MAX, DefinitionError, Injection, RareSettings, ToolDefinition};
use crate::{
    Annotations, Approval, CachePolicy, Dedupe, Icon, RateLimit, Resources, RetryPolicy, TaskMode,
    ToolName,
};

/// Builds a [`ToolDefinition`]; every setter is optional except the description.
#[derive(Debug, Clone)]
pub struct ToolDefinitionBuilder {
    name: String,
    draft: ToolDefinition,
    input_schema: Value,
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

/// The same for settings that few tools use.
macro_rules! rare_setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty => $store:expr;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: $type) -> Self {
            self.draft.rare.get_or_insert_default().$name = $store;
            self
        }
    )*};
}

impl ToolDefinitionBuilder {
    pub(super) fn new(name: String) -> Self {
        let placeholder = ToolName::placeholder();
        Self {
            name,
            draft: ToolDefinition {
                timeout: None,
                output_chars: None,
                rare: None,
                annotations: Annotations::default(),
                dedupe: Dedupe::None,
                approval: Approval::Never,
                blocking: false,
                parallel: true,
                client: false,
                hidden: false,
                final_output: false,
                terminal: false,
                injections: Vec::new(),
                name: placeholder,
                title: None,
                description: String::new(),
                category: "custom".to_owned(),
                tags: Vec::new(),
                version: None,
                input_schema: Arc::default(),
                output_schema: None,
                input_examples: Vec::new(),
            },
            input_schema: json!({"type": "object", "properties": {}, "additionalProperties": false}),
        }
    }

    /// A builder with all settings of a definition.
    pub(super) fn of(definition: ToolDefinition) -> Self {
        let input_schema = definition.input_schema().clone();
        Self { name: definition.name().to_owned(), draft: definition, input_schema }
    }

    setters! {
        /// Sets all four annotations at once.
        annotations: Annotations => annotations;
        /// Sets example argument objects.
        input_examples: Vec<Value> => input_examples;
        /// Sets the parameters that the host fills in.
        injections: Vec<Injection> => injections;
        /// Sets the free labels.
        tags: Vec<String> => tags;
        /// Sets the tool's own time limit.
        timeout: Duration => Some(timeout);
        /// Sets how many characters of text the model gets.
        output_chars: usize => Some(output_chars);
        /// Sets how repeated calls are recognized.
        dedupe: Dedupe => dedupe;
        /// Sets when a call waits for approval.
        approval: Approval => approval;
        /// Sends calls to the blocking pool.
        blocking: bool => blocking;
        /// `false`: no other call of a batch runs at the same time.
        parallel: bool => parallel;
        /// Hides the call from people.
        hidden: bool => hidden;
        /// Makes the output the assistant's message.
        final_output: bool => final_output;
        /// Makes the call end an agent's loop.
        terminal: bool => terminal;
        /// Sets the schema of the result's `data`.
        output_schema: Value => Some(Arc::new(output_schema));
    }

    rare_setters! {
        /// Sets the properties for which `""` means "not given".
        empty_as_absent: Vec<String> => empty_as_absent;
        /// `true`: a text that does not match the `format` in its schema is refused.
        assert_formats: bool => assert_formats;
        /// Sets how many calls may run at once in this process; at least 1.
        max_concurrent: usize => Some(max_concurrent);
        /// Sets how many calls may start in a period.
        rate: RateLimit => Some(rate);
        /// Allows successful answers to be cached. Only for tools that are read-only and idempotent.
        cache: CachePolicy => Some(cache);
        /// Sets what the tool reads and writes.
        resources: Resources => resources;
        /// Allows a failed call to be retried. Only for idempotent tools, and only after errors that are marked as
        /// retryable.
        retry: RetryPolicy => Some(retry);
        /// Sets what the tool's source claims about its effects, if nobody vouches for it.
        claims: Annotations => Some(claims);
        /// Sets icons for display.
        icons: Vec<Icon> => icons;
        /// Sets whether calls may be answered with a task.
        task: TaskMode => task;
        /// Sets how often the definition is refreshed ([`Tool::refresh`](crate::Tool::refresh)).
        refresh_every: Duration => Some(refresh_every);
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.draft.title = Some(title.into());
        self
    }

    /// Sets the description for the model.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.draft.description = description.into();
        self
    }

    /// Sets the category.
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

    /// Sets the schema of the arguments. A root without `type` becomes an object schema.
    #[must_use]
    pub fn input_schema(mut self, mut schema: Value) -> Self {
        if let Some(root) = schema.as_object_mut()
            && !root.contains_key("type")
        {
            root.insert("type".into(), "object".into());
        }
        self.input_schema = schema;
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

    /// Sets one annotation: repeating a call has no further effect.
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

    /// Checks all settings and makes the definition.
    pub fn build(self) -> Result<ToolDefinition, DefinitionError> {
        let Self { name, mut draft, mut input_schema } = self;
        draft.name = ToolName::new(&name).map_err(DefinitionError::Name)?;
        let fail =
            |problem: &'static str| Err(DefinitionError::Field { name: name.clone(), problem });
        if draft.description.trim().is_empty() {
            return fail(
                "it has no description: a model cannot choose a tool that it knows \
                         nothing about",
            );
        }
        if draft.description.len() > DESCRIPTION_MAX {
            return fail("its description is longer than 16 KiB");
        }
        if input_schema.get("type").and_then(Value::as_str) != Some("object") {
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
        if draft.cache().is_some() && !(annotations.read_only && annotations.idempotent) {
            return fail(
                "it has a cache, which is allowed only for read-only and idempotent tools",
            );
        }
        if draft.dedupe() == Dedupe::Session && !(annotations.read_only && annotations.idempotent) {
            return fail(
                "it has `dedupe: session`, which is allowed only for read-only and idempotent \
                 tools: the second of two equal calls would not run",
            );
        }
        if draft.timeout.is_some_and(|limit| limit.is_zero()) {
            return fail("its time limit is zero, so that no call could run");
        }
        if draft.max_concurrent() == Some(0) {
            return fail("its limit of concurrent calls is 0, so that no call could run");
        }
        if draft.retry().is_some() && !annotations.idempotent {
            return fail("it has retries, which are allowed only for idempotent tools");
        }
        if draft.refresh_every().is_some_and(|period| period.is_zero()) {
            return fail("its refresh period is zero");
        }
        hide_injected(&mut input_schema, &draft.injections);
        draft.input_schema = shared_schema(input_schema);
        draft.output_schema =
            draft.output_schema.map(|schema| shared_schema(Arc::unwrap_or_clone(schema)));
        draft.rare = draft.rare.filter(|rare| **rare != RareSettings::default());
        Ok(draft)
    }
}

/// Removes injected parameters from what a model sees.
fn hide_injected(schema: &mut Value, injections: &[Injection]) {
    let hidden = |name: &str| injections.iter().any(|injection| injection.parameter() == name);
    let Some(root) = schema.as_object_mut() else { return };
    if let Some(Value::Object(properties)) = root.get_mut("properties") {
        properties.retain(|name, _| !hidden(name));
    }
    if let Some(Value::Array(required)) = root.get_mut("required") {
        required.retain(|name| !name.as_str().is_some_and(hidden));
    }
}
