//! Records real calls, and plays them back without running anything.

mod recorder;
mod replay;

use std::fmt;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib_tool::{
    Data, InputPart, InputRequest, Ticket, ToolError, ToolOutcome, ToolOutput, canonical_json,
};

pub use recorder::Recorder;
pub use replay::Replay;

/// Recorded calls and answers, in the order of the answers.
///
/// As text it is one JSON object per line, for a file beside a test.
///
/// ```
/// use toolcrib_core::{Executor, ExecutorConfig, Registry, TurnOptions};
/// use toolcrib_testkit::recording::{Recorder, Recording, Replay};
/// use toolcrib_tool::ToolCall;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let live = Registry::scratch().tool("now", |_, _| async { "12:00" }).build()?;
/// let call = || ToolCall::new("1", "now", "{}");
///
/// let recorder = Recorder::new();
/// let recorded = Registry::new(recorder.wrap(&live.snapshot()));
/// Executor::new(recorded, ExecutorConfig::default()).turn(TurnOptions::default()).call(call()).await;
/// let text = recorder.recording().to_jsonl();
///
/// let replay = Replay::new(Recording::from_jsonl(&text)?);
/// let replayed = Registry::new(replay.wrap(&live.snapshot()));
/// let turn = Executor::new(replayed, ExecutorConfig::default()).turn(TurnOptions::default());
/// assert_eq!(turn.call(call()).await.text(), "12:00");
/// // It was recorded once, and so it is answered once.
/// assert!(turn.call(call()).await.text().contains("no further call of `now` with {}"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recording {
    calls: Vec<RecordedCall>,
}

/// One call that ran.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedCall {
    tool: String,
    arguments: Data,
    outcome: RecordedOutcome,
}

/// The version of the format of recordings that this program writes.
const FORM: u32 = 1;

fn form() -> u32 {
    FORM
}

/// A [`RecordedCall`] as one line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<T, A, O> {
    /// The version of the format; optional in version 1.
    #[serde(default = "form")]
    form: u32,
    tool: T,
    arguments: A,
    outcome: O,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum RecordedOutcome {
    Done(ToolOutput),
    Failed(ToolError),
    /// Refused by the tool's own check; it did not run.
    Refused(ToolError),
    NeedsInput {
        message: String,
        schema: Value,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<InputPart>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remembered: Option<Value>,
    },
    Pending {
        ticket: String,
    },
}

impl Recording {
    /// The calls, in the order in which they were answered.
    pub fn calls(&self) -> &[RecordedCall] {
        &self.calls
    }

    /// The recording as text: one JSON object per line with sorted keys, so equal recordings are equal texts.
    pub fn to_jsonl(&self) -> String {
        self.calls.iter().fold(String::new(), |mut text, call| {
            // Plain data with text keys: JSON can represent all of it.
            let line = Line {
                form: FORM,
                tool: &call.tool,
                arguments: call.arguments.protected(),
                outcome: &call.outcome,
            };
            let line = serde_json::to_value(line).unwrap_or_default();
            text.push_str(&canonical_json(&line));
            text.push('\n');
            text
        })
    }

    /// Parses the text of [`to_jsonl`](Self::to_jsonl); empty lines are skipped.
    pub fn from_jsonl(text: &str) -> Result<Self, RecordingError> {
        let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        let calls = lines
            .map(|(line, text)| recorded(text).map_err(|problem| RecordingError { line, problem }));
        Ok(Self { calls: calls.collect::<Result<_, _>>()? })
    }
}

fn recorded(line: &str) -> Result<RecordedCall, String> {
    let tape = toolcrib_json::parse(line).map_err(|error| error.to_string())?;
    let form = tape.root().get("form").and_then(|form| form.source().parse::<u64>().ok());
    if let Some(form) = form.filter(|form| *form > FORM.into()) {
        return Err(format!(
            "a newer toolcrib wrote it (form {form}, this program knows up to {FORM}): use that version, or record \
             the calls again"
        ));
    }
    let Line { form: _, tool, arguments: IgnoredAny, outcome } =
        serde_json::from_str(line).map_err(|error| error.to_string())?;
    let arguments = tape.root().get("arguments").map_or("{}", |arguments| arguments.source());
    let arguments = Data::from_json(arguments).map_err(|error| error.to_string())?;
    Ok(RecordedCall { tool, arguments, outcome })
}

impl RecordedCall {
    /// The tool's name.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The tool's arguments, rounded to what a [`Value`] holds ([`Data::value`]).
    pub fn arguments(&self) -> &Value {
        self.arguments.value()
    }

    /// The arguments with every number as written.
    pub fn exact_arguments(&self) -> &Data {
        &self.arguments
    }

    fn key(&self) -> (String, String) {
        (self.tool.clone(), self.arguments.to_json())
    }
}

impl RecordedOutcome {
    /// `None` for an outcome that this version cannot record.
    fn of(outcome: &Result<ToolOutcome, ToolError>) -> Option<Self> {
        Some(match outcome {
            Ok(ToolOutcome::Done(output)) => Self::Done(output.clone()),
            Ok(ToolOutcome::NeedsInput(request)) => Self::NeedsInput {
                message: request.message.clone(),
                schema: request.schema.clone(),
                parts: request.parts.clone(),
                remembered: request.remembered.clone(),
            },
            Ok(ToolOutcome::Pending(ticket)) => Self::Pending { ticket: ticket.id.clone() },
            Err(error) => Self::Failed(error.clone()),
            Ok(_) => return None,
        })
    }

    fn into_outcome(self) -> Result<ToolOutcome, ToolError> {
        Ok(match self {
            Self::Done(output) => ToolOutcome::Done(output),
            Self::NeedsInput { message, schema, parts, remembered } => {
                let mut request = InputRequest::new(message, schema);
                request.parts = parts;
                request.remembered = remembered;
                ToolOutcome::needs_input(request)
            }
            Self::Pending { ticket } => ToolOutcome::Pending(Ticket::new(ticket)),
            Self::Failed(error) | Self::Refused(error) => return Err(error),
        })
    }
}

/// A line that is not a recorded call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingError {
    /// From 1.
    line: usize,
    problem: String,
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, problem } = self;
        write!(f, "line {line} of the recording is not a recorded call: {problem}; record it again")
    }
}

impl std::error::Error for RecordingError {}
