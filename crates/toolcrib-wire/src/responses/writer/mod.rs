//! Writes the events of one response.

mod calls;
mod dialect;
mod ending;
mod frame;
mod items;
mod spoken;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use toolcrib_json::Cursor;

use super::numbering::ItemPosition;
use super::request::Include;
use super::resource::{ResponseResource, ResponseStatus};
use super::stream::ResponseStream;
use crate::api::StreamEvent;
use crate::api::fields::member;
use crate::model::{ModelItem, View, Wire};
use frame::{item_event, response_event};
use spoken::{PartKind, Spoken, SpokenKind};

pub use calls::ClientCallLost;
pub use dialect::Dialect;

/// Where the model stands while it says something to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Words on the way.
    Commentary,
    /// The answer.
    FinalAnswer,
}

impl Phase {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Commentary => "commentary",
            Self::FinalAnswer => "final_answer",
        }
    }

    fn of(name: &str) -> Option<Self> {
        [Self::Commentary, Self::FinalAnswer].into_iter().find(|phase| phase.as_str() == name)
    }
}

/// How a response is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterSettings {
    /// The specification that the client knows.
    pub dialect: Dialect,
    /// What the client wants to see beyond the usual.
    pub include: Include,
}

impl WriterSettings {
    /// Settings of this dialect.
    pub fn new(dialect: Dialect, include: Include) -> Self {
        Self { dialect, include }
    }
}

/// Writes the events of one response and keeps its output, so that both are the same.
///
/// Every method returns the events to send, in order. The writer begins and ends what has to be begun and ended: the first
/// events are `response.created` and `response.in_progress`, an item of the model's words is open until the answer is
/// [complete](Self::answered), [lost](Self::lost_answer) or the response over, and after its one terminal event there are
/// no more.
///
/// Answers that are not streamed are written alike, without sending the events: [`to_value`](Self::to_value) is the response.
pub struct ResponseWriter {
    resource: ResponseResource,
    settings: WriterSettings,
    /// The calls, the numbers and the finished items.
    stream: ResponseStream,
    /// The messages and reasoning of the answer that the model is writing.
    spoken: Vec<Spoken>,
    has_begun: bool,
    has_queued: bool,
}

impl ResponseWriter {
    /// A writer for a response that has not begun. `new_id` returns the part of an item's id after the prefix: random
    /// letters and digits in a server, a counter in a test.
    pub fn new(
        resource: ResponseResource,
        settings: WriterSettings,
        new_id: impl FnMut() -> String + Send + 'static,
    ) -> Self {
        Self {
            resource,
            settings,
            stream: ResponseStream::new(new_id),
            spoken: Vec::new(),
            has_begun: false,
            has_queued: false,
        }
    }

    /// A writer for a response that another process began: with the items that are finished, and the number of the next
    /// event.
    pub fn resumed(
        resource: ResponseResource,
        settings: WriterSettings,
        output: Vec<Value>,
        next_sequence_number: u64,
        new_id: impl FnMut() -> String + Send + 'static,
    ) -> Self {
        let mut writer = Self::new(resource, settings, new_id);
        for item in output {
            let id: Arc<str> = item["id"].as_str().unwrap_or_default().into();
            let place = writer.stream.numbering.place_as(id);
            writer.stream.output.insert(place.output_index, item);
        }
        writer.stream.numbering.next_sequence_number = next_sequence_number;
        writer.has_begun = true;
        writer
    }

    /// The response waits for its turn.
    pub fn queued(&mut self) -> Vec<StreamEvent> {
        if self.has_begun || self.has_queued || self.is_over() {
            return Vec::new();
        }
        self.has_queued = true;
        self.resource.status = ResponseStatus::Queued;
        vec![self.response_event("response.created"), self.response_event("response.queued")]
    }

    /// The response begins. Every other method does it too.
    pub fn begin(&mut self) -> Vec<StreamEvent> {
        let mut out = Vec::new();
        self.start(&mut out);
        out
    }

    fn start(&mut self, out: &mut Vec<StreamEvent>) {
        if self.has_begun || self.is_over() {
            return;
        }
        self.has_begun = true;
        self.resource.status = ResponseStatus::InProgress;
        if !self.has_queued {
            out.push(self.response_event("response.created"));
        }
        out.push(self.response_event("response.in_progress"));
    }

    fn response_event(&mut self, name: &str) -> StreamEvent {
        let response = self.to_value();
        let is_terminal = self.is_over();
        response_event(&mut self.stream.numbering, name, &response, is_terminal)
    }

    /// A piece of the model's text.
    pub fn text(&mut self, delta: &str) -> Vec<StreamEvent> {
        self.write(PartKind::Text, delta)
    }

    /// A piece of the text with which the model refuses.
    pub fn refusal(&mut self, delta: &str) -> Vec<StreamEvent> {
        self.write(PartKind::Refusal, delta)
    }

    /// A piece of the model's reasoning, shown as a summary.
    pub fn reasoning(&mut self, delta: &str) -> Vec<StreamEvent> {
        self.write(PartKind::Summary, delta)
    }

    /// An annotation of the text so far, for example a citation. Nothing happens if there is no text.
    pub fn annotation(&mut self, annotation: &Value) -> Vec<StreamEvent> {
        let mut out = Vec::new();
        if let Some(spoken) = self.spoken.last_mut() {
            spoken.annotate(annotation, &mut self.stream.numbering, &mut out);
        }
        out
    }

    fn write(&mut self, part: PartKind, delta: &str) -> Vec<StreamEvent> {
        let mut out = Vec::new();
        if delta.is_empty() || self.is_over() {
            return out;
        }
        self.start(&mut out);
        let kind = match part {
            PartKind::Summary => SpokenKind::Reasoning,
            _ => SpokenKind::Message,
        };
        let is_next = self.spoken.last().is_some_and(|last| last.kind == kind && last.is_open());
        if !is_next {
            self.pause_spoken(&mut out);
            self.open_spoken(kind, &mut out);
        }
        if let Some(spoken) = self.spoken.last_mut() {
            spoken.write(part, delta, &mut self.stream.numbering, &mut out);
        }
        out
    }

    fn open_spoken(&mut self, kind: SpokenKind, out: &mut Vec<StreamEvent>) {
        let prefix = match kind {
            SpokenKind::Message => "msg_",
            SpokenKind::Reasoning => "rs_",
        };
        let place = self.stream.numbering.place(prefix);
        let spoken = Spoken::new(kind, place);
        let item = spoken.to_value("in_progress", None, None);
        out.push(item_event(
            &mut self.stream.numbering,
            "response.output_item.added",
            &spoken.place,
            &item,
        ));
        self.spoken.push(spoken);
    }

    /// Another item begins: the text of the last one is complete. Reasoning whose encrypted content may still come, and
    /// messages, whose phase is known at the end of the answer, are not done yet.
    fn pause_spoken(&mut self, out: &mut Vec<StreamEvent>) {
        let Some(last) = self.spoken.last_mut() else { return };
        last.close_part(&mut self.stream.numbering, out);
        let is_reasoning = last.kind == SpokenKind::Reasoning;
        if is_reasoning && !self.settings.include.encrypted_reasoning {
            self.end_spoken(self.spoken.len() - 1, "completed", None, None, out);
        }
    }

    /// Ends the item at this position among those that the model is writing.
    fn end_spoken(
        &mut self,
        index: usize,
        status: &str,
        phase: Option<Phase>,
        encrypted_content: Option<&str>,
        out: &mut Vec<StreamEvent>,
    ) {
        let mut spoken = self.spoken.remove(index);
        spoken.close_part(&mut self.stream.numbering, out);
        let item = spoken.to_value(status, phase.map(Phase::as_str), encrypted_content);
        self.finish_item(&spoken.place, item, out);
    }

    fn finish_item(&mut self, place: &ItemPosition, item: Value, out: &mut Vec<StreamEvent>) {
        let item = self.settings.dialect.item(item, self.settings.include);
        out.push(item_event(&mut self.stream.numbering, "response.output_item.done", place, &item));
        self.stream.output.insert(place.output_index, item);
    }

    /// Ends all messages and reasoning that are open.
    fn end_all_spoken(&mut self, phase: Option<Phase>, out: &mut Vec<StreamEvent>) {
        while !self.spoken.is_empty() {
            self.end_spoken(0, "completed", phase, None, out);
        }
    }

    /// The message is complete.
    pub fn end_message(&mut self, phase: Option<Phase>) -> Vec<StreamEvent> {
        let mut out = Vec::new();
        let last = self.spoken.iter().rposition(|spoken| spoken.kind == SpokenKind::Message);
        if let Some(index) = last.filter(|_| !self.is_over()) {
            self.end_spoken(index, "completed", phase, None, &mut out);
        }
        out
    }

    /// A whole message, for example the output of a tool that gives the final answer.
    pub fn message(&mut self, text: &str, phase: Option<Phase>) -> Vec<StreamEvent> {
        let mut out = Vec::new();
        if self.is_over() {
            return out;
        }
        self.start(&mut out);
        self.end_all_spoken(None, &mut out);
        self.open_spoken(SpokenKind::Message, &mut out);
        if let Some(spoken) = self.spoken.last_mut() {
            spoken.write(PartKind::Text, text, &mut self.stream.numbering, &mut out);
        }
        self.end_spoken(0, "completed", phase, None, &mut out);
        out
    }

    /// The model's answer is complete and consists of these items. What was not streamed follows, and the messages and
    /// the reasoning are done. Calls are not touched.
    pub fn answered(&mut self, items: &[ModelItem]) -> Vec<StreamEvent> {
        let mut out = Vec::new();
        if self.is_over() {
            return out;
        }
        for item in items {
            match item.view() {
                View::Message { text, phase, is_refusal } => {
                    let part = if *is_refusal { PartKind::Refusal } else { PartKind::Text };
                    let phase = phase.as_deref().and_then(Phase::of);
                    self.answered_item(SpokenKind::Message, part, text, phase, None, &mut out);
                }
                View::Reasoning { text } => {
                    let content = self.encrypted_content(item);
                    let content = content.as_deref();
                    let kind = SpokenKind::Reasoning;
                    self.answered_item(kind, PartKind::Summary, text, None, content, &mut out);
                }
                _ => {}
            }
        }
        self.end_all_spoken(None, &mut out);
        out
    }

    /// The reasoning that the client may send back.
    fn encrypted_content(&self, item: &ModelItem) -> Option<String> {
        if !self.settings.include.encrypted_reasoning || item.wire() != Wire::Responses {
            return None;
        }
        let tape = toolcrib_json::parse(item.raw()).ok()?;
        let content = member(tape.root(), "encrypted_content").and_then(Cursor::as_str)?;
        Some(content.into_owned())
    }

    fn answered_item(
        &mut self,
        kind: SpokenKind,
        part: PartKind,
        text: &str,
        phase: Option<Phase>,
        encrypted_content: Option<&str>,
        out: &mut Vec<StreamEvent>,
    ) {
        let streamed = self.spoken.iter().position(|spoken| spoken.kind == kind);
        let index = match streamed {
            Some(index) => index,
            None if text.is_empty() && encrypted_content.is_none() => return,
            // Reasoning that was streamed is done already unless its encrypted content is wanted.
            None if kind == SpokenKind::Reasoning && self.was_shown(text) => return,
            None => {
                self.start(out);
                self.open_spoken(kind, out);
                self.spoken.len() - 1
            }
        };
        if let Some(spoken) = self.spoken.get_mut(index)
            && spoken.is_open()
            && let Some(rest) = text.strip_prefix(spoken.text.as_str())
            && (!rest.is_empty() || spoken.text.is_empty() && kind == SpokenKind::Message)
        {
            let rest = rest.to_owned();
            spoken.write(part, &rest, &mut self.stream.numbering, out);
        }
        self.end_spoken(index, "completed", phase, encrypted_content, out);
    }

    /// Whether the last items have this reasoning already.
    fn was_shown(&self, text: &str) -> bool {
        let shown = self.stream.output.values().rev().filter(|item| item["type"] == "reasoning");
        shown.take(64).any(|item| {
            let parts = item["summary"].as_array().into_iter().flatten();
            let said: String = parts.filter_map(|part| part["text"].as_str()).collect();
            !said.is_empty() && text.starts_with(&said)
        })
    }

    /// The response without its output.
    pub fn resource(&self) -> &ResponseResource {
        &self.resource
    }

    /// The finished items.
    pub fn output(&self) -> Vec<Value> {
        self.stream.output.values().cloned().collect()
    }

    /// The response as clients fetch it now.
    pub fn to_value(&self) -> Value {
        self.resource.to_value(self.output())
    }

    /// The number of the next event.
    pub fn next_sequence_number(&self) -> u64 {
        self.stream.numbering.next_sequence_number
    }

    /// Sets the number of the next event.
    pub fn set_next_sequence_number(&mut self, number: u64) {
        self.stream.numbering.next_sequence_number = number;
    }

    /// Whether the response is over.
    pub fn is_over(&self) -> bool {
        self.resource.status.is_over()
    }
}

impl fmt::Debug for ResponseWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseWriter")
            .field("id", &self.resource.id)
            .field("status", &self.resource.status)
            .field("next_sequence_number", &self.next_sequence_number())
            .finish_non_exhaustive()
    }
}
