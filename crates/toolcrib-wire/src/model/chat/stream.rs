//! Decodes the chunks of a streamed completion.

use toolcrib_json::{Cursor, Kind};

use super::super::json::{ObjectWriter, member, object, objects, parsed, text, whole};
use super::super::limits::Budget;
use super::super::{Answer, DecoderSettings, ModelError, ModelEvent, StopReason, Usage};
use super::calls::Calls;
use super::completion::{checked, failure, id, items};
use super::message::{Part, parts, stop, usage};
use super::reasoning::Reasoning;
use super::{REASONING_DETAILS, REASONING_TEXTS};

/// The state of a streamed completion.
#[derive(Debug)]
pub(in super::super) struct ChatStream {
    settings: DecoderSettings,
    budget: Budget,
    started: bool,
    id: Option<String>,
    model: Option<String>,
    text: String,
    refusal: String,
    /// Further members of the message, as JSON text: some servers put signatures there.
    extra: Vec<(String, String)>,
    reasoning: Reasoning,
    calls: Calls,
    usage: Option<Usage>,
    stop: Option<StopReason>,
    is_done: bool,
}

impl ChatStream {
    pub(in super::super) fn new(settings: DecoderSettings) -> Self {
        Self {
            budget: Budget::new(&settings.limits),
            calls: Calls::new(&settings),
            settings,
            started: false,
            id: None,
            model: None,
            text: String::new(),
            refusal: String::new(),
            extra: Vec::new(),
            reasoning: Reasoning::default(),
            usage: None,
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
        match data.trim_ascii() {
            b"[DONE]" => {
                self.is_done = true;
                return Ok(());
            }
            b"" => return Ok(()),
            _ => {}
        }
        let tape = parsed(data)?;
        let chunk = object(tape.root())?;
        if let Some(failure) = failure(chunk) {
            return Err(failure);
        }
        if !self.started && chunk.get("choices").is_some() {
            self.started = true;
            self.id = id(chunk, "id")?;
            self.model = id(chunk, "model")?;
            events.push(ModelEvent::Started { id: self.id.clone(), model: self.model.clone() });
        }
        if let Some(usage) = usage(chunk)? {
            self.usage = Some(usage);
            events.push(ModelEvent::Usage(usage));
        }
        for choice in objects(chunk, "choices")? {
            let choice = choice?;
            if whole(choice, "index")?.unwrap_or_default() == 0 {
                self.choice(choice, events)?;
            }
        }
        Ok(())
    }

    fn choice(
        &mut self,
        choice: Cursor<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let delta = member(choice, "delta").or_else(|| member(choice, "message"));
        if let Some(delta) = delta {
            self.delta(object(delta)?, events)?;
        }
        if let Some(stop) = stop(choice)? {
            self.stop = Some(checked(stop)?);
        }
        Ok(())
    }

    fn delta(&mut self, delta: Cursor<'_>, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.reasoning.take(delta, &self.settings.limits, &mut self.budget, events)?;
        let mut bytes = 0;
        parts(delta, |part| match part {
            Part::Text(text) if text.is_empty() => {}
            Part::Text(text) => {
                bytes += text.len();
                self.text.push_str(&text);
                events.push(ModelEvent::Text { delta: text.into_owned() });
            }
            Part::Reasoning(text) => {
                events.push(ModelEvent::Reasoning { delta: text.into_owned() });
            }
        })?;
        self.budget.take(bytes)?;
        if let Some(refusal) = text(delta, "refusal")?.filter(|refusal| !refusal.is_empty()) {
            self.budget.take(refusal.len())?;
            self.refusal.push_str(&refusal);
            events.push(ModelEvent::Refusal { delta: refusal.into_owned() });
        }
        for call in objects(delta, "tool_calls")? {
            self.calls.delta(call?, &mut self.budget, events)?;
        }
        if let Some(function) = member(delta, "function_call") {
            self.calls.legacy_delta(function, &mut self.budget, events)?;
        }
        self.keep_extra(delta)
    }

    /// Keeps members that this crate does not know. Objects only: the plain ones are counters and the like.
    fn keep_extra(&mut self, delta: Cursor<'_>) -> Result<(), ModelError> {
        for (name, value) in delta.members().filter(|(_, value)| value.kind() == Kind::Object) {
            let key = name.key_text();
            let is_known = REASONING_TEXTS.contains(&&*key)
                || matches!(
                    &*key,
                    REASONING_DETAILS | "role" | "content" | "tool_calls" | "function_call"
                );
            if !is_known {
                self.budget.take(value.source().len())?;
                self.extra.retain(|(known, _)| *known != *key);
                self.extra.push((key.into_owned(), value.source().to_owned()));
            }
        }
        Ok(())
    }

    /// Ends the stream. The answer is whole if the server said why it stopped.
    pub(in super::super) fn finish(
        self,
        events: &mut Vec<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        let Some(stop) = self.stop.clone() else {
            return Err(ModelError::cut("the stream ended without a `finish_reason`"));
        };
        let said = self.said();
        let calls = self.calls.finish(events)?;
        events.push(ModelEvent::Stopped(stop.clone()));
        let raws = [self.reasoning.finish(), said];
        Ok(Answer {
            id: self.id,
            model: self.model,
            items: items(raws.into_iter().flatten().chain(calls), &self.settings)?,
            usage: self.usage,
            stop,
        })
    }

    /// The message without its reasoning and calls, if it says anything.
    fn said(&self) -> Option<String> {
        if self.text.is_empty() && self.refusal.is_empty() && self.extra.is_empty() {
            return None;
        }
        let mut json = String::with_capacity(self.text.len() + 64);
        let mut message = ObjectWriter::new(&mut json);
        message.string("role", "assistant");
        if self.text.is_empty() {
            message.raw("content", "null");
        } else {
            message.string("content", &self.text);
        }
        if !self.refusal.is_empty() {
            message.string("refusal", &self.refusal);
        }
        for (key, value) in &self.extra {
            message.raw(key, value);
        }
        message.end();
        Some(json)
    }
}
