//! Putting the parts together: entries in, every name decided, an executor out.

use std::fmt;

use toolcrib_core::{
    Conflict, Executor, ExecutorConfig, Registry, RegistryBuilder, Turn, TurnOptions,
};
use toolcrib_tool::{ContextValues, DefinitionError, ToolEntry};

/// Collects entries and settings; [`build`](Self::build) decides every name.
///
/// ```
/// use std::sync::Arc;
/// use toolcrib::tool::{Layer, Source};
/// use toolcrib::{ToolCall, ToolDefinition, ToolEntry, Toolcrib, tool_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let definition = ToolDefinition::builder("greet")
///     .description("Greet somebody by name.")
///     .input_schema(serde_json::json!({
///         "properties": {"name": {"type": "string"}},
///         "required": ["name"],
///     }))
///     .build()?;
/// let body = tool_fn(|args: serde_json::Value, _| async move {
///     format!("Hello, {}!", args["name"].as_str().unwrap_or_default())
/// });
/// let crib = Toolcrib::builder()
///     .entry(ToolEntry::new(definition, Arc::new(body), Source::new(Layer::Host, "my-host")))
///     .build()?;
///
/// let result = crib.turn().call(ToolCall::new("call_1", "greet", r#"{"name": "Ada"}"#)).await;
/// assert_eq!(result.text(), "Hello, Ada!");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct ToolcribBuilder {
    entries: Vec<ToolEntry>,
    native: bool,
    refuse_duplicates: bool,
    executor: ExecutorConfig,
    context: ContextValues,
}

impl ToolcribBuilder {
    /// Adds a tool.
    #[must_use]
    pub fn entry(mut self, entry: ToolEntry) -> Self {
        self.entries.push(entry);
        self
    }

    /// Adds the tools of a source, for example of
    /// [`Manifests::entries`](crate::manifests::Manifests::entries), in their order.
    #[must_use]
    pub fn entries(mut self, entries: impl IntoIterator<Item = ToolEntry>) -> Self {
        self.entries.extend(entries);
        self
    }

    /// Adds every tool linked into this binary (`#[tool]`).
    #[must_use]
    pub fn native_tools(mut self) -> Self {
        self.native = true;
        self
    }

    /// Makes a name that is declared twice an error. Default: the first keeps it, and the other
    /// is listed by [`conflicts`](toolcrib_core::RegistrySnapshot::conflicts).
    #[must_use]
    pub fn refuse_duplicates(mut self, refuse: bool) -> Self {
        self.refuse_duplicates = refuse;
        self
    }

    /// Sets how calls are run.
    #[must_use]
    pub fn executor(mut self, config: ExecutorConfig) -> Self {
        self.executor = config;
        self
    }

    /// Sets the values every turn of [`Toolcrib::turn`] has in its context.
    #[must_use]
    pub fn context(mut self, values: ContextValues) -> Self {
        self.context = values;
        self
    }

    /// Decides every name and makes the executor.
    pub fn build(self) -> Result<Toolcrib, BuildError> {
        let mut registry = RegistryBuilder::new();
        if self.native {
            registry.register_native()?;
        }
        for entry in self.entries {
            // The snapshot lists who lost a name: only it knows the final owners.
            let _ = registry.register(entry);
        }
        let snapshot = registry.build();
        if self.refuse_duplicates
            && let [first, ..] = snapshot.conflicts()
        {
            return Err(BuildError::Duplicate(Box::new(first.clone())));
        }
        Ok(Toolcrib {
            executor: Executor::new(Registry::new(snapshot), self.executor),
            context: self.context,
        })
    }
}

/// A crib of tools, ready to hand them out. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct Toolcrib {
    executor: Executor,
    context: ContextValues,
}

impl Toolcrib {
    /// Starts an empty crib.
    pub fn builder() -> ToolcribBuilder {
        ToolcribBuilder::default()
    }

    /// Opens a turn with the crib's own context.
    pub fn turn(&self) -> Turn {
        self.executor.turn(TurnOptions::default().values(self.context.clone()))
    }

    /// The executor, for turns with a context of their own and for servers.
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// The values [`turn`](Self::turn) puts into the context.
    pub fn context(&self) -> &ContextValues {
        &self.context
    }
}

/// Why a crib could not be built.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// A linked-in tool's definition is wrong.
    Definition(DefinitionError),
    /// A name is declared twice, and duplicates are refused.
    Duplicate(Box<Conflict>),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Definition(error) => error.fmt(f),
            Self::Duplicate(conflict) => write!(
                f,
                "the tool name `{}` is declared twice: by {} and by {}. Rename one of them, or set \
                 registry.on_duplicate to `warn` to let the first keep the name",
                conflict.loser.name(),
                conflict.winner,
                conflict.loser.source
            ),
        }
    }
}

impl std::error::Error for BuildError {}

impl From<DefinitionError> for BuildError {
    fn from(error: DefinitionError) -> Self {
        Self::Definition(error)
    }
}
