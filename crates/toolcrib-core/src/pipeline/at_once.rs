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
        return (state.begun(name).map(|(slot, _)| slot), None);
    };
    let mut begun = None;
    let known = answers.recall(sought, || {
        begun = state.begun(name);
        let (slot, _) = begun.filter(|(_, spared)| *spared)?;
        slot.prefetch_answered();
        let compiled = slot.compiled_before()?;
        compiled.is_cached.then_some(&compiled.callee)
    });
    (begun.map(|(slot, _)| slot), known)
}

impl Way<'_> {
    /// What the whole way would come to, where nothing on it can say anything else: the text was
    /// accepted for the same tool under the same context and its answer is in time, and there is no
    /// rule, no check of the tool's own, no policy, no listener and no suspended call to go on with.
    pub(super) fn at_once(&mut self, slot: &Slot, known: &Kept) -> Option<ToolOutput> {
        let state = &*self.turn.state;
        let is_plain = slot.compiled_before().is_some_and(|compiled| compiled.is_plain)
            && slot.live().is_some_and(|live| !live.is_closed())
            && !slot.manner.unavailable
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
