//! Masks secrets in rows, and in answers while they stream.

use std::collections::BTreeMap;

use serde_json::Value;
use toolcrib_core::masking::LiveMask;
use toolcrib_tool::ByteMask;
use toolcrib_wire::model::ModelEvent;

use crate::{JournalEntry, JournalRow};

/// A row without secrets, and its JSON. Rows are masked before they are applied, so that a resumed run equals the one
/// that was interrupted.
pub(super) fn masked_row(
    mask: &LiveMask,
    row: JournalRow,
) -> Result<(JournalRow, Value), serde_json::Error> {
    let value = serde_json::to_value(&row)?;
    let masked = mask.value(value.clone());
    let row = if masked == value { row } else { serde_json::from_value(masked.clone())? };
    Ok((row, masked))
}

/// The first row with its notes masked. The rest of it is the host's own.
pub(super) fn masked_notes(mask: &LiveMask, mut started: JournalEntry) -> JournalEntry {
    if let JournalEntry::Started { metadata, .. } = &mut started {
        for text in metadata.values_mut() {
            if let Value::String(masked) = mask.value(Value::String(std::mem::take(text))) {
                *text = masked;
            }
        }
    }
    started
}

/// Masks the pieces of one answer. Each text has its own stream, since a secret may be cut between two pieces.
pub(super) struct MaskedAnswer<'a> {
    mask: &'a LiveMask,
    streams: BTreeMap<Text, ByteMask>,
    /// The characters that were shown.
    pub(super) shown: u64,
}

/// Which text a piece belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Text {
    Said,
    Reasoning,
    Refusal,
    Arguments(usize),
}

impl<'a> MaskedAnswer<'a> {
    pub(super) fn new(mask: &'a LiveMask) -> Self {
        Self { mask, streams: BTreeMap::new(), shown: 0 }
    }

    /// The events to show for this one.
    pub(super) fn events(&mut self, event: ModelEvent) -> Vec<ModelEvent> {
        let (text, delta) = match event {
            ModelEvent::Text { delta } => (Text::Said, delta),
            ModelEvent::Reasoning { delta } => (Text::Reasoning, delta),
            ModelEvent::Refusal { delta } => (Text::Refusal, delta),
            ModelEvent::Arguments { call, delta } => (Text::Arguments(call), delta),
            ModelEvent::CallFinished { call } => {
                let mut events: Vec<_> = self.rest_of(Text::Arguments(call)).into_iter().collect();
                events.push(ModelEvent::CallFinished { call });
                return events;
            }
            other => return vec![other],
        };
        let mask = self.mask;
        let stream = self.streams.entry(text).or_insert_with(|| mask.byte_masks()());
        let mut shown = Vec::new();
        stream(Some(delta.as_bytes()), &mut shown);
        self.event(text, &shown).into_iter().collect()
    }

    /// What was held back, at the end of a complete answer.
    pub(super) fn finish(&mut self) -> Vec<ModelEvent> {
        let texts: Vec<_> = self.streams.keys().copied().collect();
        texts.into_iter().filter_map(|text| self.rest_of(text)).collect()
    }

    fn rest_of(&mut self, text: Text) -> Option<ModelEvent> {
        let mut stream = self.streams.remove(&text)?;
        let mut shown = Vec::new();
        stream(None, &mut shown);
        self.event(text, &shown)
    }

    fn event(&mut self, text: Text, shown: &[u8]) -> Option<ModelEvent> {
        if shown.is_empty() {
            return None;
        }
        // Only whole characters are held back, so the text is never cut inside one.
        let delta = String::from_utf8_lossy(shown).into_owned();
        self.shown += delta.chars().count() as u64;
        Some(match text {
            Text::Said => ModelEvent::Text { delta },
            Text::Reasoning => ModelEvent::Reasoning { delta },
            Text::Refusal => ModelEvent::Refusal { delta },
            Text::Arguments(call) => ModelEvent::Arguments { call, delta },
        })
    }
}
