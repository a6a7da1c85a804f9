//! Calls that do nothing but hand themselves on to another tool: both wait, and both go on.

use serde::{Deserialize, Serialize};
use toolcrib_tool::{Arguments, CallId};

use crate::fingerprint::Fingerprint;

/// A call that hands itself on, as the call it makes knows it.
#[derive(Debug, Clone)]
pub(crate) struct Delegation {
    /// The tool it hands itself on to.
    pub(crate) target: String,
    call_id: String,
    tool: String,
    definition_hash: Fingerprint,
    arguments: String,
}

impl Delegation {
    /// Of a call of `tool`, whose fingerprint is `definition`, to `target`.
    pub(crate) fn new(
        target: String,
        call: &CallId,
        (tool, definition): (&str, Fingerprint),
        arguments: &Arguments,
    ) -> Self {
        Self {
            target,
            call_id: call.as_str().to_owned(),
            tool: tool.to_owned(),
            definition_hash: definition,
            arguments: arguments.as_str().to_owned(),
        }
    }

    /// What the suspension of the nested call `nested_call_id` keeps of this one, and this one's id.
    pub(super) fn kept(&self, nested_call_id: String) -> (String, Maker) {
        let maker = Maker {
            nested_call_id,
            tool: self.tool.clone(),
            definition_hash: self.definition_hash,
            arguments: self.arguments.clone(),
        };
        (self.call_id.clone(), maker)
    }
}

/// The call that made a suspended one, and that is answered with its answer. It goes on by being made
/// again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Maker {
    /// The id of the call that waits. The suspension itself has its maker's, which is the caller's.
    pub(super) nested_call_id: String,
    pub(super) tool: String,
    pub(super) definition_hash: Fingerprint,
    pub(super) arguments: String,
}
