//! Decodes answers: whole bodies, and streams as their bytes arrive.

use std::collections::HashSet;
use std::sync::Arc;

use toolcrib_tool::CallId;

use super::anthropic::MessageStream;
use super::chat::ChatStream;
use super::responses::ResponseEvents;
use super::sse::SseParser;
use super::{Answer, Limits, ModelError, ModelEvent, Wire, anthropic, chat, json, responses};

/// How an answer is read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DecoderSettings {
    /// Where the answer comes from: an endpoint and a model, for example `openai/gpt-5`. Items go back unchanged to
    /// the same source only.
    pub source: Arc<str>,
    /// The ids of calls that the model omits or repeats become this text, `_` and a number (default `call`). Pass a
    /// text that differs for every answer of a conversation, for example `call_7`.
    pub call_id_prefix: String,
    /// The ids of earlier calls of the conversation. A call that repeats one receives another id; some servers number
    /// the calls of every answer from 0.
    pub taken_call_ids: Arc<HashSet<CallId>>,
    /// How large the answer may become.
    pub limits: Limits,
}

impl DecoderSettings {
    /// Settings for an answer from `source`.
    pub fn new(source: impl Into<Arc<str>>) -> Self {
        Self {
            source: source.into(),
            call_id_prefix: "call".to_owned(),
            taken_call_ids: Arc::default(),
            limits: Limits::default(),
        }
    }
}

/// Reads the body of an answer that was not streamed.
///
/// ```
/// use toolcrib_wire::model::{DecoderSettings, StopReason, Wire, read_answer};
///
/// let body = br#"{"id": "c1", "model": "m", "choices": [{"index": 0, "finish_reason": "tool_calls",
///     "message": {"role": "assistant", "content": null, "tool_calls": [
///         {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 1}"}}]}}]}"#;
/// let answer = read_answer(Wire::Chat, body, &DecoderSettings::new("local/m"))?;
/// assert_eq!(answer.stop, StopReason::Calls);
/// let calls: Vec<_> = answer.runnable_calls().collect();
/// assert_eq!((calls[0].name.as_str(), calls[0].arguments.as_str()), ("add", r#"{"a": 1}"#));
/// # Ok::<(), toolcrib_wire::model::ModelError>(())
/// ```
pub fn read_answer(
    wire: Wire,
    body: &[u8],
    settings: &DecoderSettings,
) -> Result<Answer, ModelError> {
    if body.len() as u64 > settings.limits.stream_bytes || body.len() > settings.limits.kept_bytes {
        return Err(ModelError::too_large(format!("its body has {} bytes", body.len())));
    }
    let tape = json::parsed(body)?;
    let body = json::object(tape.root())?;
    match wire {
        Wire::Chat => chat::read_completion(body, settings),
        Wire::Responses => responses::read_response(body, settings),
        Wire::Anthropic => anthropic::read_message(body, settings),
    }
}

/// Decodes a stream of server-sent events as its bytes arrive.
///
/// [`push`](Self::push) takes bytes that are cut anywhere and reports the [events](ModelEvent); the events do not depend
/// on the cuts. [`finish`](Self::finish) returns the answer, and an error if the stream was cut before its end: then
/// there is no call that could run. Work is linear in the bytes.
///
/// ```
/// use toolcrib_wire::model::{DecoderSettings, ModelEvent, StreamDecoder, Wire};
///
/// let stream = concat!(
///     "data: {\"id\": \"c1\", \"choices\": [{\"index\": 0, \"delta\": {\"content\": \"Hel\"}}]}\n\n",
///     "data: {\"id\": \"c1\", \"choices\": [{\"index\": 0, \"delta\": {\"content\": \"lo\"}, ",
///     "\"finish_reason\": \"stop\"}]}\n\n",
///     "data: [DONE]\n\n",
/// );
/// let mut decoder = StreamDecoder::new(Wire::Chat, DecoderSettings::new("local/m"));
/// let mut events = Vec::new();
/// for piece in stream.as_bytes().chunks(7) {
///     decoder.push(piece, &mut events)?;
/// }
/// assert!(decoder.is_complete());
/// let answer = decoder.finish(&mut events)?;
/// assert_eq!(answer.text(), "Hello");
/// assert_eq!(events[1], ModelEvent::Text { delta: "Hel".to_owned() });
/// # Ok::<(), toolcrib_wire::model::ModelError>(())
/// ```
#[derive(Debug)]
pub struct StreamDecoder {
    parser: SseParser,
    stream: Stream,
    limits: Limits,
    bytes: u64,
    events: u64,
    error: Option<ModelError>,
}

/// The state of one wire's stream.
#[derive(Debug)]
enum Stream {
    Chat(Box<ChatStream>),
    Responses(Box<ResponseEvents>),
    Anthropic(Box<MessageStream>),
}

impl StreamDecoder {
    /// A decoder for the stream of one answer.
    pub fn new(wire: Wire, settings: DecoderSettings) -> Self {
        Self {
            parser: SseParser::new(settings.limits.event_bytes),
            limits: settings.limits.clone(),
            stream: match wire {
                Wire::Chat => Stream::Chat(Box::new(ChatStream::new(settings))),
                Wire::Responses => Stream::Responses(Box::new(ResponseEvents::new(settings))),
                Wire::Anthropic => Stream::Anthropic(Box::new(MessageStream::new(settings))),
            },
            bytes: 0,
            events: 0,
            error: None,
        }
    }

    /// Takes the next bytes and appends what they report to `events`. After an error the answer is lost, and every
    /// later step returns the same error.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        self.read(bytes, events).inspect_err(|error| self.error = Some(error.clone()))
    }

    /// Whether the last event of the answer has arrived, so that nothing more has to be read. The connection may stay
    /// open longer. A chat server that sends no `[DONE]` ends its answer by closing the connection.
    pub fn is_complete(&self) -> bool {
        self.error.is_none()
            && match &self.stream {
                Stream::Chat(stream) => stream.is_complete(),
                Stream::Responses(stream) => stream.is_complete(),
                Stream::Anthropic(stream) => stream.is_complete(),
            }
    }

    /// Ends the stream. Returns the answer if it is complete; its last events are appended to `events`.
    pub fn finish(self, events: &mut Vec<ModelEvent>) -> Result<Answer, ModelError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.events == 0 {
            let what = if self.parser.is_inside_event() {
                "in its first event"
            } else {
                "before any event"
            };
            return Err(ModelError::cut(format!("the stream ended {what}")));
        }
        match self.stream {
            Stream::Chat(stream) => stream.finish(events),
            Stream::Responses(stream) => stream.finish(events),
            Stream::Anthropic(stream) => stream.finish(events),
        }
    }

    fn read(&mut self, mut bytes: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        while !bytes.is_empty() && !self.is_complete() {
            let advanced = self.parser.advance(bytes);
            let (read, complete) = advanced.map_err(|_| {
                let limit = self.limits.event_bytes;
                ModelError::too_large(format!("an event has more than {limit} bytes"))
                    .in_event(self.events + 1)
            })?;
            bytes = &bytes[read..];
            self.bytes += read as u64;
            if self.bytes > self.limits.stream_bytes {
                let limit = self.limits.stream_bytes;
                return Err(ModelError::too_large(format!(
                    "the stream has more than {limit} bytes"
                )));
            }
            if complete {
                self.events += 1;
                if self.events > self.limits.events {
                    let limit = self.limits.events;
                    return Err(ModelError::too_large(format!(
                        "the stream has more than {limit} events"
                    )));
                }
                let data = self.parser.data();
                let taken = match &mut self.stream {
                    Stream::Chat(stream) => stream.event(data, events),
                    Stream::Responses(stream) => stream.event(data, events),
                    Stream::Anthropic(stream) => stream.event(data, events),
                };
                taken.map_err(|error| error.in_event(self.events))?;
                self.parser.clear();
            }
        }
        Ok(())
    }
}
