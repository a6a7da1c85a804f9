//! Submitting the outputs of client tools, all at once.

use std::collections::HashMap;
use std::fmt;

use toolcrib_tool::{Data, ToolDefinition, ToolError, ToolOutput};

use super::{Suspension, Waiting};

/// The placeholder for an empty output, because providers refuse empty ones.
pub const NO_OUTPUT: &str = "(no output)";

/// The output of one call that the client ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    /// The id of the call.
    pub call_id: String,
    /// The output.
    pub output: ToolOutput,
}

impl Submission {
    /// An output for a call.
    pub fn new(call_id: impl Into<String>, output: impl Into<ToolOutput>) -> Self {
        Self { call_id: call_id.into(), output: output.into() }
    }
}

/// Why outputs were refused. None was accepted; the calls still wait.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SubmitError {
    /// Outputs of waiting calls are missing.
    Missing {
        /// Their ids, in the order of the calls.
        call_ids: Vec<String>,
    },
    /// An id does not belong to a waiting client call.
    Unknown {
        /// The id.
        call_id: String,
    },
    /// A call has two outputs.
    Twice {
        /// Its id.
        call_id: String,
    },
    /// An output does not match the tool's output schema.
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

/// Matches submitted outputs with the waiting client calls; returns pairs of suspension and output,
/// in call order.
///
/// Only calls in `outstanding` that wait for a client are considered. Outputs for calls in
/// `answered` are ignored. `accept` checks and may change an output; blank outputs are replaced by
/// [`NO_OUTPUT`].
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

/// Replaces a blank text by the placeholder; notes are kept.
fn filled(output: ToolOutput) -> ToolOutput {
    if output.data().is_none() && output.text().trim().is_empty() {
        output.replace_content(vec![NO_OUTPUT.into()])
    } else {
        output
    }
}

/// Converts a client's output for a tool: if the tool declares an output schema and the client sent
/// only text, as in most protocols, the text is parsed as the JSON data.
///
/// Fails with kind `invalid_output` if the text is not valid JSON. The data is not validated here.
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
            format!("the tool declares structured output, and this is not JSON: {error}"),
        )
        .with_hint("Send the data as JSON text.")
    })?;
    Ok(output.with_exact_data(data))
}
