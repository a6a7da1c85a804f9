//! Decodes the events of a streamed message.

use std::collections::BTreeMap;

use toolcrib_json::Cursor;

use super::super::call_ids::{CallIds, StartedCall};
use super::super::json::{
    ObjectWriter, member, object, parsed, required_object, required_text, text, whole, write_string,
};
use super::super::limits::Budget;
use super::super::{Answer, DecoderSettings, ModelError, ModelEvent, StopReason};
use super::block::{Tokens, input, stop, view};
use super::message::{failure, items, name};

/// The state of a streamed message.
#[derive(Debug)]
pub(in super::super) struct MessageStream {
    settings: DecoderSettings,
    budget: Budget,
    ids: CallIds,
    id: Option<String>,
    model: Option<String>,
    /// The blocks by their index.
    blocks: BTreeMap<u64, Block>,
    tokens: Tokens,
    stop: Option<StopReason>,
    is_done: bool,
}

/// A block that the model writes.
#[derive(Debug)]
struct Block {
    /// The block as it began.
    start: String,
    /// The pieces of its text, thinking, arguments or other content, joined.
    written: String,
    /// Which member the pieces are; `None` if there were none.
    member: Option<Written>,
    signature: Option<String>,
    /// Citations that came after the start, as JSON.
    citations: Vec<String>,
    call: Option<StartedCall>,
    is_done: bool,
}

/// The member of a block that comes in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Text,
    Thinking,
    Input,
    Content,
}

impl Written {
    const fn key(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Thinking => "thinking",
            Self::Input => "input",
            Self::Content => "content",
        }
    }
}

impl MessageStream {
    pub(in super::super) fn new(settings: DecoderSettings) -> Self {
        Self {
            budget: Budget::new(&settings.limits),
            ids: CallIds::new(&settings),
            settings,
            id: None,
            model: None,
            blocks: BTreeMap::new(),
            tokens: Tokens::default(),
            stop: None,
            is_done: false,
        }
    }

    pub(in super::super) fn is_complete(&self) -> bool {
        self.is_done
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
            "message_start" => self.start(event, events),
            "content_block_start" => self.start_block(event, events),
            "content_block_delta" => self.delta(event, events),
            "content_block_stop" => self.stop_block(event, events),
            "message_delta" => self.message_delta(event, events),
            "message_stop" => self.finish_message(event),
            // `ping`, and what later versions of the API add.
            _ => Ok(()),
        }
    }

    fn start(&mut self, event: Cursor<'_>, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let message = required_object(event, "message")?;
        self.id = name(message, "id")?;
        self.model = name(message, "model")?;
        events.push(ModelEvent::Started { id: self.id.clone(), model: self.model.clone() });
        self.take_usage(message, events)
    }

    fn start_block(
        &mut self,
        event: Cursor<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let index = index(event)?;
        let block = required_object(event, "content_block")?;
        // Checked here, so that an error names the field in the event.
        view(block)?;
        let kind = required_text(block, "type")?;
        if self.blocks.contains_key(&index) {
            return Err(ModelError::member(
                event,
                "index",
                "begins a block that has begun already",
            ));
        }
        if self.blocks.len() >= self.settings.limits.items {
            let limit = self.settings.limits.items;
            return Err(ModelError::too_large(format!("it has more than {limit} blocks")));
        }
        self.budget.take(block.source().len())?;
        let call = if &*kind == "tool_use" {
            let given = required_text(block, "id")?;
            let name = required_text(block, "name")?.into_owned();
            Some(self.ids.start(&given, name, events))
        } else {
            None
        };
        // Some servers begin a block with its first words.
        for (key, make) in
            [("text", text_event as fn(String) -> ModelEvent), ("thinking", reasoning_event)]
        {
            if let Some(words) =
                text(block, key)?.filter(|words| !words.is_empty() && *kind == *key)
            {
                events.push(make(words.into_owned()));
            }
        }
        self.blocks.insert(
            index,
            Block {
                start: block.source().to_owned(),
                written: String::new(),
                member: None,
                signature: None,
                citations: Vec::new(),
                call,
                is_done: false,
            },
        );
        Ok(())
    }

    fn delta(&mut self, event: Cursor<'_>, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let delta = required_object(event, "delta")?;
        let kind = required_text(delta, "type")?;
        let limits = &self.settings.limits;
        let budget = &mut self.budget;
        let block = open_block(&mut self.blocks, event)?;
        let (written, key) = match &*kind {
            "text_delta" => (Written::Text, "text"),
            "thinking_delta" => (Written::Thinking, "thinking"),
            "input_json_delta" => (Written::Input, "partial_json"),
            "compaction_delta" => (Written::Content, "content"),
            "signature_delta" => {
                let signature = required_text(delta, "signature")?;
                budget.take(signature.len())?;
                block.signature.get_or_insert_default().push_str(&signature);
                return Ok(());
            }
            "citations_delta" => {
                if let Some(citation) = member(delta, "citation") {
                    budget.take(citation.source().len())?;
                    block.citations.push(citation.source().to_owned());
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        let Some(piece) = text(delta, key)?.filter(|piece| !piece.is_empty()) else {
            return Ok(());
        };
        if *block.member.get_or_insert(written) != written {
            return Err(ModelError::member(
                delta,
                "type",
                "differs from the block's earlier deltas",
            ));
        }
        budget.take(piece.len())?;
        if written == Written::Input {
            limits.check_arguments(block.written.len() + piece.len())?;
        }
        block.written.push_str(&piece);
        match (written, &block.call) {
            (Written::Text, _) => events.push(text_event(piece.into_owned())),
            (Written::Thinking, _) => events.push(reasoning_event(piece.into_owned())),
            (Written::Input, Some(call)) => {
                let delta = piece.into_owned();
                events.push(ModelEvent::Arguments { call: call.position, delta });
            }
            (Written::Input | Written::Content, _) => {}
        }
        Ok(())
    }

    fn stop_block(
        &mut self,
        event: Cursor<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let block = open_block(&mut self.blocks, event)?;
        block.is_done = true;
        if let Some(call) = &block.call {
            events.push(ModelEvent::CallFinished { call: call.position });
        }
        Ok(())
    }

    fn message_delta(
        &mut self,
        event: Cursor<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if let Some(delta) = member(event, "delta")
            && let Some(stop) = stop(object(delta)?)?
        {
            self.stop = Some(stop);
        }
        self.take_usage(event, events)
    }

    fn take_usage(
        &mut self,
        place: Cursor<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if self.tokens.take(place)? {
            events.extend(self.tokens.usage().map(ModelEvent::Usage));
        }
        Ok(())
    }

    fn finish_message(&mut self, event: Cursor<'_>) -> Result<(), ModelError> {
        if let Some((index, _)) = self.blocks.iter().find(|(_, block)| !block.is_done) {
            return Err(ModelError::field(
                event,
                format!("ends the message while block {index} is open"),
            ));
        }
        if self.stop.is_none() {
            return Err(ModelError::field(event, "ends the message without a `stop_reason`"));
        }
        self.is_done = true;
        Ok(())
    }

    /// Ends the stream. The answer is whole if `message_stop` has come.
    pub(in super::super) fn finish(
        self,
        events: &mut Vec<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        let (true, Some(stop)) = (self.is_done, self.stop) else {
            return Err(ModelError::cut("the stream ended without `message_stop`"));
        };
        events.push(ModelEvent::Stopped(stop.clone()));
        let raws: Result<Vec<String>, ModelError> =
            self.blocks.into_values().map(Block::into_raw).collect();
        Ok(Answer {
            id: self.id,
            model: self.model,
            items: items(raws?, &self.settings)?,
            usage: self.tokens.usage(),
            stop,
        })
    }
}

impl Block {
    /// The whole block: as it began, with what was written since.
    fn into_raw(self) -> Result<String, ModelError> {
        let new_id = self.call.and_then(|call| call.new_id);
        if self.member.is_none()
            && self.signature.is_none()
            && self.citations.is_empty()
            && new_id.is_none()
        {
            return Ok(self.start);
        }
        let tape = parsed(self.start.as_bytes())?;
        let start = tape.root();
        let mut json = String::with_capacity(self.start.len() + self.written.len() + 32);
        let mut block = ObjectWriter::new(&mut json);
        let is_changed = |key: &str| {
            self.member.is_some_and(|member| member.key() == key)
                || (key == "signature" && self.signature.is_some())
                || (key == "citations" && !self.citations.is_empty())
                || (key == "id" && new_id.is_some())
        };
        for (name, value) in start.members() {
            let key = name.key_text();
            if !is_changed(&key) {
                block.raw(&key, value.source());
            }
        }
        if let Some(id) = &new_id {
            block.string("id", id.as_str());
        }
        if let Some(member) = self.member {
            if member == Written::Input {
                block.raw("input", &input(&self.written));
            } else {
                let begun = text(start, member.key())?.unwrap_or_default();
                block.string(member.key(), &(begun.into_owned() + &self.written));
            }
        }
        if let Some(signature) = &self.signature {
            let begun = text(start, "signature")?.unwrap_or_default();
            write_string(block.key("signature"), &(begun.into_owned() + signature));
        }
        if !self.citations.is_empty() {
            let begun = start.get("citations").into_iter().flat_map(Cursor::items);
            let all: Vec<&str> = begun
                .map(Cursor::source)
                .chain(self.citations.iter().map(String::as_str))
                .collect();
            block.raw("citations", &format!("[{}]", all.join(",")));
        }
        block.end();
        Ok(json)
    }
}

fn text_event(delta: String) -> ModelEvent {
    ModelEvent::Text { delta }
}

fn reasoning_event(delta: String) -> ModelEvent {
    ModelEvent::Reasoning { delta }
}

fn index(event: Cursor<'_>) -> Result<u64, ModelError> {
    whole(event, "index")?.ok_or_else(|| {
        ModelError::member(event, "index", "is missing; it must be the block's number")
    })
}

/// The block of an event, which must have begun and not ended.
fn open_block<'a>(
    blocks: &'a mut BTreeMap<u64, Block>,
    event: Cursor<'_>,
) -> Result<&'a mut Block, ModelError> {
    let index = index(event)?;
    let block = blocks.get_mut(&index).filter(|block| !block.is_done);
    block.ok_or_else(|| ModelError::member(event, "index", "names a block that is not open"))
}
