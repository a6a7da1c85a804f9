//! Shows what happens in a run as a response.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::Value;
use toolcrib_agent::run::{AgentRun, FailureReason, Outcome, RunState};
use toolcrib_agent::{AgentEvent, JournalEntry, JournalRow, RequestSettings, ShownEvents};
use toolcrib_core::Turn;
use toolcrib_core::approval::ApprovalRequest;
use toolcrib_core::events::{Event, Payload};
use toolcrib_core::suspension::{Suspension, SuspensionId, Waiting};
use toolcrib_http::{ResponseId, SERVER_STOPPED};
use toolcrib_tool::{CallId, Content, LOCAL_SHELL, ToolCall, fully_visible};
use toolcrib_wire::api::StreamEvent;
use toolcrib_wire::model::{ModelCall, ModelEvent, Usage, View};
use toolcrib_wire::responses::{
    CallKind, Dialect, ResponseFailure, ResponseRequest, ResponseResource, ResponseWriter,
    StreamError, WriterSettings,
};

use super::LABEL;

/// More events than there can be between two rows: those of an answer of the largest size that is read.
const UNRECORDED: u64 = 1 << 27;

/// The event that ends an item.
const ITEM_DONE: &str = "response.output_item.done";

/// Shows a run as a response: live, and from its journal, where whole texts take the place of their pieces.
pub(super) struct Presenter {
    writer: ResponseWriter,
    /// The tools that run here.
    turn: Turn,
    settings: RequestSettings,
    is_background: bool,
    is_stored: bool,
    /// The calls of the last answer by their positions in it.
    streamed: Vec<CallId>,
    /// The calls that are not shown as done.
    calls: HashMap<CallId, ShownCall>,
    usage: Option<Usage>,
    /// Whether the client has seen a part of a call that is lost.
    is_broken: bool,
    /// How many of the last row's events are shown before it is written, when it happens.
    early: usize,
    /// The numbers of the events that ended items and that no row records.
    ends: Vec<u64>,
}

/// A call that the model made.
struct ShownCall {
    call: ToolCall,
    kind: CallKind,
    /// Whether it has an item.
    is_open: bool,
}

impl Presenter {
    pub(super) fn new(
        id: &ResponseId,
        created_at: u64,
        request: &ResponseRequest,
        settings: &RequestSettings,
        (turn, dialect): (Turn, Dialect),
    ) -> Self {
        let model = request.model.clone().unwrap_or_default();
        let resource = ResponseResource::new(id.to_string(), created_at, model, request);
        let (run, row, mut made) = (id.run.to_string(), id.row, 0_u64);
        // The same items have the same ids whenever they are shown.
        let new_id = move || {
            made += 1;
            format!("{run}{row:08x}{made:04x}")
        };
        let how = WriterSettings::new(dialect, request.include);
        Self {
            writer: ResponseWriter::new(resource, how, new_id),
            turn,
            settings: settings.clone(),
            is_background: request.background,
            is_stored: request.store,
            streamed: Vec::new(),
            calls: HashMap::new(),
            usage: None,
            is_broken: false,
            early: 0,
            ends: Vec::new(),
        }
    }

    /// Whether a run in this state, with these calls for somebody to decide on, can go on if somebody works on it: it was
    /// interrupted, or waits for what others may have decided by now.
    pub(super) fn goes_on(&self, state: &AgentRun, waiting: &[Suspension]) -> bool {
        match state.state() {
            RunState::InProgress | RunState::WaitingForSubtask => true,
            RunState::Paused => state.paused() == Some(SERVER_STOPPED),
            RunState::RequiresAction => {
                state.waiting().next().is_some() && (waiting.is_empty() || !self.turn.may_approve())
            }
            _ => false,
        }
    }

    /// Takes over the calls that waited when the request came.
    pub(super) fn take_over(&mut self, state: &AgentRun) {
        for waiting in state.waiting() {
            if let Some(kind) = self.kind(waiting.tool()) {
                let (id, call) = (CallId::new(waiting.call_id()), waiting.call());
                self.calls.insert(id, ShownCall { call, kind, is_open: false });
            }
        }
    }

    fn count(&self) -> u64 {
        self.writer.next_sequence_number()
    }

    /// What is shown so far, for the next row.
    pub(super) fn shown(&mut self) -> ShownEvents {
        ShownEvents { count: self.count(), ends: std::mem::take(&mut self.ends) }
    }

    /// Leaves out the numbers of events that a client may have seen and no row records.
    pub(super) fn skip_unrecorded(&mut self) {
        let next = self.count().saturating_add(UNRECORDED);
        self.writer.set_next_sequence_number(next);
    }

    /// A row of the journal, shown again with the numbers that its events had.
    pub(super) fn replayed(&mut self, row: &JournalRow) -> Vec<StreamEvent> {
        let mut next = self.count();
        if let Some(shown) = &row.shown {
            self.ends.extend(&shown.ends);
        }
        self.early = 0;
        let events = self.recorded(&row.entry, row.at.unix_millis() / 1_000);
        let is_answer = matches!(row.entry, JournalEntry::ModelAnswered { .. });
        let is_lost = matches!(row.entry, JournalEntry::ModelLost { .. });
        let ends = if is_answer || is_lost { std::mem::take(&mut self.ends) } else { Vec::new() };
        let mut numbers = Vec::with_capacity(events.len());
        for end in ends {
            let left = events.iter().skip(numbers.len());
            let Some(last) = left.map(StreamEvent::name).position(|name| name == ITEM_DONE) else {
                break;
            };
            let len = last as u64 + 1;
            next = next.max((end + 1).saturating_sub(len));
            numbers.extend(next..next + len);
            next += len;
        }
        let rest = events.iter().skip(numbers.len());
        let early =
            if is_answer { rest.filter(|event| is_streamed(event)).count() } else { self.early };
        let before = row.shown.as_ref().map(|shown| shown.count.saturating_sub(early as u64));
        if numbers.len() < events.len() {
            next = next.max(before.unwrap_or_default());
        }
        let left = (events.len() - numbers.len()) as u64;
        numbers.extend(next..next + left);
        self.writer.set_next_sequence_number(next + left);
        events.into_iter().zip(numbers).map(|(event, number)| event.renumbered(number)).collect()
    }

    /// The first events.
    pub(super) fn begin(&mut self) -> Vec<StreamEvent> {
        let mut events = if self.is_background { self.writer.queued() } else { Vec::new() };
        events.extend(self.writer.begin());
        events
    }

    /// What clients see now.
    pub(super) fn value(&self) -> Value {
        self.writer.to_value()
    }

    /// Whether the response is kept when its request has ended.
    pub(super) fn is_stored(&self) -> bool {
        self.is_stored
    }

    /// Whether the response cannot be continued, so that the run has to end.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Something that happens now, at this time in Unix seconds.
    pub(super) fn event(&mut self, event: &AgentEvent<'_>, now: u64) -> Vec<StreamEvent> {
        match event {
            AgentEvent::Recorded { entry, .. } => self.recorded(entry, now),
            AgentEvent::Model { event, .. } => {
                let events = self.said(event);
                let ends = events.iter().filter(|event| event.name() == ITEM_DONE);
                self.ends.extend(ends.map(StreamEvent::sequence_number));
                events
            }
            AgentEvent::Call { event, .. } => self.reported(event),
            _ => Vec::new(),
        }
    }

    fn said(&mut self, event: &ModelEvent) -> Vec<StreamEvent> {
        match event {
            ModelEvent::Started { .. } => {
                self.streamed.clear();
                Vec::new()
            }
            ModelEvent::Text { delta } => self.writer.text(delta),
            ModelEvent::Reasoning { delta } => self.writer.reasoning(delta),
            ModelEvent::Refusal { delta } => self.writer.refusal(delta),
            ModelEvent::CallStarted { id, name, .. } => {
                self.streamed.push(id.clone());
                self.open(id, name)
            }
            ModelEvent::Arguments { call, delta } => {
                let id = self.streamed.get(*call);
                let shown = id.and_then(|id| self.calls.get(id)).filter(|shown| shown.is_open);
                // The text of a custom tool is inside its arguments.
                match (id, shown) {
                    (Some(id), Some(shown)) if shown.kind == CallKind::Function => {
                        sent(self.writer.call_arguments(id, delta))
                    }
                    _ => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }

    /// The kind of a call of this tool; `None` if it is not shown.
    fn kind(&self, tool: &str) -> Option<CallKind> {
        if let Some(own) = self.settings.tools.iter().find(|own| own.name == tool) {
            let schema = &own.input_schema;
            return Some(if schema.get(LOCAL_SHELL) == Some(&true.into()) {
                CallKind::LocalShell
            } else if schema.get("x-custom-format").is_some() {
                CallKind::Custom
            } else {
                CallKind::Function
            });
        }
        let definition = self.turn.describe(tool);
        if definition.is_some_and(|definition| definition.hidden()) {
            return None;
        }
        let kind = definition.map(|definition| CallKind::of_definition(definition));
        Some(match kind {
            Some(
                kind @ (CallKind::FileSearch
                | CallKind::WebSearch
                | CallKind::ImageGeneration
                | CallKind::CodeInterpreter),
            ) => kind,
            _ => CallKind::Mcp { server_label: LABEL.into() },
        })
    }

    /// Whether the client runs calls of this kind.
    fn is_clients(kind: &CallKind) -> bool {
        matches!(kind, CallKind::Function | CallKind::Custom | CallKind::LocalShell)
    }

    /// The model has begun a call. One of a tool that runs here is shown when it runs.
    fn open(&mut self, id: &CallId, tool: &str) -> Vec<StreamEvent> {
        let Some(kind) = self.kind(tool) else { return Vec::new() };
        let is_open = matches!(kind, CallKind::Function | CallKind::Custom);
        let events =
            if is_open { sent(self.writer.open_call(id, tool, kind.clone())) } else { Vec::new() };
        let call = ToolCall::new(id.as_str(), tool, String::new());
        self.calls.insert(id.clone(), ShownCall { call, kind, is_open });
        events
    }

    /// The model has made a call completely.
    fn made(&mut self, call: &ModelCall, tool: &str) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        if !self.calls.contains_key(&call.id) {
            events = self.open(&call.id, tool);
        }
        let Some(shown) = self.calls.get_mut(&call.id) else { return events };
        shown.call = call.to_tool_call(tool);
        if shown.is_open {
            let arguments = shown.call.arguments().as_str().to_owned();
            events.extend(sent(self.writer.end_arguments(&call.id, &arguments)));
        } else if Self::is_clients(&shown.kind) {
            shown.is_open = true;
            let (call, kind) = (shown.call.clone(), shown.kind.clone());
            events.extend(sent(self.writer.prepare_call(&call, kind)));
        }
        events
    }

    /// A running call reports something.
    fn reported(&mut self, event: &Event) -> Vec<StreamEvent> {
        let is_at_work = matches!(event.name(), "call.status" | "call.output");
        match event.call_id() {
            Some(id) if is_at_work => {
                let id = id.clone();
                let mut events = self.runs(&id);
                let is_picture = |shown: &ShownCall| shown.kind == CallKind::ImageGeneration;
                if let Payload::Output(Content::Image { data, .. }) = event.payload()
                    && self.calls.get(&id).is_some_and(is_picture)
                {
                    events.extend(sent(self.writer.partial_image(&id, data)));
                }
                events
            }
            _ => Vec::new(),
        }
    }

    /// A call runs here.
    fn runs(&mut self, id: &CallId) -> Vec<StreamEvent> {
        let Some(shown) = self.calls.get_mut(id).filter(|shown| !shown.is_open) else {
            return Vec::new();
        };
        shown.is_open = true;
        let (call, kind) = (shown.call.clone(), shown.kind.clone());
        let mut events = sent(self.writer.prepare_call(&call, kind));
        events.extend(sent(self.writer.call_working(id)));
        events
    }

    /// A row of the journal, at this time in Unix seconds.
    pub(super) fn recorded(&mut self, entry: &JournalEntry, now: u64) -> Vec<StreamEvent> {
        match entry {
            JournalEntry::ModelAnswered { items, usage, names, .. } => {
                if let Some(usage) = usage {
                    self.add_usage(usage);
                }
                let mut events = self.writer.answered(items);
                for item in items {
                    if let View::Call(call) = item.view() {
                        let tool = names.get(&call.name).unwrap_or(&call.name).clone();
                        events.extend(self.made(call, &tool));
                    }
                }
                self.streamed.clear();
                events
            }
            JournalEntry::ModelLost { .. } => {
                for id in std::mem::take(&mut self.streamed) {
                    self.calls.remove(&id);
                }
                match self.writer.lost_answer() {
                    Ok(events) => events,
                    Err(lost) => {
                        self.is_broken = true;
                        let failure = ResponseFailure::new("server_error", lost.to_string());
                        self.writer.fail(failure, self.usage)
                    }
                }
            }
            JournalEntry::CallFinished { result, .. } => {
                let id = result.call_id().clone();
                let mut events = self.runs(&id);
                self.early = events.len();
                if self.calls.remove(&id).is_some() {
                    events.extend(sent(self.writer.complete_call(result)));
                }
                events
            }
            JournalEntry::CallsHandedOver { calls } => {
                let mut events = Vec::new();
                for id in calls {
                    self.calls.remove(id);
                    if let Ok((more, _)) = self.writer.hand_over(id) {
                        events.extend(more);
                    }
                }
                events
            }
            JournalEntry::Finished { outcome } => self.ended(outcome, now),
            _ => Vec::new(),
        }
    }

    fn add_usage(&mut self, usage: &Usage) {
        let all = self.usage.get_or_insert_default();
        all.input = all.input.saturating_add(usage.input);
        all.cached_input = all.cached_input.saturating_add(usage.cached_input);
        all.cache_write = all.cache_write.saturating_add(usage.cache_write);
        all.output = all.output.saturating_add(usage.output);
        all.reasoning = all.reasoning.saturating_add(usage.reasoning);
    }

    fn ended(&mut self, outcome: &Outcome, now: u64) -> Vec<StreamEvent> {
        match outcome {
            Outcome::Completed { .. } => self.writer.complete(now, self.usage),
            Outcome::Failed { reason, message, .. } => match reason {
                FailureReason::Incomplete => {
                    self.writer.incomplete("max_output_tokens", self.usage)
                }
                FailureReason::Filtered => self.writer.incomplete("content_filter", self.usage),
                FailureReason::Refused => self.writer.complete(now, self.usage),
                FailureReason::Budget(limit) => self.writer.incomplete(limit.as_str(), self.usage),
                FailureReason::ContextExceeded => {
                    self.failed("context_length_exceeded", message.clone())
                }
                FailureReason::Model => self.failed("model_error", message.clone()),
                other => self.failed(other.as_str(), message.clone()),
            },
            Outcome::Cancelled { .. } => {
                self.writer.cancel(self.usage);
                Vec::new()
            }
            _ => self.failed("server_error", "the run ended".to_owned()),
        }
    }

    /// The response fails.
    pub(super) fn failed(&mut self, code: &str, message: String) -> Vec<StreamEvent> {
        self.writer.fail(ResponseFailure::new(code, message), self.usage)
    }

    /// What follows from where the run rests, with these calls for somebody to decide on.
    pub(super) fn rest(&mut self, state: &AgentRun, waiting: &[Suspension]) -> Vec<StreamEvent> {
        if self.writer.is_over() || state.outcome().is_some() {
            return Vec::new();
        }
        let now = state.last_at().unix_millis() / 1_000;
        if let Some(reason) = state.paused() {
            return match reason {
                // It goes on at the next server.
                SERVER_STOPPED => Vec::new(),
                _ => self.writer.incomplete("paused", self.usage),
            };
        }
        if state.waiting().next().is_some() {
            // Sub-agents that nobody needs to decide on go on.
            return if waiting.is_empty() { Vec::new() } else { self.waits(waiting, now) };
        }
        if state.handed_over().next().is_some() {
            return self.writer.complete(now, self.usage);
        }
        Vec::new()
    }
}

impl Presenter {
    /// The run waits: the client is asked for what it may approve.
    fn waits(&mut self, waiting: &[Suspension], now: u64) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        let is_approval = |call: &Suspension| matches!(call.waiting(), Waiting::Approval { .. });
        // What is not kept cannot go on after a decision.
        let may_ask = self.is_stored && self.turn.may_approve();
        if may_ask && waiting.iter().all(is_approval) {
            for call in waiting {
                let (id, arguments) =
                    (approval_id(call.id()), visible_json(&call.shown().arguments));
                let question = ApprovalRequest::of(call, None).map(|asked| asked.text());
                let question = question.unwrap_or_default();
                let asked =
                    self.writer.request_approval(&id, LABEL, call.tool(), &arguments, &question);
                events.extend(asked);
            }
            events.extend(self.writer.complete(now, self.usage));
        } else if !self.is_background {
            events = self.writer.incomplete("approval_pending", self.usage);
        }
        events
    }
}

/// Whether an event of a whole answer is shown while the answer is written, when it happens.
fn is_streamed(event: &StreamEvent) -> bool {
    match event.name() {
        // A command for the client's shell is shown when it is whole.
        "response.output_item.added" => !event.json().contains("\"type\":\"local_shell_call\""),
        "response.custom_tool_call_input.delta" => false,
        name => matches!(name.rsplit('.').next(), Some("added" | "delta")),
    }
}

/// JSON in which characters that a screen does not show, or that change what it shows, are escapes.
fn visible_json(value: &Value) -> String {
    let mut json = String::new();
    for character in value.to_string().chars() {
        let is_visible = fully_visible(character.encode_utf8(&mut [0; 4])).starts_with(character);
        if is_visible || character == '\\' {
            json.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(json, "\\u{unit:04x}");
            }
        }
    }
    json
}

/// The id under which a client is asked for its approval of a waiting call.
pub(super) fn approval_id(call: &SuspensionId) -> String {
    format!("mcpr_{}", call.as_str())
}

/// The events of a step. One that the writer refuses is not shown.
fn sent(step: Result<Vec<StreamEvent>, StreamError>) -> Vec<StreamEvent> {
    step.unwrap_or_else(|error| {
        tracing::debug!(%error, "a step of a response is not shown");
        Vec::new()
    })
}
