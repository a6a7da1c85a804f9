//! What people see of a call while a model still writes its arguments.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::Value;
use toolcrib_tool::{Body, CallId, PartialArguments, StatusUpdate, Tool};

use super::Turn;
use crate::arguments::repair::repair;

impl Turn {
    /// Whether [`preview`](Self::preview) can return anything for a tool of this name.
    pub fn previews(&self, tool: &str) -> bool {
        self.previewer(tool).is_some()
    }

    /// A status to show while a model still writes the arguments of a call, from what it has written so far. Nothing is
    /// checked or recorded, and nothing runs but [`Tool::preview`]. `None` if the tool has no preview, is hidden or not
    /// available in this turn, or if too little is written.
    ///
    /// The cost is linear in the text, so call it at growing distances, not for every piece.
    pub fn preview(&self, tool: &str, id: &CallId, written: &str) -> Option<StatusUpdate> {
        let tool = self.previewer(tool)?;
        let value: Value = match serde_json::from_str(written) {
            Ok(value) => value,
            Err(_) => serde_json::from_str(&repair(written, true).ok()?.0).ok()?,
        };
        if !value.is_object() {
            return None;
        }
        let partial = PartialArguments::new(id, &value);
        // A preview that panics is none; the call itself is not affected.
        let shown = catch_unwind(AssertUnwindSafe(|| tool.preview(&partial))).ok().flatten()?;
        Some(self.state.shared.mask.load().status(shown))
    }

    fn previewer(&self, tool: &str) -> Option<&Arc<dyn Tool>> {
        let slot = self.state.slot(tool).filter(|slot| slot.is_available())?;
        let Body::Shared(shared) = &slot.entry.body else { return None };
        let previews = !slot.entry.definition.hidden() && shared.tool().previews();
        previews.then(|| shared.tool())
    }
}
