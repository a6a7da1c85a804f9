//! The events of messages, reasoning and whole responses as they are sent.

use std::fmt::Write as _;

use serde_json::Value;

use super::super::numbering::{ItemPosition, Numbering};
use crate::api::StreamEvent;

/// Appends `,"key":` and a text.
fn text(out: &mut String, key: &str, text: &str) {
    out.push_str(",\"");
    out.push_str(key);
    out.push_str("\":");
    // A string always has a JSON text.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

/// Appends `,"key":` and JSON.
fn json(out: &mut String, key: &str, value: &Value) {
    // Writing into a string cannot fail.
    let _ = write!(out, ",\"{key}\":{value}");
}

fn whole(out: &mut String, key: &str, number: u64) {
    let _ = write!(out, ",\"{key}\":{number}");
}

/// A part of an item: `content_index` or `summary_index`, and its number.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartPlace {
    pub(super) key: &'static str,
    pub(super) index: u64,
}

/// What an event about a part says.
pub(super) enum PartBody<'a> {
    /// A piece, or the whole, of a text under a key.
    Text(&'static str, &'a str),
    /// The same of an answer's text, which may have probabilities.
    OutputText(&'static str, &'a str),
    /// The part itself.
    Part(&'a Value),
    /// An annotation and its number.
    Annotation(&'a Value, u64),
}

/// An event about a part of an item.
pub(super) fn part_event(
    numbering: &mut Numbering,
    name: &str,
    place: &ItemPosition,
    part: PartPlace,
    body: &PartBody<'_>,
) -> StreamEvent {
    StreamEvent::new(name, numbering.take_sequence_number(), false, |out| {
        text(out, "item_id", &place.item_id);
        whole(out, "output_index", place.output_index);
        whole(out, part.key, part.index);
        match body {
            PartBody::Text(key, piece) => text(out, key, piece),
            PartBody::OutputText(key, piece) => {
                text(out, key, piece);
                out.push_str(",\"logprobs\":[]");
            }
            PartBody::Part(part) => json(out, "part", part),
            PartBody::Annotation(annotation, index) => {
                json(out, "annotation", annotation);
                whole(out, "annotation_index", *index);
            }
        }
    })
}

/// An event with an item.
pub(super) fn item_event(
    numbering: &mut Numbering,
    name: &str,
    place: &ItemPosition,
    item: &Value,
) -> StreamEvent {
    StreamEvent::new(name, numbering.take_sequence_number(), false, |out| {
        whole(out, "output_index", place.output_index);
        json(out, "item", item);
    })
}

/// An event about an item without more.
pub(super) fn plain_event(
    numbering: &mut Numbering,
    name: &str,
    place: &ItemPosition,
) -> StreamEvent {
    StreamEvent::new(name, numbering.take_sequence_number(), false, |out| {
        text(out, "item_id", &place.item_id);
        whole(out, "output_index", place.output_index);
    })
}

/// An event with the response.
pub(super) fn response_event(
    numbering: &mut Numbering,
    name: &str,
    response: &Value,
    is_terminal: bool,
) -> StreamEvent {
    StreamEvent::new(name, numbering.take_sequence_number(), is_terminal, |out| {
        json(out, "response", response);
    })
}

/// An event with these members.
pub(super) fn event_of(name: &str, sequence_number: u64, members: &Value) -> StreamEvent {
    StreamEvent::new(name, sequence_number, false, |out| {
        for (key, value) in members.as_object().into_iter().flatten() {
            if key != "type" && key != "sequence_number" {
                json(out, key, value);
            }
        }
    })
}
