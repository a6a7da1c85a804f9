//! What readers do not see: secrets in rows and in answers while they stream, and arguments that tools declare sensitive.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolcrib_core::Turn;
use toolcrib_core::masking::LiveMask;
use toolcrib_core::run::{RunId, Seq};
use toolcrib_tool::ByteMask;
use toolcrib_wire::model::{ModelEvent, ModelItem, View};

use super::{AgentEvent, AgentState};
use crate::sub_agents::tools::ATTEMPT_COMPLETION;
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
        let notes = std::mem::take(metadata).into_iter();
        *metadata = notes.map(|(key, text)| (mask.text(key), mask.text(text))).collect();
    }
    started
}

impl AgentState {
    /// Shows viewers a row.
    pub(super) fn show_row(&self, run: &RunId, seq: Seq, row: JournalRow) {
        if self.listener.is_some() {
            let entry = row.entry.for_readers();
            self.show(&AgentEvent::Recorded { run, seq, entry: &entry });
        }
    }

    /// The arguments of an answer's calls as everybody may read them, where these are others.
    pub(super) fn hidden_arguments(
        &self,
        turn: &Turn,
        items: &[ModelItem],
        names: &BTreeMap<String, String>,
        client_tools: &BTreeSet<String>,
    ) -> BTreeMap<String, String> {
        let hidden = items.iter().filter_map(|item| {
            let View::Call(call) = item.view() else { return None };
            let tool = names.get(&call.name).unwrap_or(&call.name);
            if !self.hides_arguments(turn, tool, client_tools) {
                return None;
            }
            let made = call.to_tool_call(tool.as_str());
            let hidden = turn.hidden_arguments(tool, made.arguments().as_str())?;
            Some((call.id.as_str().to_owned(), hidden))
        });
        hidden.collect()
    }

    /// Whether a tool declares arguments sensitive, or is none. Those of a client's own tools are for the client.
    pub(super) fn hides_arguments(
        &self,
        turn: &Turn,
        tool: &str,
        client_tools: &BTreeSet<String>,
    ) -> bool {
        let is_answer = tool == ATTEMPT_COMPLETION && self.completion.is_some();
        !is_answer && !client_tools.contains(tool) && turn.hides_arguments(tool)
    }
}

/// Masks the pieces of one answer. Each text has its own stream, since a secret may be cut between two pieces. Arguments of
/// tools that declare some of them sensitive are left out.
pub(super) struct MaskedAnswer<'a> {
    mask: &'a LiveMask,
    /// Whether a tool, by the provider's name for it, declares arguments sensitive.
    hides: &'a (dyn Fn(&str) -> bool + Sync),
    /// The calls of such tools.
    hidden: BTreeSet<usize>,
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
    pub(super) fn new(mask: &'a LiveMask, hides: &'a (dyn Fn(&str) -> bool + Sync)) -> Self {
        Self { mask, hides, hidden: BTreeSet::new(), streams: BTreeMap::new(), shown: 0 }
    }

    /// The events to show for this one.
    pub(super) fn events(&mut self, event: ModelEvent) -> Vec<ModelEvent> {
        let (text, delta) = match event {
            ModelEvent::Text { delta } => (Text::Said, delta),
            ModelEvent::Reasoning { delta } => (Text::Reasoning, delta),
            ModelEvent::Refusal { delta } => (Text::Refusal, delta),
            ModelEvent::Arguments { call, .. } if self.hidden.contains(&call) => return Vec::new(),
            ModelEvent::Arguments { call, delta } => (Text::Arguments(call), delta),
            ModelEvent::CallStarted { call, ref name, .. } if (self.hides)(name) => {
                self.hidden.insert(call);
                return vec![event];
            }
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
