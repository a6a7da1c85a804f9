//! Calls that are answered at once: the text was answered before, and nobody is to be asked.

use std::sync::Arc;

use toolcrib_tool::{RawArguments, ToolOutput};

use super::Way;
use crate::answers::Kept;
use crate::registry::Slot;
use crate::turn::State;

/// The tool of a name, and the kept answer to the text if there is one. What the call will need of
/// either is asked for on the way.
#[inline]
pub(super) fn found<'s>(
    state: &'s State,
    name: &str,
    raw: &RawArguments,
) -> (Option<&'s Arc<Slot>>, Option<Arc<Kept>>) {
    let answers = &state.shared.answers;
    let Some(sought) = answers.sought(name, raw, &state.context) else {
        return (state.begun(name), None);
    };
    let mut slot = None;
    let known = answers.recall(sought, || {
        slot = state.begun(name);
        let slot = slot.inspect(|slot| slot.prefetch_answered())?;
        let compiled = slot.compiled_before()?;
        slot.manner.cached.then_some(&compiled.callee)
    });
    (slot, known)
}

impl Way<'_> {
    /// What the whole way would come to, where nothing on it can say anything else: the text was
    /// accepted for the same tool under the same context and its answer is in time, and there is no
    /// rule, no check of the tool's own, no policy, no listener and no suspended call to go on with.
    pub(super) fn at_once(&mut self, slot: &Slot, known: &Kept) -> Option<ToolOutput> {
        let state = &*self.turn.state;
        let is_plain = slot.manner.plain
            && slot.live().is_some_and(|live| !live.is_closed())
            && slot.is_available()
            && self.voice.is_none()
            && !state.cancellation.is_cancelled()
            && !self.needs_consent(slot);
        if !is_plain {
            return None;
        }
        let (answers, now) = (&state.shared.answers, self.started.into_std());
        let output = answers.at_once(known, &slot.entry.definition, self.scope(), now)?;
        slot.counter(&state.shared.statistics).answered();
        Some(output)
    }
}
