//! How a tool's call can end, and what a tool function may return.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::{InputRequest, ToolError, ToolOutput, schema_for};

/// How a tool's own work ended, unless it failed.
///
/// Waiting is data, not a sleeping future: a tool that needs a person or another system returns that as its outcome.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ToolOutcome {
    /// Finished, with output.
    Done(ToolOutput),
    /// Somebody must answer first. Made with [`needs_input`](Self::needs_input).
    NeedsInput(Box<InputRequest>),
    /// The work continues elsewhere; the ticket identifies it.
    Pending(Ticket),
}

impl ToolOutcome {
    /// Somebody must answer this first.
    pub fn needs_input(request: InputRequest) -> Self {
        Self::NeedsInput(Box::new(request))
    }
}

/// Identifies work that continues outside the call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ticket {
    /// The id under which the work can be queried.
    pub id: String,
}

impl Ticket {
    /// A ticket with that id.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into() }
    }
}

impl<T: Into<ToolOutput>> From<T> for ToolOutcome {
    fn from(output: T) -> Self {
        Self::Done(output.into())
    }
}

/// Structured output: serialized into the result's `data`; its schema becomes the tool's output schema.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Serialize;
/// use toolcrib_tool::{IntoOutcome, Json};
///
/// #[derive(Serialize, JsonSchema)]
/// struct Sum {
///     total: i64,
/// }
///
/// assert!(<Json<Sum> as IntoOutcome>::output_schema().is_some());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// The return types of a `#[tool]` function.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "not a tool's result",
    note = "return `String`, `serde_json::Value`, `ToolOutput`, `ToolOutcome`, `Json<T>` with `T: Serialize + JsonSchema`, or a `Result` of one of these"
)]
pub trait IntoOutcome {
    /// Turns the value into an outcome.
    fn into_outcome(self) -> Result<ToolOutcome, ToolError>;

    /// The JSON Schema of the result's `data`, if the type knows it.
    fn output_schema() -> Option<Value> {
        None
    }
}

impl<T: Serialize + JsonSchema> IntoOutcome for Json<T> {
    fn into_outcome(self) -> Result<ToolOutcome, ToolError> {
        let data = serde_json::to_value(self.0)
            .map_err(|error| ToolError::internal(format!("the result is not JSON: {error}")))?;
        Ok(ToolOutcome::Done(ToolOutput::from(data)))
    }

    fn output_schema() -> Option<Value> {
        Some(schema_for::<T>())
    }
}

impl<T: IntoOutcome, E: Into<ToolError>> IntoOutcome for Result<T, E> {
    fn into_outcome(self) -> Result<ToolOutcome, ToolError> {
        self.map_err(Into::into)?.into_outcome()
    }

    fn output_schema() -> Option<Value> {
        T::output_schema()
    }
}

impl IntoOutcome for ToolOutcome {
    fn into_outcome(self) -> Result<ToolOutcome, ToolError> {
        Ok(self)
    }
}

macro_rules! into_outcome_by_output {
    ($($type:ty),*) => {$(
        impl IntoOutcome for $type {
            fn into_outcome(self) -> Result<ToolOutcome, ToolError> {
                Ok(ToolOutcome::Done(self.into()))
            }
        }
    )*};
}

into_outcome_by_output!(String, &'static str, Value, ToolOutput, crate::Content);
