//! Previews of calls whose arguments a model is still writing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use toolcrib_core::Turn;
use toolcrib_tool::{CallId, StatusUpdate};
use toolcrib_wire::NameMap;
use toolcrib_wire::model::ModelEvent;

/// The bytes of arguments from which on there is a preview.
const FIRST: usize = 64;
/// The shortest time between two previews of a call.
const PAUSE: Duration = Duration::from_millis(50);

/// The calls of one answer whose tools have previews.
pub(super) struct Previews<'a> {
    turn: &'a Turn,
    names: &'a NameMap,
    calls: BTreeMap<usize, WrittenCall>,
}

struct WrittenCall {
    id: CallId,
    tool: String,
    written: String,
    /// The bytes at which the next preview is made. They grow by a quarter, so that the work for all previews is linear.
    next: usize,
    shown: Option<Instant>,
}

/// A preview to show.
pub(super) struct Preview<'p> {
    pub(super) id: &'p CallId,
    pub(super) tool: &'p str,
    pub(super) status: Box<StatusUpdate>,
}

impl<'a> Previews<'a> {
    pub(super) fn new(turn: &'a Turn, names: &'a NameMap) -> Self {
        Self { turn, names, calls: BTreeMap::new() }
    }

    /// The preview after an event, if one is due. Secrets are masked in the events already.
    pub(super) fn after(&mut self, event: &ModelEvent) -> Option<Preview<'_>> {
        match event {
            ModelEvent::CallStarted { call, id, name } => {
                let tool = self.names.from_provider(name).unwrap_or(name);
                if self.turn.previews(tool) {
                    let (id, tool) = (id.clone(), tool.to_owned());
                    let (written, next, shown) = (String::new(), FIRST, None);
                    self.calls.insert(*call, WrittenCall { id, tool, written, next, shown });
                }
                None
            }
            ModelEvent::Arguments { call, delta } => {
                let call = self.calls.get_mut(call)?;
                call.written.push_str(delta);
                call.preview(self.turn)
            }
            _ => None,
        }
    }
}

impl WrittenCall {
    fn preview(&mut self, turn: &Turn) -> Option<Preview<'_>> {
        let is_early = |shown: Instant| shown.elapsed() < PAUSE;
        if self.written.len() < self.next || self.shown.is_some_and(is_early) {
            return None;
        }
        self.next = self.written.len() + self.written.len() / 4;
        self.shown = Some(Instant::now());
        let status = turn.preview(&self.tool, &self.id, &self.written)?;
        Some(Preview { id: &self.id, tool: &self.tool, status: Box::new(status) })
    }
}
