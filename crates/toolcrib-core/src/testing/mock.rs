//! Mock tools for tests.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use toolcrib_tool::{
    Arguments, Body, BoxFuture, CallContext, ContextValues, ErrorKind, IntoOutcome, Layer, Source,
    Tool, ToolDefinition, ToolEntry, ToolError, ToolOutcome, ToolOutput,
};

use crate::registry::SourceUnit;

/// A mock tool. It returns its scripted answers in order and repeats the last one. Clones are the
/// same mock.
///
/// ```
/// use toolcrib_core::{Executor, ExecutorConfig, Mock, Registry, TurnOptions};
/// use toolcrib_tool::{ErrorKind, ToolCall, ToolDefinition};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), toolcrib_tool::DefinitionError> {
/// let definition = ToolDefinition::builder("weather")
///     .description("Tell the weather.")
///     .input_schema(serde_json::json!({"properties": {"town": {"type": "string"}}}))
///     .build()?;
/// let weather = Mock::tool(definition)
///     .fails(ErrorKind::Unavailable, "no satellite")
///     .answers_with(|args| format!("rain in {}", args["town"].as_str().unwrap_or("town")));
///
/// let registry = Registry::scratch().mock(&weather).build()?;
/// let turn = Executor::new(registry, ExecutorConfig::default()).turn(TurnOptions::default());
/// assert!(!turn.call(ToolCall::new("1", "weather", "{}")).await.is_success());
/// let second = turn.call(ToolCall::new("2", "weather", r#"{"town": "Rome"}"#)).await;
/// assert_eq!(second.text(), "rain in Rome");
/// assert_eq!(weather.calls().len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Mock {
    definition: Arc<ToolDefinition>,
    script: Arc<Script>,
}

/// A call that a mock received.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MockCall {
    /// The caller's id.
    pub call_id: String,
    /// The arguments, as checked and completed by the pipeline.
    pub arguments: Value,
    /// The context values.
    pub values: ContextValues,
}

type ScriptedAnswer = Box<dyn Fn(&Value) -> Result<ToolOutcome, ToolError> + Send + Sync>;

#[derive(Default)]
struct Script(Mutex<Progress>);

#[derive(Default)]
struct Progress {
    steps: Vec<Arc<ScriptedAnswer>>,
    calls: Vec<MockCall>,
}

impl Mock {
    /// A mock with this definition.
    pub fn tool(definition: ToolDefinition) -> Self {
        Self { definition: Arc::new(definition), script: Arc::default() }
    }

    /// A mock of an existing tool, with its definition.
    pub fn of(definition: &Arc<ToolDefinition>) -> Self {
        Self { definition: Arc::clone(definition), script: Arc::default() }
    }

    /// Adds an answer for the next call; the last answer is repeated.
    #[must_use]
    pub fn answers(self, output: impl Into<ToolOutput>) -> Self {
        let output = output.into();
        self.then(move |_| Ok(ToolOutcome::Done(output.clone())))
    }

    /// Adds an answer that is computed from the arguments.
    #[must_use]
    pub fn answers_with<F, R>(self, answer: F) -> Self
    where
        F: Fn(&Value) -> R + Send + Sync + 'static,
        R: IntoOutcome,
    {
        self.then(move |arguments| answer(arguments).into_outcome())
    }

    /// Adds an error for the next call.
    #[must_use]
    pub fn fails(self, kind: ErrorKind, message: impl Into<String>) -> Self {
        self.fails_with(ToolError::new(kind, message))
    }

    /// Adds this error.
    #[must_use]
    pub fn fails_with(self, error: ToolError) -> Self {
        self.then(move |_| Err(error.clone()))
    }

    fn then(
        self,
        step: impl Fn(&Value) -> Result<ToolOutcome, ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.script.progress().steps.push(Arc::new(Box::new(step)));
        self
    }

    /// The calls it received so far, in order, without calls that were refused before the tool ran
    /// or answered from a cache.
    pub fn calls(&self) -> Vec<MockCall> {
        self.script.progress().calls.clone()
    }

    /// The tool's name.
    pub fn name(&self) -> &str {
        self.definition.name()
    }

    /// The mock as a host entry.
    pub fn entry(&self) -> ToolEntry {
        self.entry_of(&SourceUnit::new(Layer::Host, "mock"))
    }

    /// The mock as an entry of this unit.
    pub fn entry_of(&self, unit: &SourceUnit) -> ToolEntry {
        let source = Source::new(unit.layer(), unit.name());
        ToolEntry::new(Arc::clone(&self.definition), Arc::clone(&self.script) as _, source)
    }

    pub(crate) fn body(&self) -> Body {
        Body::shared(Arc::clone(&self.script) as _)
    }
}

impl Script {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let progress = self.progress();
        f.debug_struct("Script")
            .field("steps", &progress.steps.len())
            .field("calls", &progress.calls)
            .finish()
    }
}

impl Tool for Script {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async move {
            let arguments = arguments.value();
            let step = {
                let mut progress = self.progress();
                let number = progress.calls.len();
                progress.calls.push(MockCall {
                    call_id: cx.call_id().as_str().to_owned(),
                    arguments: arguments.clone(),
                    values: cx.values().clone(),
                });
                progress.steps.get(number).or(progress.steps.last()).map(Arc::clone)
            };
            // Outside the lock, because the closure is foreign code.
            match step {
                Some(step) => step(arguments),
                None => Err(ToolError::unavailable(format!(
                    "the mock of `{}` has no answer: call `answers` or `fails` on it",
                    cx.definition().name()
                ))),
            }
        })
    }

    fn validates(&self) -> bool {
        false
    }
}
