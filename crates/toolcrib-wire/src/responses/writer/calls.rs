//! Calls: as the stream of calls makes them, in the dialect of the client.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use toolcrib_tool::{CallId, ErrorKind, ToolCall, ToolError, ToolResult};

use super::frame::event_of;
use super::{Phase, ResponseWriter, StreamEvent};
use crate::responses::event::ResponseEvent;
use crate::responses::kind::CallKind;
use crate::responses::stream::{arguments_of, refused};
use crate::responses::{OutstandingCall, StreamError, StreamErrorKind};

/// The answer that was lost had a call for the client, who may have seen it: the response has to
/// [fail](ResponseWriter::fail).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientCallLost {
    /// The call.
    pub call_id: CallId,
}

impl fmt::Display for ClientCallLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.call_id.as_str();
        write!(f, "the model's answer was lost after the client had seen a part of its call {id:?}")
    }
}

impl Error for ClientCallLost {}

/// The steps of calls. They are those of a [`ResponseStream`](crate::responses::ResponseStream).
impl ResponseWriter {
    /// Begins a call whose arguments are complete.
    pub fn prepare_call(
        &mut self,
        call: &ToolCall,
        kind: CallKind,
    ) -> Result<Vec<StreamEvent>, StreamError> {
        let runs_here = !is_for_client(&kind);
        let kind = self.settings.dialect.kind(kind);
        let mut out = self.before_call(call.id(), &kind, Some(arguments_of(call)))?;
        let events = self.stream.prepare(call, kind)?;
        self.stream.set_runs_here(call.id(), runs_here);
        out.extend(self.shown(events));
        Ok(out)
    }

    /// Begins a call whose arguments the model is writing.
    pub fn open_call(
        &mut self,
        call_id: &CallId,
        name: &str,
        kind: CallKind,
    ) -> Result<Vec<StreamEvent>, StreamError> {
        let runs_here = !is_for_client(&kind);
        let kind = self.settings.dialect.kind(kind);
        let mut out = self.before_call(call_id, &kind, None)?;
        let events = self.stream.open(call_id, name, kind)?;
        self.stream.set_runs_here(call_id, runs_here);
        out.extend(self.shown(events));
        Ok(out)
    }

    /// A piece of the arguments, or of the text of a custom tool.
    pub fn call_arguments(
        &mut self,
        call_id: &CallId,
        delta: &str,
    ) -> Result<Vec<StreamEvent>, StreamError> {
        let events = self.stream.write(call_id, delta)?;
        Ok(self.shown(events))
    }

    /// The arguments are complete.
    pub fn end_arguments(
        &mut self,
        call_id: &CallId,
        arguments: &str,
    ) -> Result<Vec<StreamEvent>, StreamError> {
        let events = self.stream.arguments(call_id, arguments)?;
        Ok(self.shown(events))
    }

    /// The tool is running.
    pub fn call_working(&mut self, call_id: &CallId) -> Result<Vec<StreamEvent>, StreamError> {
        let events = self.stream.working(call_id)?;
        Ok(self.shown(events))
    }

    /// A picture at an intermediate stage.
    pub fn partial_image(
        &mut self,
        call_id: &CallId,
        data: &[u8],
    ) -> Result<Vec<StreamEvent>, StreamError> {
        let events = self.stream.partial_image(call_id, data)?;
        Ok(self.shown(events))
    }

    /// The request for approval that allowed an MCP call.
    pub fn approved(&mut self, call_id: &CallId, request_id: &str) -> Result<(), StreamError> {
        self.stream.approved(call_id, request_id)
    }

    /// The call that ran here has its result. One that failed or was cancelled is `failed`, never `incomplete`, since the
    /// response goes on after it.
    pub fn complete_call(&mut self, result: &ToolResult) -> Result<Vec<StreamEvent>, StreamError> {
        if result.is_success() {
            let finished = self.stream.complete(result)?;
            return Ok(self.shown(finished.events));
        }
        let mut events = self.stream.end_arguments(result.call_id());
        events.extend(self.stream.fail(result)?.events);
        Ok(self.shown(events))
    }

    /// The client has to run the call.
    pub fn hand_over(
        &mut self,
        call_id: &CallId,
    ) -> Result<(Vec<StreamEvent>, Option<OutstandingCall>), StreamError> {
        let finished = self.stream.hand_over(call_id)?;
        Ok((self.shown(finished.events), finished.outstanding))
    }

    /// Ends a call without a result. Its item is incomplete, or failed, so that the response has to be incomplete as well.
    pub fn abandon_call(&mut self, call_id: &CallId) -> Result<Vec<StreamEvent>, StreamError> {
        let finished = self.stream.abandon(call_id)?;
        Ok(self.shown(finished.events))
    }

    /// What the model has written of an open call's arguments.
    pub fn written(&self, call_id: &CallId) -> Option<&str> {
        self.stream.calls.get(call_id)?.as_ref().map(|item| item.written.as_str())
    }

    /// Whether a call has begun and is not done.
    pub fn is_open(&self, call_id: &CallId) -> bool {
        matches!(self.stream.calls.get(call_id), Some(Some(_)))
    }

    /// The answer that the model was writing is lost, and it will be asked again. What the client has seen of the text
    /// becomes commentary, and calls that were to run here have failed.
    pub fn lost_answer(&mut self) -> Result<Vec<StreamEvent>, ClientCallLost> {
        let mut out = Vec::new();
        if self.is_over() {
            return Ok(out);
        }
        if let Some(call_id) = self.open_calls().into_iter().find(|id| self.stream.is_clients(id)) {
            return Err(ClientCallLost { call_id });
        }
        self.end_all_spoken(Some(Phase::Commentary), &mut out);
        for call_id in self.open_calls() {
            let reason = "the model's answer was lost while it was written; the call did not run";
            self.fail_call(&call_id, ErrorKind::Cancelled, reason, &mut out);
        }
        Ok(out)
    }

    /// The open calls, in the order of their items.
    pub(super) fn open_calls(&self) -> Vec<CallId> {
        let mut open: Vec<(u64, &CallId)> = self
            .stream
            .calls
            .iter()
            .filter_map(|(id, item)| Some((item.as_ref()?.place.output_index, id)))
            .collect();
        open.sort_unstable();
        open.into_iter().map(|(_, id)| id.clone()).collect()
    }

    /// Ends a call that was to run here as a failure.
    pub(super) fn fail_call(
        &mut self,
        call_id: &CallId,
        kind: ErrorKind,
        reason: &str,
        out: &mut Vec<StreamEvent>,
    ) {
        let mut events = self.stream.end_arguments(call_id);
        let error = ToolError::new(kind, reason);
        let result = ToolResult::failure(call_id.clone(), "", error, Duration::ZERO);
        if let Ok(finished) = self.stream.fail(&result) {
            events.extend(finished.events);
        }
        out.extend(self.shown(events));
    }

    /// What comes before the item of a call that can begin.
    fn before_call(
        &mut self,
        call_id: &CallId,
        kind: &CallKind,
        arguments: Option<&str>,
    ) -> Result<Vec<StreamEvent>, StreamError> {
        if self.is_over() {
            return Err(refused(call_id, StreamErrorKind::AlreadyDone));
        }
        self.stream.check_begin(call_id, kind, arguments)?;
        let mut out = Vec::new();
        self.start(&mut out);
        self.pause_spoken(&mut out);
        Ok(out)
    }

    /// Events of calls as the client sees them. What is finished is kept like that.
    pub(super) fn shown(&mut self, events: Vec<ResponseEvent>) -> Vec<StreamEvent> {
        let dialect = self.settings.dialect;
        let include = self.settings.include;
        events
            .into_iter()
            .map(|event| {
                let mut value = event.to_value();
                if event.item().is_some() {
                    let item = dialect.item(value["item"].take(), include);
                    if let Some(kept) = self.stream.output.get_mut(&event.output_index()) {
                        kept.clone_from(&item);
                    }
                    value["item"] = item;
                }
                let name = dialect.event_name(event.name().as_str());
                event_of(&name, event.sequence_number(), &value)
            })
            .collect()
    }
}

fn is_for_client(kind: &CallKind) -> bool {
    matches!(kind, CallKind::Function | CallKind::Custom | CallKind::LocalShell)
}
