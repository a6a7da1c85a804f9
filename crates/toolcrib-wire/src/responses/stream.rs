//! The order of a response's events.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_tool::{CallId, ErrorKind, ToolCall, ToolResult};

use super::error::{StreamError, StreamErrorKind};
use super::event::{Body, EventName, ResponseEvent};
use super::item::{CallItem, written};
use super::kind::{CallKind, Status};
use super::numbering::Numbering;
use super::outcome::{outcome, output, output_item};
use super::required_action::OutstandingCall;
use super::shell;
use crate::results::base64;

/// Makes the events of one response, in an order that every client accepts.
///
/// Each step of a call returns the events to send. The stream assigns the numbers: `sequence_number` increases by one
/// for each event, `output_index` by one for each item, and an item's id is made once. A step out of order is a
/// [`StreamError`] and changes nothing.
///
/// Calls may be interleaved in any way. Send the events in the order in which they are made.
pub struct ResponseStream {
    pub(super) numbering: Numbering,
    /// The item of every call; `None` once it is done.
    pub(super) calls: HashMap<CallId, Option<CallItem>>,
    /// The finished items, by their position in the output.
    pub(super) output: BTreeMap<u64, Value>,
}

/// The last events of a call in the stream. Send them before those of the next call.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "the events are to be sent, and then the next call may speak"]
#[non_exhaustive]
pub struct Finished {
    /// The last events of the call's items.
    pub events: Vec<ResponseEvent>,
    /// The call that the client has to answer, if it was handed over.
    pub outstanding: Option<OutstandingCall>,
}

impl ResponseStream {
    /// A new stream. `new_id` returns the part of an item's id after the prefix: random letters and digits in a server,
    /// a counter in a test.
    pub fn new(new_id: impl FnMut() -> String + Send + 'static) -> Self {
        Self { numbering: Numbering::new(new_id), calls: HashMap::new(), output: BTreeMap::new() }
    }

    /// Takes the next sequence number for an event that is not about a tool, for example `response.created` or a
    /// message's text.
    pub fn take_sequence_number(&mut self) -> u64 {
        self.numbering.take_sequence_number()
    }

    /// Takes the next position in the output for an item that is not about a tool, for example a message.
    pub fn take_output_index(&mut self) -> u64 {
        self.numbering.take_output_index()
    }

    /// The finished items with their positions in the output, in that order, for `response.completed`.
    pub fn output(&self) -> impl Iterator<Item = (u64, &Value)> {
        self.output.iter().map(|(index, item)| (*index, item))
    }

    /// Begins a call whose arguments are complete: its item, the event for its start, and the model's text.
    pub fn prepare(
        &mut self,
        call: &ToolCall,
        kind: CallKind,
    ) -> Result<Vec<ResponseEvent>, StreamError> {
        let arguments = arguments_of(call);
        let mut events = self.begin(call.id(), call.name(), kind, Some(arguments))?;
        events.extend(self.arguments(call.id(), arguments)?);
        Ok(events)
    }

    /// Begins a call whose arguments are still being written: its item and the event for its start.
    /// [`write`](Self::write) and [`arguments`](Self::arguments) follow.
    ///
    /// A local shell's item contains its command from the start, so such a call can only be [prepared](Self::prepare).
    pub fn open(
        &mut self,
        call_id: &CallId,
        name: &str,
        kind: CallKind,
    ) -> Result<Vec<ResponseEvent>, StreamError> {
        self.begin(call_id, name, kind, None)
    }

    /// Streams a piece of the model's text: the arguments' JSON text for functions and MCP tools, the input for custom
    /// tools, the code for code interpreters. Searches and pictures stream none of it.
    pub fn write(
        &mut self,
        call_id: &CallId,
        delta: &str,
    ) -> Result<Vec<ResponseEvent>, StreamError> {
        let item = self.open_item(call_id)?;
        if item.arguments.is_some() {
            return Err(refused(call_id, StreamErrorKind::ArgumentsDone));
        }
        let Some((name, _, _)) = item.kind.written() else { return Ok(Vec::new()) };
        if delta.is_empty() {
            return Ok(Vec::new());
        }
        item.written.push_str(delta);
        let place = item.place.clone();
        Ok(vec![self.numbering.event(name, &place, Body::Text("delta", delta.to_owned()))])
    }

    /// Completes the arguments: `arguments` is the JSON text for the tool. The rest that was not streamed yet follows,
    /// then the whole.
    pub fn arguments(
        &mut self,
        call_id: &CallId,
        arguments: &str,
    ) -> Result<Vec<ResponseEvent>, StreamError> {
        let item = self.open_item(call_id)?;
        if item.arguments.is_some() {
            return Err(refused(call_id, StreamErrorKind::ArgumentsDone));
        }
        item.arguments = Some(arguments.to_owned());
        let Some((delta, done, key)) = item.kind.written() else { return Ok(Vec::new()) };
        let whole = written(&item.kind, arguments);
        // If the arguments were corrected since, there is no rest, and the whole replaces them.
        let rest = whole.strip_prefix(item.written.as_str()).unwrap_or_default().to_owned();
        item.written.clone_from(&whole);
        let place = item.place.clone();
        let body = match item.kind {
            CallKind::Function => Body::Arguments(whole, Arc::clone(&item.name)),
            _ => Body::Text(key, whole),
        };
        let mut events = Vec::with_capacity(2);
        if !rest.is_empty() {
            events.push(self.numbering.event(delta, &place, Body::Text("delta", rest)));
        }
        events.push(self.numbering.event(done, &place, body));
        Ok(events)
    }

    /// Reports that the tool is running: `searching`, `generating` or `interpreting`. Reported once, and only for kinds
    /// with such an event.
    pub fn working(&mut self, call_id: &CallId) -> Result<Vec<ResponseEvent>, StreamError> {
        let item = self.complete_item(call_id)?;
        match item.kind.working() {
            Some((name, status)) if item.status != status => {
                item.status = status;
                let place = item.place.clone();
                Ok(vec![self.numbering.event(name, &place, Body::Plain)])
            }
            _ => Ok(Vec::new()),
        }
    }

    /// An intermediate picture; `data` are the bytes of the encoded picture. Only an image generation has this step.
    pub fn partial_image(
        &mut self,
        call_id: &CallId,
        data: &[u8],
    ) -> Result<Vec<ResponseEvent>, StreamError> {
        let item = self.complete_item(call_id)?;
        if item.kind != CallKind::ImageGeneration {
            let kind = item.kind.clone();
            return Err(no_such_step(call_id, &kind, "shows no pictures while it runs"));
        }
        let index = item.partial_images;
        item.partial_images += 1;
        let place = item.place.clone();
        let mut events = self.working(call_id)?;
        let body = Body::PartialImage(base64(data), index);
        events.push(self.numbering.event(EventName::ImageGenerationPartialImage, &place, body));
        Ok(events)
    }

    /// The request for approval that allowed a call. It is in the item of an MCP call.
    pub(super) fn approved(
        &mut self,
        call_id: &CallId,
        request_id: &str,
    ) -> Result<(), StreamError> {
        self.open_item(call_id)?.approval = Some(request_id.to_owned());
        Ok(())
    }

    /// Whether the server runs the call.
    pub(super) fn set_runs_here(&mut self, call_id: &CallId, runs_here: bool) {
        if let Some(Some(item)) = self.calls.get_mut(call_id) {
            item.runs_here = runs_here;
        }
    }

    /// Whether the client runs the call.
    pub(super) fn is_clients(&self, call_id: &CallId) -> bool {
        matches!(self.calls.get(call_id), Some(Some(item)) if !item.runs_here)
    }

    /// Completes the arguments with what was written of them.
    pub(super) fn end_arguments(&mut self, call_id: &CallId) -> Vec<ResponseEvent> {
        let written = match self.calls.get(call_id) {
            Some(Some(item)) if item.arguments.is_none() => item.written.clone(),
            _ => return Vec::new(),
        };
        self.arguments(call_id, &written).unwrap_or_default()
    }

    /// Reports a failure as [`complete`](Self::complete), also if it is that the call was cancelled.
    pub(super) fn fail(&mut self, result: &ToolResult) -> Result<Finished, StreamError> {
        self.ended(result, false)
    }

    /// Reports the call's result: its event, and the finished item.
    ///
    /// Only successes are `completed`. A failed MCP call has its own event; other failures are in the item's status.
    /// Calls to functions, custom tools and local shells are answered by a separate item after the call's.
    pub fn complete(&mut self, result: &ToolResult) -> Result<Finished, StreamError> {
        let is_cancelled = result.error_kind() == Some(ErrorKind::Cancelled);
        self.ended(result, is_cancelled)
    }

    fn ended(&mut self, result: &ToolResult, cancelled: bool) -> Result<Finished, StreamError> {
        let call_id = result.call_id();
        let item = self.open_item(call_id)?;
        if result.is_success() && item.arguments.is_none() {
            return Err(refused(call_id, StreamErrorKind::ArgumentsOpen));
        }
        let kind = item.kind.clone();
        let (event, status) = if result.is_success() {
            (kind.completed(), Status::Completed)
        } else if cancelled && !kind.is_for_clients() || item.arguments.is_none() {
            (None, kind.cut_short())
        } else {
            (kind.failed(), kind.after_failure())
        };
        item.status = status;
        item.outcome = outcome(&kind, result);
        let place = item.place.clone();
        let mut events = Vec::with_capacity(4);
        events.extend(event.map(|name| self.numbering.event(name, &place, Body::Plain)));
        events.push(self.done(call_id)?);
        if let Some((item_type, prefix)) = output_item(&kind) {
            let status = if cancelled { Status::Incomplete } else { Status::Completed };
            let output = output(&kind, result);
            events.extend(self.answer(call_id, item_type, prefix, status, &output));
        }
        Ok(Finished { events, outstanding: None })
    }

    /// Hands the call over to the client: its item is done, and the call waits for an answer. When the batch's other
    /// calls are finished, a [`RequiredAction`](super::RequiredAction) lists all waiting calls.
    pub fn hand_over(&mut self, call_id: &CallId) -> Result<Finished, StreamError> {
        let item = self.complete_item(call_id)?;
        if !item.kind.is_for_clients() {
            let kind = item.kind.clone();
            return Err(no_such_step(call_id, &kind, "is not run by clients"));
        }
        item.status = Status::Completed;
        let outstanding = OutstandingCall::new(call_id.clone(), &*item.name, item.arguments_text());
        Ok(Finished { events: vec![self.done(call_id)?], outstanding: Some(outstanding) })
    }

    /// Ends the call without a result, for example because the client is gone: its item is `incomplete`, or `failed` if
    /// the kind has no `incomplete`.
    pub fn abandon(&mut self, call_id: &CallId) -> Result<Finished, StreamError> {
        let item = self.open_item(call_id)?;
        item.status = item.kind.cut_short();
        Ok(Finished { events: vec![self.done(call_id)?], outstanding: None })
    }

    /// Abandons every call that has not ended, in the order of their items, so that no item stays open.
    pub fn close(&mut self) -> Vec<ResponseEvent> {
        let mut open: Vec<(u64, CallId)> = self
            .calls
            .iter()
            .filter_map(|(id, item)| Some((item.as_ref()?.place.output_index, id.clone())))
            .collect();
        open.sort_unstable();
        let ended = open.iter().filter_map(|(_, call_id)| self.abandon(call_id).ok());
        ended.flat_map(|finished| finished.events).collect()
    }

    /// Whether a call can begin, and the command of one for a local shell.
    pub(super) fn check_begin(
        &self,
        call_id: &CallId,
        kind: &CallKind,
        arguments: Option<&str>,
    ) -> Result<Option<Value>, StreamError> {
        match self.calls.get(call_id) {
            Some(Some(_)) => return Err(refused(call_id, StreamErrorKind::AlreadyPrepared)),
            Some(None) => return Err(refused(call_id, StreamErrorKind::AlreadyDone)),
            None => {}
        }
        match (kind, arguments) {
            (CallKind::LocalShell, Some(arguments)) => {
                let action = shell::action(arguments);
                action.map(Some).map_err(|why| refused(call_id, StreamErrorKind::Command(why)))
            }
            (CallKind::LocalShell, None) => {
                let step = "cannot be opened without its command; prepare it when it is complete";
                Err(no_such_step(call_id, kind, step))
            }
            _ => Ok(None),
        }
    }

    /// The item and its first events. `arguments` are those that the item contains from the start.
    fn begin(
        &mut self,
        call_id: &CallId,
        name: &str,
        kind: CallKind,
        arguments: Option<&str>,
    ) -> Result<Vec<ResponseEvent>, StreamError> {
        let action = self.check_begin(call_id, &kind, arguments)?;
        let mut item = CallItem {
            place: self.numbering.place(kind.id_prefix()),
            call_id: call_id.clone(),
            name: name.into(),
            status: Status::InProgress,
            written: String::new(),
            arguments: arguments.map(str::to_owned),
            action,
            partial_images: 0,
            outcome: None,
            approval: None,
            runs_here: !kind.is_for_clients(),
            kind,
        };
        let place = item.place.clone();
        let mut events =
            vec![self.numbering.event(EventName::ItemAdded, &place, Body::Item(item.to_value()))];
        if let Some(begun) = item.kind.begun() {
            events.push(self.numbering.event(begun, &place, Body::Plain));
        }
        // They are complete only when `arguments` is called.
        item.arguments = None;
        self.calls.insert(call_id.clone(), Some(item));
        Ok(events)
    }

    /// Adds and finishes the item that answers a call.
    fn answer(
        &mut self,
        call_id: &CallId,
        item_type: &str,
        prefix: &str,
        status: Status,
        output: &Value,
    ) -> [ResponseEvent; 2] {
        let place = self.numbering.place(prefix);
        let item = |status: Status, output: &Value| {
            json!({
                "id": &*place.item_id,
                "type": item_type,
                "status": status.as_str(),
                "call_id": call_id.as_str(),
                "output": output,
            })
        };
        let begun = item(Status::InProgress, &"".into());
        let done = item(status, output);
        self.output.insert(place.output_index, done.clone());
        [
            self.numbering.event(EventName::ItemAdded, &place, Body::Item(begun)),
            self.numbering.event(EventName::ItemDone, &place, Body::Item(done)),
        ]
    }

    /// Ends the call's item.
    fn done(&mut self, call_id: &CallId) -> Result<ResponseEvent, StreamError> {
        let item = self.calls.get_mut(call_id).and_then(Option::take);
        let item = item.ok_or_else(|| refused(call_id, StreamErrorKind::AlreadyDone))?;
        let value = item.to_value();
        self.output.insert(item.place.output_index, value.clone());
        Ok(self.numbering.event(EventName::ItemDone, &item.place, Body::Item(value)))
    }

    fn open_item(&mut self, call_id: &CallId) -> Result<&mut CallItem, StreamError> {
        match self.calls.get_mut(call_id) {
            Some(Some(item)) => Ok(item),
            Some(None) => Err(refused(call_id, StreamErrorKind::AlreadyDone)),
            None => Err(refused(call_id, StreamErrorKind::NotPrepared)),
        }
    }

    /// The call's item, if its arguments are complete.
    fn complete_item(&mut self, call_id: &CallId) -> Result<&mut CallItem, StreamError> {
        let item = self.open_item(call_id)?;
        if item.arguments.is_none() {
            return Err(refused(call_id, StreamErrorKind::ArgumentsOpen));
        }
        Ok(item)
    }
}

impl fmt::Debug for ResponseStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseStream")
            .field("next_sequence_number", &self.numbering.next_sequence_number)
            .field("next_output_index", &self.numbering.next_output_index)
            .finish_non_exhaustive()
    }
}

/// The arguments of a call, which are an empty object if the model wrote nothing.
pub(super) fn arguments_of(call: &ToolCall) -> &str {
    let text = call.arguments().as_str();
    if text.trim().is_empty() { "{}" } else { text }
}

pub(super) fn refused(call_id: &CallId, reason: StreamErrorKind) -> StreamError {
    StreamError { call_id: call_id.clone(), reason }
}

fn no_such_step(call_id: &CallId, kind: &CallKind, step: &'static str) -> StreamError {
    refused(call_id, StreamErrorKind::NoSuchStep { item: kind.as_str(), step })
}
