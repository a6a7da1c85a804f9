//! Isolated registries for tests, with closures and mocks.

use std::future::Future;
use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_tool::{
    CallContext, DefinitionError, IntoOutcome, Layer, Source, ToolDefinition, ToolEntry, tool_fn,
};

use super::change::Edit;
use super::live::Registry;
use super::snapshot::RegistrySnapshot;
use crate::registry::RegistryBuilder;
use crate::testing::mock::Mock;

/// Builds an isolated registry: without linked-in tools, or as a copy of a real one in which some
/// bodies are mocks.
///
/// ```
/// use serde_json::json;
/// use toolcrib_core::{Executor, ExecutorConfig, Mock, Registry, TurnOptions};
/// use toolcrib_tool::{ErrorKind, ToolCall, ToolDefinition};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A program's registry …
/// let definition = ToolDefinition::builder("send_mail")
///     .description("Send a mail.")
///     .input_schema(json!({"properties": {"to": {"type": "string"}}, "required": ["to"]}))
///     .build()?;
/// let live = Registry::scratch().tool_as(definition, |_, _| async { "really sent" }).build()?;
///
/// // … and a copy in which nothing is sent. Its definitions and checks are the real ones.
/// let snapshot = live.snapshot();
/// let mail = Mock::of(&snapshot.get("send_mail").expect("it is there").definition).answers("sent");
/// let copy = snapshot.scratch().mock(&mail).build()?;
/// let turn = Executor::new(copy, ExecutorConfig::default()).turn(TurnOptions::default());
///
/// assert_eq!(turn.call(ToolCall::new("1", "send_mail", r#"{"to": "ada"}"#)).await.text(), "sent");
/// let refused = turn.call(ToolCall::new("2", "send_mail", "{}")).await;
/// assert_eq!(refused.error().map(|error| error.kind()), Some(ErrorKind::InvalidArgs));
/// assert_eq!(mail.calls()[0].arguments, json!({"to": "ada"}));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
#[must_use = "`build` makes the registry"]
pub struct Scratch {
    base: Option<RegistrySnapshot>,
    entries: Vec<ToolEntry>,
    mocks: Vec<Mock>,
    problem: Option<DefinitionError>,
}

impl Scratch {
    /// Adds a tool whose schema allows any object and whose description is its name.
    pub fn tool<F, R>(mut self, name: &str, body: F) -> Self
    where
        F: Fn(Value, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output: IntoOutcome> + Send + 'static,
    {
        let any = json!({"additionalProperties": true});
        match ToolDefinition::builder(name).description(name).input_schema(any).build() {
            Ok(definition) => self.tool_as(definition, body),
            Err(problem) => {
                self.problem.get_or_insert(problem);
                self
            }
        }
    }

    /// Adds a tool with its definition.
    pub fn tool_as<F, R>(self, definition: impl Into<Arc<ToolDefinition>>, body: F) -> Self
    where
        F: Fn(Value, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output: IntoOutcome> + Send + 'static,
    {
        let source = Source::new(Layer::Host, "scratch");
        self.entry(ToolEntry::new(definition, Arc::new(tool_fn(body)), source))
    }

    /// Adds an entry of any source.
    pub fn entry(mut self, entry: ToolEntry) -> Self {
        self.entries.push(entry);
        self
    }

    /// Replaces the body of the tool with the mock's name by the mock, and keeps the tool's
    /// definition; adds the mock as a tool if there is none.
    pub fn mock(mut self, mock: &Mock) -> Self {
        self.mocks.push(mock.clone());
        self
    }

    /// Builds the registry. Fails if a name is invalid.
    pub fn build(self) -> Result<Registry, DefinitionError> {
        let Self { base, entries, mocks, problem } = self;
        if let Some(problem) = problem {
            return Err(problem);
        }
        let mut snapshot = if let Some(base) = base {
            entries.into_iter().fold(base, |base, entry| base.edited(Edit::add(entry)).0)
        } else {
            let mut builder = RegistryBuilder::new();
            for entry in entries {
                // The snapshot lists the conflicts.
                let _ = builder.register(entry);
            }
            builder.build()
        };
        for mock in &mocks {
            if snapshot.get(mock.name()).is_none() {
                snapshot = snapshot.edited(Edit::add(mock.entry())).0;
            }
        }
        let mock = |entry: &ToolEntry| mocks.iter().rfind(|mock| mock.name() == entry.name());
        Ok(Registry::new(snapshot.with_bodies(|entry| mock(entry).map(Mock::body))))
    }
}

impl Registry {
    /// Starts an isolated registry for a test: no linked-in tools, nothing from files.
    pub fn scratch() -> Scratch {
        Scratch::default()
    }
}

impl RegistrySnapshot {
    /// Starts a copy for a test, in which bodies can be replaced by mocks. The original is not
    /// affected; other bodies are shared.
    pub fn scratch(&self) -> Scratch {
        Scratch { base: Some(self.with_bodies(|_| None)), ..Scratch::default() }
    }
}
