//! Decodes the events of a streamed response.

use std::collections::{BTreeMap, HashMap, HashSet};

use toolcrib_json::Cursor;

use super::super::call_ids::{CallIds, StartedCall};
use super::super::item::View;
use super::super::json::{
    ObjectWriter, member, object, objects, parsed, required_object, required_text, text, whole,
    write_string,
};
use super::super::limits::Budget;
use super::super::{Answer, DecoderSettings, ModelError, ModelEvent, StopReason, Usage};
use super::item::{is_call, stop, usage, view};
use super::response::{Named, answer, call_id, failure, is_kind, name, with_members};

/// The state of a streamed response.
#[derive(Debug)]
pub(in super::super) struct ResponseEvents {
    settings: DecoderSettings,
    budget: Budget,
    ids: CallIds,
    started: bool,
    named: Named,
    /// The items by their position in the output.
    slots: BTreeMap<u64, Slot>,
    /// The positions by the items' ids, for events that name no position.
    by_id: HashMap<String, u64>,
    end: Option<End>,
}

/// An item that the model writes.
#[derive(Debug, Default)]
struct Slot {
    /// The item as it was added.
    added: Option<String>,
    /// The finished item.
    done: Option<String>,
    /// The text, or the arguments, so far.
    written: String,
    call: Option<StartedCall>,
}

/// The last event of a response.
#[derive(Debug)]
struct End {
    stop: StopReason,
    usage: Option<Usage>,
    /// The items that it repeats.
    output: Vec<String>,
}

impl ResponseEvents {
    pub(in super::super) fn new(settings: DecoderSettings) -> Self {
        Self {
            budget: Budget::new(&settings.limits),
            ids: CallIds::new(&settings),
            settings,
            started: false,
            named: Named::default(),
            slots: BTreeMap::new(),
            by_id: HashMap::new(),
            end: None,
        }
    }

    pub(in super::super) fn is_complete(&self) -> bool {
        self.end.is_some()
    }

    /// Takes the data of one event.
    pub(in super::super) fn event(
        &mut self,
        data: &[u8],
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if matches!(data.trim_ascii(), b"" | b"[DONE]") {
            return Ok(());
        }
        let tape = parsed(data)?;
        let event = object(tape.root())?;
        if let Some(failure) = failure(event) {
            return Err(failure);
        }
        match &*required_text(event, "type")? {
            "response.created" | "response.in_progress" | "response.queued" => {
                self.start(required_object(event, "response")?, events)
            }
            "response.output_item.added" => self.add(event, events),
            "response.output_item.done" => self.done(event, events),
            "response.output_text.delta" => self.text(event, events),
            "response.refusal.delta" => {
                let delta = self.delta(event)?;
                events.push(ModelEvent::Refusal { delta });
                Ok(())
            }
            "response.reasoning_summary_text.delta"
            | "response.reasoning_text.delta"
            | "response.reasoning.delta" => {
                let delta = self.delta(event)?;
                events.push(ModelEvent::Reasoning { delta });
                Ok(())
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                let delta = self.delta(event)?;
                let slot = self.slot(event)?;
                self.write(slot, &delta, events)
            }
            "response.function_call_arguments.done" => self.arguments(event, "arguments", events),
            "response.custom_tool_call_input.done" => self.arguments(event, "input", events),
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => self.end(required_object(event, "response")?, events),
            // Progress of the provider's own tools, and what later versions of the API add.
            _ => Ok(()),
        }
    }

    fn start(
        &mut self,
        response: Cursor<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if !std::mem::replace(&mut self.started, true) {
            self.named = Named { id: name(response, "id")?, model: name(response, "model")? };
            let Named { id, model } = &self.named;
            events.push(ModelEvent::Started { id: id.clone(), model: model.clone() });
        }
        Ok(())
    }

    fn add(&mut self, event: Cursor<'_>, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let item = required_object(event, "item")?;
        let slot = self.slot(event)?;
        if self.slots.get(&slot).is_some_and(|slot| slot.added.is_some() || slot.done.is_some()) {
            return Ok(());
        }
        self.budget.take(item.source().len())?;
        self.slots.entry(slot).or_default().added = Some(item.source().to_owned());
        if is_call(item) && member(item, "call_id").is_some() && member(item, "name").is_some() {
            self.start_call(slot, item, events)?;
        }
        Ok(())
    }

    fn start_call(
        &mut self,
        slot: u64,
        item: Cursor<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let given = required_text(item, "call_id")?;
        let name = required_text(item, "name")?.into_owned();
        let slot = self.slots.entry(slot).or_default();
        if slot.call.is_some() {
            return Ok(());
        }
        let call = self.ids.start(&given, name, events);
        if !slot.written.is_empty() {
            events.push(ModelEvent::Arguments { call: call.position, delta: slot.written.clone() });
        }
        slot.call = Some(call);
        Ok(())
    }

    fn text(&mut self, event: Cursor<'_>, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let delta = self.delta(event)?;
        let slot = self.slot(event)?;
        self.slots.entry(slot).or_default().written.push_str(&delta);
        if !delta.is_empty() {
            events.push(ModelEvent::Text { delta });
        }
        Ok(())
    }

    /// Adds a piece to a call's arguments.
    fn write(
        &mut self,
        slot: u64,
        delta: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let slot = self.slots.entry(slot).or_default();
        self.settings.limits.check_arguments(slot.written.len() + delta.len())?;
        slot.written.push_str(delta);
        if let Some(call) = slot.call.as_ref().filter(|_| !delta.is_empty()) {
            events.push(ModelEvent::Arguments { call: call.position, delta: delta.to_owned() });
        }
        Ok(())
    }

    /// Takes whole arguments: only what the deltas left out is new.
    fn arguments(
        &mut self,
        event: Cursor<'_>,
        key: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let Some(all) = text(event, key)? else { return Ok(()) };
        let slot = self.slot(event)?;
        self.complete(slot, &all, events)
    }

    fn complete(
        &mut self,
        slot: u64,
        all: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let written = self.slots.get(&slot).map_or("", |slot| slot.written.as_str());
        if let Some(rest) = all.strip_prefix(written).filter(|rest| !rest.is_empty()) {
            self.budget.take(rest.len())?;
            return self.write(slot, rest, events);
        }
        Ok(())
    }

    fn done(&mut self, event: Cursor<'_>, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let item = required_object(event, "item")?;
        let slot = self.slot(event)?;
        if self.slots.get(&slot).is_some_and(|slot| slot.done.is_some()) {
            return Ok(());
        }
        self.budget.take(item.source().len())?;
        if let View::Call(call) = view(item)? {
            self.start_call(slot, item, events)?;
            let written = text(item, if call.is_custom { "input" } else { "arguments" })?;
            self.complete(slot, &written.unwrap_or_default(), events)?;
        }
        let slot = self.slots.entry(slot).or_default();
        slot.done = Some(item.source().to_owned());
        slot.added = None;
        slot.written = String::new();
        if let Some(call) = &slot.call {
            events.push(ModelEvent::CallFinished { call: call.position });
        }
        Ok(())
    }

    fn end(
        &mut self,
        response: Cursor<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let stop = stop(response)?;
        self.start(response, events)?;
        let usage = usage(response)?;
        events.extend(usage.map(ModelEvent::Usage));
        let mut output = Vec::new();
        for item in objects(response, "output")? {
            let item = item?;
            view(item)?;
            if output.len() >= self.settings.limits.items {
                return Err(self.too_many());
            }
            self.budget.take(item.source().len())?;
            output.push(item.source().to_owned());
        }
        self.end = Some(End { stop, usage, output });
        Ok(())
    }

    /// The position of the item of an event. Servers name the position, the item's id or both.
    fn slot(&mut self, event: Cursor<'_>) -> Result<u64, ModelError> {
        let id = match member(event, "item") {
            Some(item) => text(item, "id")?,
            None => text(event, "item_id")?,
        };
        let slot = match whole(event, "output_index")? {
            Some(index) => index,
            None => match id.as_deref().and_then(|id| self.by_id.get(id)) {
                Some(index) => *index,
                None if id.is_some() => self.slots.keys().next_back().map_or(0, |last| last + 1),
                None => {
                    return Err(ModelError::member(
                        event,
                        "output_index",
                        "is missing; it must be the item's position in the output",
                    ));
                }
            },
        };
        if !self.slots.contains_key(&slot) {
            if self.slots.len() >= self.settings.limits.items {
                return Err(self.too_many());
            }
            self.slots.insert(slot, Slot::default());
            if let Some(id) = id {
                self.budget.take(id.len())?;
                self.by_id.insert(id.into_owned(), slot);
            }
        }
        Ok(slot)
    }

    fn delta(&mut self, event: Cursor<'_>) -> Result<String, ModelError> {
        let delta = text(event, "delta")?.unwrap_or_default();
        self.budget.take(delta.len())?;
        Ok(delta.into_owned())
    }

    fn too_many(&self) -> ModelError {
        ModelError::too_large(format!("it has more than {} items", self.settings.limits.items))
    }

    /// Ends the stream. The answer is whole if the response's last event has come.
    pub(in super::super) fn finish(
        mut self,
        events: &mut Vec<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        let Some(end) = self.end.take() else {
            return Err(ModelError::cut("the stream ended without `response.completed`"));
        };
        let mut repeated = HashMap::new();
        for (position, raw) in end.output.iter().enumerate() {
            if let Some(identity) = identity(parsed(raw.as_bytes())?.root())? {
                repeated.entry(identity).or_insert(position);
            }
        }
        let mut raws = Vec::with_capacity(self.slots.len());
        let mut known = HashSet::new();
        for (index, slot) in std::mem::take(&mut self.slots) {
            if let Some(raw) = slot.into_raw(index, &end.output, &repeated)? {
                known.extend(id_of_call(&raw.0)?);
                raws.push(raw);
            }
        }
        let is_empty = raws.is_empty();
        for raw in &end.output {
            // Some servers leave out the events of an item. Ids of other items may differ between events.
            let id = id_of_call(raw)?;
            if is_empty || id.is_some_and(|id| !known.contains(&id)) {
                raws.push((raw.clone(), None));
            }
        }
        let mut finished = Vec::with_capacity(raws.len());
        for (raw, call) in raws {
            let new_id = match (call, id_of_call(&raw)?) {
                (Some(call), _) => call.new_id,
                (None, Some(given)) => {
                    Some(self.ids.of(Some(&given))).filter(|id| id.as_str() != given)
                }
                (None, None) => None,
            };
            finished.push(match new_id {
                Some(id) => {
                    with_members(parsed(raw.as_bytes())?.root(), &[("call_id", id.as_str())])
                }
                None => raw,
            });
        }
        let answer = answer(self.named, finished, end.stop, end.usage, &self.settings)?;
        events.push(ModelEvent::Stopped(answer.stop.clone()));
        Ok(answer)
    }
}

impl Slot {
    /// The item's JSON: as it was finished, as the last event repeats it, or put together from its pieces.
    fn into_raw(
        self,
        index: u64,
        output: &[String],
        repeated: &HashMap<Identity, usize>,
    ) -> Result<Option<(String, Option<StartedCall>)>, ModelError> {
        if let Some(done) = self.done {
            return Ok(Some((done, self.call)));
        }
        let Some(added) = self.added else {
            if self.written.is_empty() {
                return Ok(None);
            }
            // A server that sends only deltas: the last event may have the item.
            let repeated = usize::try_from(index).ok().and_then(|index| output.get(index));
            return Ok(Some((
                repeated.cloned().unwrap_or_else(|| message(&self.written)),
                self.call,
            )));
        };
        let tape = parsed(added.as_bytes())?;
        let item = tape.root();
        let same = identity(item)?.and_then(|identity| output.get(*repeated.get(&identity)?));
        if let Some(raw) = same {
            return Ok(Some((raw.clone(), self.call)));
        }
        let raw = if is_call(item) {
            let key = if is_kind(item, "custom_tool_call") { "input" } else { "arguments" };
            with_members(item, &[(key, &self.written), ("status", "completed")])
        } else if is_kind(item, "message") && !self.written.is_empty() {
            message(&self.written)
        } else {
            item.source().to_owned()
        };
        Ok(Some((raw, self.call)))
    }
}

/// A message of a server that never finished its item.
fn message(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 96);
    let mut item = ObjectWriter::new(&mut json);
    item.string("type", "message");
    item.string("role", "assistant");
    item.string("status", "completed");
    let list = item.key("content");
    list.push_str(r#"[{"type":"output_text","annotations":[],"text":"#);
    write_string(list, text);
    list.push_str("}]");
    item.end();
    json
}

/// What tells an item from others: whether it is a call, and its id.
type Identity = (bool, String);

fn identity(item: Cursor<'_>) -> Result<Option<Identity>, ModelError> {
    if let Some(id) = call_id(item) {
        return Ok(Some((true, id)));
    }
    Ok(text(item, "id")?.map(|id| (false, id.into_owned())))
}

fn id_of_call(raw: &str) -> Result<Option<String>, ModelError> {
    Ok(call_id(parsed(raw.as_bytes())?.root()))
}
