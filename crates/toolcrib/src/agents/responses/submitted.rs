//! Outputs of the client's calls that arrive at the run instead of with a request that goes on from its response.

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_agent::{Agent, ClientRequest, JournalEntry, JournalRow, RunReport};
use toolcrib_core::run::RunError;
use toolcrib_core::suspension::{Submission, SubmitError};
use toolcrib_http::AgentRunError;
use toolcrib_tool::{CallId, ToolOutput, ToolResult};

use super::input::BLANK;
use super::segment::with_input;
use crate::agents::served::problem;

/// Adds the outputs of all calls that the client of a run has, as a request with the same wishes as the last one. The run
/// goes on when it is resumed.
pub(in crate::agents) async fn submitted(
    agent: &Agent,
    report: &RunReport,
    outputs: Vec<Submission>,
) -> Result<(), AgentRunError> {
    let (id, run) = (report.id(), report.run());
    let refused = |error: SubmitError| AgentRunError::Resolve(RunError::from(error));
    let is_for = |call: &CallId, one: &Submission| one.call_id == call.as_str();
    for (at, one) in outputs.iter().enumerate() {
        let call_id = one.call_id.clone();
        if !run.handed_over().any(|(call, _)| is_for(call, one)) {
            return Err(refused(SubmitError::Unknown { call_id }));
        }
        if outputs[..at].iter().any(|before| before.call_id == call_id) {
            return Err(refused(SubmitError::Twice { call_id }));
        }
    }
    let is_missing = |call: &CallId| !outputs.iter().any(|one| is_for(call, one));
    let missing = run.handed_over().filter(|(call, _)| is_missing(call));
    let call_ids: Vec<String> = missing.map(|(call, _)| call.as_str().to_owned()).collect();
    if !call_ids.is_empty() {
        return Err(refused(SubmitError::Missing { call_ids }));
    }
    let mut results: Vec<ToolResult> = Vec::new();
    let mut input: Vec<Value> = Vec::new();
    for Submission { call_id, output } in outputs {
        let known = run.handed_over().find(|(call, _)| call.as_str() == call_id);
        let Some((call, tool)) = known else { continue };
        let is_blank = output.content().is_empty()
            && output.data().is_none()
            && output.text().trim().is_empty();
        let output = if is_blank { ToolOutput::from(BLANK) } else { output };
        input.push(json!({
            "id": format!("fco_{id}{:04x}", input.len()),
            "type": "function_call_output",
            "status": "completed",
            "call_id": call_id,
            "output": output.text(),
        }));
        results.push(ToolResult::success(call.clone(), tool.to_owned(), output, Duration::ZERO));
    }
    let last = run.last_request().unwrap_or_default();
    let rows = agent.rows(id, last.saturating_sub(1), 1).await.map_err(problem)?;
    let Some((_, JournalRow { entry: JournalEntry::Requested(before), .. })) =
        rows.into_iter().next()
    else {
        return Err(AgentRunError::Internal("the last request is missing".to_owned()));
    };
    let ClientRequest { settings, note, .. } = *before;
    let note = with_input(note, input);
    let request = ClientRequest { results, settings, note, ..ClientRequest::default() };
    Box::pin(agent.add_request(id, last, request)).await.map(drop).map_err(problem)
}
