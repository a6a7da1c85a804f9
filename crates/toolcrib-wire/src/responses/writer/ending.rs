//! The ends of a response.

use serde_json::json;
use toolcrib_tool::ErrorKind;

use super::frame::event_of;
use super::{ResponseWriter, StreamEvent};
use crate::model::Usage;
use crate::responses::resource::{ResponseFailure, ResponseStatus};

/// The ends. There is one, and nothing follows it.
impl ResponseWriter {
    /// The response is whole, at this time in Unix seconds. It fails instead if a call for the client is not complete.
    pub fn complete(&mut self, completed_at: u64, usage: Option<Usage>) -> Vec<StreamEvent> {
        let mut out = Vec::new();
        if self.is_over() {
            return out;
        }
        self.start(&mut out);
        self.end_all_spoken(None, &mut out);
        for call_id in self.open_calls() {
            if !self.stream.is_clients(&call_id) {
                self.fail_call(&call_id, ErrorKind::Cancelled, "the call was not run", &mut out);
            } else if let Ok((events, _)) = self.hand_over(&call_id) {
                out.extend(events);
            } else {
                let problem = format!("the call {:?} was not written completely", call_id.as_str());
                out.extend(self.fail(ResponseFailure::new("server_error", problem), usage));
                return out;
            }
        }
        self.resource.completed_at = Some(completed_at);
        self.end(ResponseStatus::Completed, "response.completed", usage, &mut out);
        out
    }

    /// The response ends early, for example for `max_output_tokens`. The item that was being written last is incomplete.
    pub fn incomplete(
        &mut self,
        reason: impl Into<String>,
        usage: Option<Usage>,
    ) -> Vec<StreamEvent> {
        let mut out = Vec::new();
        if self.is_over() {
            return out;
        }
        self.start(&mut out);
        let reason = reason.into();
        self.end_open_items(&reason, &mut out);
        self.resource.incomplete_reason = Some(reason);
        self.end(ResponseStatus::Incomplete, "response.incomplete", usage, &mut out);
        out
    }

    /// The response fails: an event with the error, then the failed response.
    pub fn fail(&mut self, failure: ResponseFailure, usage: Option<Usage>) -> Vec<StreamEvent> {
        let mut out = Vec::new();
        if self.is_over() {
            return out;
        }
        self.start(&mut out);
        self.end_open_items(&failure.message, &mut out);
        // Some clients read the error in an object of its own, others in the event.
        let (code, message) = (&failure.code, &failure.message);
        let members = json!({
            "code": code,
            "message": message,
            "param": null,
            "error": {"type": code, "code": code, "message": message, "param": null},
        });
        let number = self.stream.numbering.take_sequence_number();
        out.push(event_of("error", number, &members));
        self.resource.error = Some(failure);
        self.end(ResponseStatus::Failed, "response.failed", usage, &mut out);
        out
    }

    /// Somebody cancelled the response. There is no event for it: the stream ends.
    pub fn cancel(&mut self, usage: Option<Usage>) {
        if self.is_over() {
            return;
        }
        let mut unsent = Vec::new();
        self.start(&mut unsent);
        self.end_open_items("the response was cancelled", &mut unsent);
        // The numbers of events that nobody sees are not used up.
        let unsent = unsent.len() as u64;
        self.stream.numbering.next_sequence_number -= unsent;
        self.resource.status = ResponseStatus::Cancelled;
        self.resource.usage = usage;
    }

    fn end(
        &mut self,
        status: ResponseStatus,
        name: &str,
        usage: Option<Usage>,
        out: &mut Vec<StreamEvent>,
    ) {
        self.resource.status = status;
        self.resource.usage = usage;
        let event = self.response_event(name);
        out.push(event);
    }

    /// Ends what is open: the last item as incomplete, texts before it as they are. A call that was to run here has failed,
    /// and one for the client that is not complete is incomplete wherever it stands.
    fn end_open_items(&mut self, reason: &str, out: &mut Vec<StreamEvent>) {
        for call_id in self.open_calls() {
            if !self.stream.is_clients(&call_id) {
                let reason = format!("the call was not run: {reason}");
                self.fail_call(&call_id, ErrorKind::Cancelled, &reason, out);
            } else if let Ok((events, _)) = self.hand_over(&call_id) {
                out.extend(events);
            } else if let Ok(finished) = self.stream.abandon(&call_id) {
                out.extend(self.shown(finished.events));
            }
        }
        // Their outputs may be further items.
        let last = self.stream.numbering.next_output_index.checked_sub(1);
        while let Some(first) = self.spoken.first() {
            let is_last = Some(first.place.output_index) == last;
            let status = if is_last { "incomplete" } else { "completed" };
            self.end_spoken(0, status, None, None, out);
        }
    }
}
