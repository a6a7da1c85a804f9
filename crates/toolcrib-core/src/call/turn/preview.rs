//! What people see of a call while a model still writes its arguments.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::Value;
use toolcrib_tool::{Body, CallId, PartialArguments, StatusUpdate, Tool};

use super::Turn;
use crate::arguments::repair::repair;
use crate::output::sensitive_arguments::{has_sensitive, hidden_arguments};

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

    /// The arguments of a call as everybody may read them, if its tool declares any of them sensitive
    /// (`writeOnly` or `x-sensitive` in its schema), or if there is no such tool; `None` if they can be
    /// shown as they were written. Whatever shows a call that a model made shows these.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use toolcrib_core::{Executor, ExecutorConfig, Registry, TurnOptions};
    /// use toolcrib_tool::ToolDefinition;
    ///
    /// let login = ToolDefinition::builder("login")
    ///     .description("Log in.")
    ///     .input_schema(serde_json::json!({"properties": {
    ///         "user": {"type": "string"},
    ///         "password": {"type": "string", "x-sensitive": true},
    ///     }}))
    ///     .build()?;
    /// let registry = Registry::scratch().tool_as(login, |_: serde_json::Value, _| async { "in" }).build()?;
    /// let turn = Executor::new(registry, ExecutorConfig::default()).turn(TurnOptions::default());
    /// let hidden = turn.hidden_arguments("login", r#"{"user": "ada", "password": "hunter22"}"#);
    /// assert_eq!(hidden.as_deref(), Some(r#"{"password":"[redacted]","user":"ada"}"#));
    /// # Ok(())
    /// # }
    /// ```
    pub fn hidden_arguments(&self, tool: &str, written: &str) -> Option<String> {
        let definition = self.state.snapshot.get(tool).map(|entry| &*entry.definition);
        hidden_arguments(definition, written, &self.state.shared.mask.load())
    }

    /// Whether [`hidden_arguments`](Self::hidden_arguments) may hide anything of a call of this tool.
    pub fn hides_arguments(&self, tool: &str) -> bool {
        self.state.snapshot.get(tool).is_none_or(|entry| has_sensitive(&entry.definition))
    }

    fn previewer(&self, tool: &str) -> Option<&Arc<dyn Tool>> {
        let slot = self.state.slot(tool).filter(|slot| slot.is_available())?;
        let Body::Shared(shared) = &slot.entry.body else { return None };
        let previews = !slot.entry.definition.hidden() && shared.tool().previews();
        previews.then(|| shared.tool())
    }
}
