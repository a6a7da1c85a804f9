//! Chat completions that go on from runs: their messages have the calls of the client only, the run has those of the
//! server's tools as well.

use serde_json::Value;
use toolcrib_core::TurnOptions;
use toolcrib_http::ResponseId;
use toolcrib_tool::CallId;
use toolcrib_wire::api::ApiError;
use toolcrib_wire::responses::{Dialect, Include, InputItem, InputKind, ResponseRequest};

use super::segment::Segment;
use crate::Toolcrib;
use crate::agents::AgentName;

impl Toolcrib {
    /// Whether the run of a chat completion is kept while its client has calls of it: the server's own calls may stand
    /// before them.
    pub(super) fn keeps_chat(&self, name: &AgentName, request: &ResponseRequest) -> bool {
        let has_calls = request.previous_response_id.is_some() || !request.tools.is_empty();
        matches!(name, AgentName::Entry(_)) && self.runs().is_some() && has_calls
    }

    /// The response from which a chat completion goes on whose last call is one of `before`, and what its messages say
    /// after that: answers that the run has are left out, and outputs have the model's ids of their calls.
    pub(super) async fn chat_before(
        &self,
        client: &TurnOptions,
        before: Segment,
        input: &mut Vec<InputItem>,
    ) -> Result<Segment, ApiError> {
        let shown = self.shown_in_chat(client, &before)?;
        let is_call = |item: &&Value| {
            ["function_call", "custom_tool_call"].iter().any(|kind| item["type"] == *kind)
        };
        let calls: Vec<&str> =
            shown.iter().filter(is_call).filter_map(|item| item["call_id"].as_str()).collect();
        for item in &mut *input {
            let InputKind::Output(output) = &mut item.kind else { continue };
            let known = ResponseId::of_call(output.answer.call_id.as_str());
            let at = known.and_then(|(id, at)| (id == *before.id()).then_some(at));
            if let Some(call) = at.and_then(|at| calls.get(at)) {
                output.answer.call_id = CallId::new(*call);
                output.tool = None;
            }
        }
        let (reader, mut last) = (self.reader(client.clone()), before);
        while let Some(next) = last.next() {
            let said = input.iter().enumerate().find_map(|(at, item)| match &item.kind {
                InputKind::Assistant { text, .. } => Some((at, text)),
                _ => None,
            });
            let Some((at, said)) = said else { break };
            // It may have been removed.
            let Ok(later) = Segment::load(&reader, &next).await else { break };
            if *said != text_of(&self.shown_in_chat(client, &later)?) {
                break;
            }
            input.drain(..=at);
            last = later;
        }
        Ok(last)
    }

    /// The output of a response as a chat completion shows it.
    fn shown_in_chat(
        &self,
        client: &TurnOptions,
        segment: &Segment,
    ) -> Result<Vec<Value>, ApiError> {
        let shown_by = (self.executor().turn(client.clone()), Dialect::OpenAi);
        let mut presenter = segment.presenter(shown_by, Include::default())?;
        segment.events(&mut presenter);
        presenter.rest(&segment.state()?, &[]);
        Ok(presenter.value()["output"].as_array().cloned().unwrap_or_default())
    }
}

/// All texts of an output.
fn text_of(output: &[Value]) -> String {
    let messages = output.iter().filter(|item| item["type"] == "message");
    let parts = messages.flat_map(|item| item["content"].as_array().into_iter().flatten());
    parts.filter_map(|part| part["text"].as_str()).collect()
}
