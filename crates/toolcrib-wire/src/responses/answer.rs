//! Reads the outputs that clients submit for calls that they ran.

use std::collections::HashSet;
use std::error::Error;
use std::fmt;

use serde_json::Value;
use toolcrib_tool::{CallId, ToolOutput};

use super::answer_parts::parts;

/// The output of one call that the client ran.
///
/// The run decides whether the call was outstanding; this module only reads.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolAnswer {
    /// The id of the call.
    pub call_id: CallId,
    /// The output: parts, or data if the client sent JSON instead of text. Blank texts are kept.
    pub output: ToolOutput,
}

/// An error in submitted outputs: its position, and what to send instead.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerError {
    /// JSON pointer into the submitted JSON; empty for the whole.
    pub at: String,
    /// The problem and what would be correct.
    pub message: String,
}

impl AnswerError {
    pub(super) fn new(at: impl Into<String>, message: impl Into<String>) -> Self {
        Self { at: at.into(), message: message.into() }
    }
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.at.is_empty() { "the outputs" } else { &self.at };
        write!(f, "{at}: {}", self.message)
    }
}

impl Error for AnswerError {}

/// Reads the body of `submit_tool_outputs`: `{tool_outputs: [{tool_call_id, output}]}`.
///
/// `output` is text, or absent for an empty one; any other JSON becomes data.
///
/// ```
/// use serde_json::json;
/// use toolcrib_wire::responses::read_tool_outputs;
///
/// let body = json!({"tool_outputs": [{"tool_call_id": "call_1", "output": "open"}]});
/// let answers = read_tool_outputs(&body)?;
/// assert_eq!(answers[0].call_id.as_str(), "call_1");
/// assert_eq!(answers[0].output.text(), "open");
///
/// let error = read_tool_outputs(&json!({"tool_outputs": [{"output": "open"}]})).unwrap_err();
/// assert_eq!(error.to_string(), "/tool_outputs/0: `tool_call_id` must be the id of a call");
/// # Ok::<(), toolcrib_wire::responses::AnswerError>(())
/// ```
pub fn read_tool_outputs(body: &Value) -> Result<Vec<ToolAnswer>, AnswerError> {
    let list = body.get("tool_outputs").and_then(Value::as_array).ok_or_else(|| {
        AnswerError::new("", "send {\"tool_outputs\": [{\"tool_call_id\", \"output\"}]}")
    })?;
    let mut answers = Answers::default();
    for (index, entry) in list.iter().enumerate() {
        let at = format!("/tool_outputs/{index}");
        let id = id(entry, &["tool_call_id"], &at)?;
        let output = match entry.get("output") {
            None | Some(Value::Null) => ToolOutput::from(""),
            Some(Value::String(text)) => ToolOutput::from(text.as_str()),
            Some(data) => ToolOutput::from(data.clone()),
        };
        answers.add(id, output, &at)?;
    }
    Ok(answers.list)
}

/// Reads the outputs among a Responses request's `input` items: `function_call_output`, `custom_tool_call_output` and
/// `local_shell_call_output`. Other items are skipped, and an `input` that is one text has no outputs.
///
/// `output` is text, or a list of `input_text`, `input_image` and `input_file` parts. A local shell's output names its
/// call in `call_id`, or in `id` as the API does.
///
/// ```
/// use serde_json::json;
/// use toolcrib_wire::responses::read_output_items;
///
/// let input = json!([
///     {"role": "user", "content": "Go on."},
///     {"type": "function_call_output", "call_id": "call_1", "output": "open"},
///     {"type": "local_shell_call_output", "id": "call_2", "output": "README.md"},
/// ]);
/// let answers = read_output_items(&input)?;
/// let ids: Vec<&str> = answers.iter().map(|answer| answer.call_id.as_str()).collect();
/// assert_eq!(ids, ["call_1", "call_2"]);
/// # Ok::<(), toolcrib_wire::responses::AnswerError>(())
/// ```
pub fn read_output_items(input: &Value) -> Result<Vec<ToolAnswer>, AnswerError> {
    let items = match input {
        Value::Array(items) => items.as_slice(),
        Value::String(_) | Value::Null => &[],
        _ => return Err(AnswerError::new("", "`input` must be text or a list of items")),
    };
    let mut answers = Answers::default();
    for (index, item) in items.iter().enumerate() {
        let at = format!("/{index}");
        let keys: &[&str] = match item.get("type").and_then(Value::as_str) {
            Some("function_call_output" | "custom_tool_call_output") => &["call_id"],
            Some("local_shell_call_output") => &["call_id", "id"],
            _ => continue,
        };
        let id = id(item, keys, &at)?;
        let at_output = format!("{at}/output");
        let output = match item.get("output") {
            Some(Value::String(text)) => ToolOutput::from(text.as_str()),
            Some(Value::Array(list)) => parts(list, &at_output)?,
            _ => {
                return Err(AnswerError::new(
                    at_output,
                    "must be text or a list of input_text, input_image and input_file parts",
                ));
            }
        };
        answers.add(id, output, &at)?;
    }
    Ok(answers.list)
}

/// The id of the call: the first of the keys that is present.
fn id<'a>(entry: &'a Value, keys: &[&str], at: &str) -> Result<&'a str, AnswerError> {
    let given = keys.iter().find_map(|key| entry.get(*key).filter(|id| !id.is_null()));
    given.and_then(Value::as_str).filter(|id| !id.is_empty()).ok_or_else(|| {
        let keys = keys.join("` or `");
        AnswerError::new(at, format!("`{keys}` must be the id of a call"))
    })
}

/// The answers so far, at most one for each call.
#[derive(Default)]
struct Answers<'a> {
    seen: HashSet<&'a str>,
    list: Vec<ToolAnswer>,
}

impl<'a> Answers<'a> {
    fn add(&mut self, id: &'a str, output: ToolOutput, at: &str) -> Result<(), AnswerError> {
        if !self.seen.insert(id) {
            return Err(AnswerError::new(
                at,
                format!("call {id:?} is answered twice; send one output for each call"),
            ));
        }
        self.list.push(ToolAnswer { call_id: CallId::new(id), output });
        Ok(())
    }
}
