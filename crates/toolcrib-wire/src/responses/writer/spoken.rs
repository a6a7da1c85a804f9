//! Messages and reasoning while the model writes them.

use serde_json::{Value, json};

use super::super::numbering::{ItemPosition, Numbering};
use super::frame::{PartBody, PartPlace, part_event};
use crate::api::StreamEvent;

/// What an item of the model's words is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpokenKind {
    Message,
    Reasoning,
}

/// What a part of such an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartKind {
    Text,
    Refusal,
    Summary,
}

/// The names of the events of a part.
struct PartEvents {
    added: &'static str,
    delta: &'static str,
    text_done: &'static str,
    done: &'static str,
    /// The key of the number of the part.
    index: &'static str,
    /// The key of the whole text.
    whole: &'static str,
}

impl PartKind {
    const fn events(self) -> PartEvents {
        match self {
            Self::Text => PartEvents {
                added: "response.content_part.added",
                delta: "response.output_text.delta",
                text_done: "response.output_text.done",
                done: "response.content_part.done",
                index: "content_index",
                whole: "text",
            },
            Self::Refusal => PartEvents {
                added: "response.content_part.added",
                delta: "response.refusal.delta",
                text_done: "response.refusal.done",
                done: "response.content_part.done",
                index: "content_index",
                whole: "refusal",
            },
            Self::Summary => PartEvents {
                added: "response.reasoning_summary_part.added",
                delta: "response.reasoning_summary_text.delta",
                text_done: "response.reasoning_summary_text.done",
                done: "response.reasoning_summary_part.done",
                index: "summary_index",
                whole: "text",
            },
        }
    }

    fn body<'a>(self, key: &'static str, text: &'a str) -> PartBody<'a> {
        match self {
            Self::Text => PartBody::OutputText(key, text),
            _ => PartBody::Text(key, text),
        }
    }

    fn value(self, text: &str, annotations: &[Value]) -> Value {
        match self {
            Self::Text => json!({
                "type": "output_text",
                "text": text,
                "annotations": annotations,
                "logprobs": [],
            }),
            Self::Refusal => json!({"type": "refusal", "refusal": text}),
            Self::Summary => json!({"type": "summary_text", "text": text}),
        }
    }
}

/// A message or reasoning that is not done.
#[derive(Debug, Clone)]
pub(super) struct Spoken {
    pub(super) kind: SpokenKind,
    pub(super) place: ItemPosition,
    /// The parts that are done.
    parts: Vec<Value>,
    open: Option<OpenPart>,
    /// All texts so far.
    pub(super) text: String,
}

#[derive(Debug, Clone)]
struct OpenPart {
    kind: PartKind,
    /// Where its text begins in all texts.
    start: usize,
    annotations: Vec<Value>,
}

impl Spoken {
    pub(super) fn new(kind: SpokenKind, place: ItemPosition) -> Self {
        Self { kind, place, parts: Vec::new(), open: None, text: String::new() }
    }

    /// Whether more text can follow.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some() || self.parts.is_empty()
    }

    fn part_place(&self, kind: PartKind) -> PartPlace {
        PartPlace { key: kind.events().index, index: self.parts.len() as u64 }
    }

    /// A piece of text in a part of this kind.
    pub(super) fn write(
        &mut self,
        kind: PartKind,
        delta: &str,
        numbering: &mut Numbering,
        out: &mut Vec<StreamEvent>,
    ) {
        if self.open.as_ref().is_some_and(|open| open.kind != kind) {
            self.close_part(numbering, out);
        }
        let place = self.part_place(kind);
        let events = kind.events();
        if self.open.is_none() {
            let part = kind.value("", &[]);
            let body = PartBody::Part(&part);
            out.push(part_event(numbering, events.added, &self.place, place, &body));
            let start = self.text.len();
            self.open = Some(OpenPart { kind, start, annotations: Vec::new() });
        }
        if !delta.is_empty() {
            self.text.push_str(delta);
            let body = kind.body("delta", delta);
            out.push(part_event(numbering, events.delta, &self.place, place, &body));
        }
    }

    /// An annotation of the text so far; whether there is a text.
    pub(super) fn annotate(
        &mut self,
        annotation: &Value,
        numbering: &mut Numbering,
        out: &mut Vec<StreamEvent>,
    ) -> bool {
        let place = self.part_place(PartKind::Text);
        let Some(open) = self.open.as_mut().filter(|open| open.kind == PartKind::Text) else {
            return false;
        };
        let index = open.annotations.len() as u64;
        open.annotations.push(annotation.clone());
        out.push(part_event(
            numbering,
            "response.output_text.annotation.added",
            &self.place,
            place,
            &PartBody::Annotation(annotation, index),
        ));
        true
    }

    /// Ends the open part.
    pub(super) fn close_part(&mut self, numbering: &mut Numbering, out: &mut Vec<StreamEvent>) {
        let Some(open) = self.open.take() else { return };
        let place = self.part_place(open.kind);
        let events = open.kind.events();
        let text = self.text.get(open.start..).unwrap_or_default();
        let body = open.kind.body(events.whole, text);
        out.push(part_event(numbering, events.text_done, &self.place, place, &body));
        let part = open.kind.value(text, &open.annotations);
        let body = PartBody::Part(&part);
        out.push(part_event(numbering, events.done, &self.place, place, &body));
        self.parts.push(part);
    }

    /// The item with the parts that are done.
    pub(super) fn to_value(
        &self,
        status: &str,
        phase: Option<&str>,
        encrypted_content: Option<&str>,
    ) -> Value {
        let id = &*self.place.item_id;
        match self.kind {
            SpokenKind::Message => {
                let mut item = json!({
                    "id": id,
                    "type": "message",
                    "status": status,
                    "role": "assistant",
                    "content": self.parts,
                });
                if let Some(phase) = phase {
                    item["phase"] = phase.into();
                }
                item
            }
            SpokenKind::Reasoning => {
                let mut item = json!({"id": id, "type": "reasoning", "summary": self.parts});
                if let Some(content) = encrypted_content {
                    item["encrypted_content"] = content.into();
                }
                item
            }
        }
    }
}
