//! Outputs of tools that the client ran: all that are outstanding, at once.

use std::collections::HashMap;
use std::fmt;

use toolcrib_tool::{Data, ToolDefinition, ToolError, ToolOutput};

use super::{Suspension, Waiting};

/// What stands for an output without anything in it: providers refuse empty ones.
pub const NO_OUTPUT: &str = "(no output)";

/// The output of one call that the client ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    /// The id of the call.
    pub call_id: String,
    /// What came of it.
    pub output: ToolOutput,
}

impl Submission {
    /// An output for a call.
    pub fn new(call_id: impl Into<String>, output: impl Into<ToolOutput>) -> Self {
        Self { call_id: call_id.into(), output: output.into() }
    }
}

/// Why outputs were not accepted. None of them was; the calls still wait.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SubmitError {
    /// Calls that wait got no output.
    Missing {
        /// Their ids, in the order of the calls.
        call_ids: Vec<String>,
    },
    /// An id is that of no call that a client runs.
    Unknown {
        /// The id.
        call_id: String,
    },
    /// One call got two outputs.
    Twice {
        /// Its id.
        call_id: String,
    },
    /// An output does not fit what the tool declares.
    Invalid {
        /// The id of the call.
        call_id: String,
        /// What is wrong with it.
        error: ToolError,
    },
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { call_ids } => write!(
                f,
                "every waiting call must be answered at once; missing: {}",
                call_ids.join(", ")
            ),
            Self::Unknown { call_id } => write!(f, "no call of the id {call_id} waits for output"),
            Self::Twice { call_id } => write!(f, "the call {call_id} was answered twice"),
            Self::Invalid { call_id, error } => {
                write!(f, "the output of the call {call_id} is not right: {error}")?;
                error.hints().iter().try_for_each(|hint| write!(f, "\n{hint}"))
            }
        }
    }
}

impl std::error::Error for SubmitError {}

/// Holds submitted outputs against the client calls that wait: pairs of suspension and output, in
/// the order of the calls.
///
/// Of `outstanding`, only those count that wait for a client. Outputs for calls of `answered` are
/// skipped. `accept` checks one output and may change it; blank outputs reach it as [`NO_OUTPUT`].
///
/// ```
/// use toolcrib_core::suspension::{Submission, SubmitError, check_submissions};
///
/// let error = check_submissions(&[], &["done"], vec![
///     Submission::new("done", "again"),
///     Submission::new("other", "x"),
/// ], |_, output| Ok(output)).unwrap_err();
/// assert_eq!(error.to_string(), "no call of the id other waits for output");
/// ```
pub fn check_submissions<'s>(
    outstanding: &[&'s Suspension],
    answered: &[&str],
    submitted: Vec<Submission>,
    mut accept: impl FnMut(&Suspension, ToolOutput) -> Result<ToolOutput, ToolError>,
) -> Result<Vec<(&'s Suspension, ToolOutput)>, SubmitError> {
    let waiting: Vec<&Suspension> = outstanding
        .iter()
        .copied()
        .filter(|suspension| matches!(suspension.waiting(), Waiting::Client))
        .collect();
    let mut outputs = HashMap::with_capacity(submitted.len());
    for Submission { call_id, output } in submitted {
        if waiting.iter().any(|suspension| suspension.call_id() == call_id) {
            if outputs.contains_key(&call_id) {
                return Err(SubmitError::Twice { call_id });
            }
            outputs.insert(call_id, output);
        } else if !answered.contains(&call_id.as_str()) {
            return Err(SubmitError::Unknown { call_id });
        }
    }
    let missing = |suspension: &&&Suspension| !outputs.contains_key(suspension.call_id());
    let call_ids: Vec<_> =
        waiting.iter().filter(missing).map(|one| one.call_id().to_owned()).collect();
    if !call_ids.is_empty() {
        return Err(SubmitError::Missing { call_ids });
    }
    let mut accepted = Vec::with_capacity(waiting.len());
    for suspension in waiting {
        let Some(output) = outputs.remove(suspension.call_id()) else { continue };
        let output = accept(suspension, filled(output)).map_err(|error| SubmitError::Invalid {
            call_id: suspension.call_id().to_owned(),
            error,
        })?;
        accepted.push((suspension, output));
    }
    Ok(accepted)
}

/// A blank text becomes the placeholder; notes are kept.
fn filled(output: ToolOutput) -> ToolOutput {
    if output.data().is_none() && output.text().trim().is_empty() {
        output.replace_content(vec![NO_OUTPUT.into()])
    } else {
        output
    }
}

/// What a client's output means for a tool: where the tool declares an output schema and the client
/// sent text only, as most protocols have it, the text is read as the JSON of the data.
///
/// Fails with kind `invalid_output` where the text is no JSON. Whether the data fits the schema is
/// not checked here.
pub fn client_output(
    definition: &ToolDefinition,
    output: ToolOutput,
) -> Result<ToolOutput, ToolError> {
    if definition.output_schema().is_none() || output.data().is_some() {
        return Ok(output);
    }
    let data = Data::from_json(&output.text()).map_err(|error| {
        ToolError::new(
            toolcrib_tool::ErrorKind::InvalidOutput,
            format!("the tool declares structured output, and this is no JSON: {error}"),
        )
        .with_hint("Send the data as JSON text.")
    })?;
    Ok(output.with_exact_data(data))
}
