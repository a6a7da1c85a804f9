//! What the input of a request means for a run.

use std::time::Duration;

use toolcrib_agent::run::AgentRun;
use toolcrib_agent::{ClientRequest, JournalEntry, JournalRow, summary_item};
use toolcrib_core::TurnOptions;
use toolcrib_tool::{ToolOutput, ToolResult};
use toolcrib_wire::api::ApiError;
use toolcrib_wire::model::Item;
use toolcrib_wire::responses::{InputItem, InputKind, Submission};

use super::fault;
use crate::Toolcrib;

/// The source of what a client says that a model has said. No model has it, so each gets what it means.
const CLIENT: &str = "client";

/// What the model reads in place of a blank output.
pub(super) const BLANK: &str = "(no output)";

impl Toolcrib {
    /// What an input says, for a conversation. Compactions become the summaries that are sealed in them.
    pub(super) async fn history(
        &self,
        client: &TurnOptions,
        input: &[InputItem],
    ) -> Result<Vec<Item>, ApiError> {
        let mut history = Vec::new();
        for item in input {
            match &item.kind {
                InputKind::Compaction { encrypted_content } => {
                    let summary = self.unsealed(client, encrypted_content).await?;
                    let summary = summary.ok_or_else(|| {
                        let problem = "this server has not made the compaction for you: send the items that it \
                                       stands for";
                        ApiError::invalid(problem)
                            .with_code("invalid_value")
                            .with_param(format!("input[{}].encrypted_content", item.index))
                    })?;
                    history.push(summary_item(&summary));
                }
                _ => history.extend(item.items(CLIENT)),
            }
        }
        Ok(history)
    }
}

/// What there is not.
pub(super) fn unsupported(param: &str, problem: &str) -> ApiError {
    ApiError::invalid(problem).with_code("unsupported_parameter").with_param(param)
}

/// Refuses items that are kept nowhere.
pub(super) fn check_items(input: &[InputItem]) -> Result<(), ApiError> {
    let reference = input.iter().find(|item| matches!(item.kind, InputKind::Reference { .. }));
    reference.map_or(Ok(()), |item| {
        Err(unsupported(
            &format!("input[{}]", item.index),
            "items are not kept by their ids: send the item itself, or `previous_response_id`",
        ))
    })
}

/// Refuses calls without an output.
pub(super) fn answered(open: &[&str]) -> Result<(), ApiError> {
    if open.is_empty() { Ok(()) } else { Err(missing_outputs(open)) }
}

fn missing_outputs(calls: &[&str]) -> ApiError {
    let message = format!("no output for the calls {}: send one for each", calls.join(", "));
    ApiError::invalid(message).with_code("missing_tool_output").with_param("input")
}

/// Refuses outputs of calls for which none is needed.
pub(super) fn unknown_outputs<'a>(
    outputs: impl Iterator<Item = &'a Submission>,
) -> Result<(), ApiError> {
    let calls: Vec<&str> = outputs.map(|one| one.answer.call_id.as_str()).collect();
    if calls.is_empty() {
        return Ok(());
    }
    let message = format!("no call waits for the outputs of {}", calls.join(", "));
    Err(ApiError::invalid(message).with_code("unknown_tool_output").with_param("input"))
}

/// The results of the calls that the client has.
pub(super) fn results<'a>(
    submitted: impl Iterator<Item = &'a Submission>,
    state: &AgentRun,
) -> Result<Vec<ToolResult>, ApiError> {
    let submitted: Vec<&Submission> = submitted.collect();
    let is_for = |call: &str, one: &Submission| one.answer.call_id.as_str() == call;
    let missing: Vec<&str> = state
        .handed_over()
        .map(|(call, _)| call.as_str())
        .filter(|call| !submitted.iter().any(|one| is_for(call, one)))
        .collect();
    let waits = |one: &Submission| state.handed_over().any(|(call, _)| is_for(call.as_str(), one));
    let unknown = submitted.iter().copied().filter(|one| !waits(one));
    if !missing.is_empty() {
        let names: Vec<String> =
            unknown.map(|one| format!("{:?}", one.answer.call_id.as_str())).collect();
        let mut error = missing_outputs(&missing);
        if !names.is_empty() {
            error.message.push_str("; no call waits for that of ");
            error.message.push_str(&names.join(", "));
        }
        return Err(error);
    }
    unknown_outputs(unknown)?;
    let result = |one: &Submission| {
        let tool = state.handed_over().find(|(call, _)| is_for(call.as_str(), one))?.1.to_owned();
        let is_blank = one.answer.output.content().is_empty()
            && one.answer.output.data().is_none()
            && one.answer.output.text().trim().is_empty();
        let output = if is_blank { ToolOutput::from(BLANK) } else { one.answer.output.clone() };
        Some(ToolResult::success(one.answer.call_id.clone(), tool, output, Duration::ZERO))
    };
    Ok(submitted.into_iter().filter_map(result).collect())
}

/// A request with this conversation. The messages at its end are what the client says now.
pub(super) fn with(mut history: Vec<Item>) -> ClientRequest {
    let is_message = |item: &Item| matches!(item, Item::Input(_));
    let at = history.iter().rposition(|item| !is_message(item)).map_or(0, |last| last + 1);
    let input = history.split_off(at);
    ClientRequest { history, input, ..ClientRequest::default() }
}

/// The conversation of a run with the results of its open calls.
pub(super) fn continued(
    mut run: AgentRun,
    results: Vec<ToolResult>,
) -> Result<Vec<Item>, ApiError> {
    let request = ClientRequest { results, ..ClientRequest::default() };
    let entry = JournalEntry::Requested(Box::new(request));
    run.apply(JournalRow::new(run.last_at(), entry))
        .map_err(|error| fault("the conversation cannot be continued", &error))?;
    Ok(run.conversation().iter().flatten().cloned().collect())
}
