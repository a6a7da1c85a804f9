//! Tools from closures.

use std::borrow::Cow;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{
    Arguments, BoxFuture, CallContext, DefinitionError, IntoOutcome, Layer, Source, Tool,
    ToolDefinition, ToolDefinitionBuilder, ToolEntry, ToolError, ToolOutcome, schema_for,
};

/// Makes a tool's body from an async closure over its typed arguments.
///
/// ```
/// use serde::Deserialize;
/// use toolcrib_tool::{CallContext, Tool, tool_fn};
///
/// #[derive(Deserialize)]
/// struct Greet {
///     name: String,
/// }
///
/// fn is_tool(_: impl Tool) {}
/// is_tool(tool_fn(|args: Greet, _cx: CallContext| async move { format!("Hello, {}!", args.name) }));
/// ```
pub fn tool_fn<T, F, R>(function: F) -> FnTool<T, F>
where
    T: DeserializeOwned + Send + 'static,
    F: Fn(T, CallContext) -> R + Send + Sync + 'static,
    R: Future<Output: IntoOutcome> + Send + 'static,
{
    FnTool { function, arguments: PhantomData }
}

/// The arguments of a tool without parameters: any property is refused.
///
/// ```
/// use toolcrib_tool::{NoArguments, ToolEntry};
///
/// let entry = ToolEntry::from_fn("ping", "Answer.", |_: NoArguments, _| async { "pong" })?;
/// assert_eq!(entry.definition.input_schema()["additionalProperties"], false);
/// # Ok::<(), toolcrib_tool::DefinitionError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

impl JsonSchema for NoArguments {
    fn schema_name() -> Cow<'static, str> {
        "NoArguments".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "properties": {}, "additionalProperties": false})
    }
}

impl ToolEntry {
    /// A tool of the host program from an async closure. The schema of its arguments comes from the closure's first
    /// parameter, and a closure that returns [`Json<T>`](crate::Json) also sets the output schema.
    ///
    /// A definition made in this way says nothing about the tool's effects; models and policies then assume that it may
    /// change anything. Use [`from_fn_with`](Self::from_fn_with) to add annotations.
    ///
    /// Fails if the name or the description is refused, or if the arguments are not an object.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use toolcrib_tool::{CallContext, ToolEntry};
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Greet {
    ///     /// Whom to greet.
    ///     name: String,
    /// }
    ///
    /// let greet = |args: Greet, _cx: CallContext| async move { format!("Hello, {}!", args.name) };
    /// let entry = ToolEntry::from_fn("greet", "Greet somebody.", greet)?;
    /// assert_eq!(entry.definition.input_schema()["required"], serde_json::json!(["name"]));
    /// # Ok::<(), toolcrib_tool::DefinitionError>(())
    /// ```
    pub fn from_fn<T, F, R, O>(
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> Result<Self, DefinitionError>
    where
        T: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(T, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = O> + Send + 'static,
        O: IntoOutcome,
    {
        Self::from_fn_with(name, description, |definition| definition, function)
    }

    /// Like [`from_fn`](Self::from_fn), with further settings: annotations, limits, approval, a cache. Settings of
    /// `define` take precedence, including a schema of the arguments.
    ///
    /// ```
    /// use toolcrib_tool::{NoArguments, ToolEntry};
    ///
    /// let entry = ToolEntry::from_fn_with(
    ///     "uptime",
    ///     "Show how long the machine has been running.",
    ///     |definition| definition.read_only(true).open_world(false),
    ///     |_: NoArguments, _| async { "3 days" },
    /// )?;
    /// assert!(entry.definition.annotations().read_only);
    /// # Ok::<(), toolcrib_tool::DefinitionError>(())
    /// ```
    pub fn from_fn_with<T, F, R, O>(
        name: impl Into<String>,
        description: impl Into<String>,
        define: impl FnOnce(ToolDefinitionBuilder) -> ToolDefinitionBuilder,
        function: F,
    ) -> Result<Self, DefinitionError>
    where
        T: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(T, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = O> + Send + 'static,
        O: IntoOutcome,
    {
        let mut definition =
            ToolDefinition::builder(name).description(description).input_schema(schema_for::<T>());
        if let Some(schema) = O::output_schema() {
            definition = definition.output_schema(schema);
        }
        let source = Source::new(Layer::Host, HOST_PROGRAM);
        Ok(Self::new(define(definition).build()?, Arc::new(tool_fn(function)), source))
    }
}

/// The source of tools that the host program registers without naming a source.
const HOST_PROGRAM: &str = "host";

/// A tool made by [`tool_fn`].
#[derive(Debug)]
pub struct FnTool<T, F> {
    function: F,
    arguments: PhantomData<fn(T)>,
}

impl<T, F, R> Tool for FnTool<T, F>
where
    T: DeserializeOwned + Send + 'static,
    F: Fn(T, CallContext) -> R + Send + Sync + 'static,
    R: Future<Output: IntoOutcome> + Send + 'static,
{
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(
            async move { (self.function)(arguments.parse()?, cx.clone()).await.into_outcome() },
        )
    }

    fn validates(&self) -> bool {
        false
    }
}
