//! The ancestors of a suspended nested call, stored so that they can be repeated after a restart.

use serde::{Deserialize, Serialize};
use toolcrib_tool::{RawArguments, ToolCall, ToolResult};

use super::Suspension;
use crate::identity::fingerprint::Fingerprint;

/// The ancestors of a suspended call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Within {
    /// The nested call itself. The suspension has the id of the root call, which the caller knows.
    pub(crate) nested: MadeCall,
    /// Its ancestors, outermost first; at least one.
    pub(crate) frames: Vec<Frame>,
    /// The executor in which the ancestors stay alive. Absent if they have ended because they only
    /// delegated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) alive_in: Option<String>,
}

/// Identifies a call that a running tool made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MadeCall {
    pub(crate) call_id: String,
    pub(crate) tool: String,
    /// The digest of its arguments as written.
    pub(crate) arguments: Fingerprint,
}

/// One ancestor of a suspended call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Frame {
    /// The call as its parent made it.
    pub(crate) made: MadeCall,
    pub(crate) definition: Fingerprint,
    /// Its checked arguments as JSON text.
    pub(crate) arguments: String,
    /// Whether it may be repeated from its start.
    pub(crate) is_repeatable: bool,
    /// Its finished nested calls, for the repetition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) finished: Vec<Finished>,
}

/// A finished nested call with its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Finished {
    pub(crate) made: MadeCall,
    pub(crate) result: ToolResult,
}

impl MadeCall {
    pub(crate) fn of(call: &ToolCall) -> Self {
        Self {
            call_id: call.id().as_str().to_owned(),
            tool: call.name().to_owned(),
            arguments: written(call.arguments()),
        }
    }
}

/// The digest of arguments as written.
fn written(arguments: &RawArguments) -> Fingerprint {
    Fingerprint::of_bytes(arguments.as_str().as_bytes())
}

impl Within {
    /// Whether all ancestors may be repeated from their start.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.frames.iter().all(|frame| frame.is_repeatable)
    }

    /// Whether this is the waiting call. Tools that only delegate may write its arguments
    /// differently when repeated.
    pub(crate) fn is_nested(&self, call: &MadeCall) -> bool {
        self.is_made(&self.nested, call)
    }

    /// Whether this is the ancestor with that index.
    pub(crate) fn is_frame(&self, frame: usize, call: &MadeCall) -> bool {
        self.frames.get(frame).is_some_and(|frame| self.is_made(&frame.made, call))
    }

    fn is_made(&self, kept: &MadeCall, call: &MadeCall) -> bool {
        match self.alive_in {
            Some(_) => kept == call,
            None => kept.tool == call.tool,
        }
    }
}

impl Suspension {
    /// Adds the ancestors, which wait with it. The suspension then has the id of the root call,
    /// which the caller knows.
    pub(crate) fn made_within(mut self, within: Within) -> Self {
        if let Some(outermost) = within.frames.first() {
            self.call_id.clone_from(&outermost.made.call_id);
            self.within = Some(within);
        }
        self
    }

    pub(crate) fn within(&self) -> Option<&Within> {
        self.within.as_ref()
    }

    /// The id of the call itself, which differs from the caller's if a running tool made it.
    pub(crate) fn bound_call_id(&self) -> &str {
        self.within.as_ref().map_or(&self.call_id, |within| &within.nested.call_id)
    }

    fn outermost(&self) -> Option<&Frame> {
        self.within.as_ref()?.frames.first()
    }

    /// The tool that the caller called, if this is a nested call below it. The caller's call waits,
    /// too.
    pub fn made_by(&self) -> Option<&str> {
        self.outermost().map(|frame| frame.made.tool.as_str())
    }

    /// The tools of its ancestors, outermost first. Empty for a call that the caller made directly.
    pub fn callers(&self) -> impl Iterator<Item = &str> {
        let frames = self.within.iter().flat_map(|within| &within.frames);
        frames.map(|frame| frame.made.tool.as_str())
    }

    /// The tool that the caller called and whose result it gets.
    pub fn called_tool(&self) -> &str {
        self.made_by().unwrap_or(&self.tool)
    }

    /// The root call, to be made again.
    pub(crate) fn outermost_call(&self) -> Option<ToolCall> {
        let frame = self.outermost()?;
        let (tool, arguments) = (frame.made.tool.as_str(), frame.arguments.as_str());
        Some(ToolCall::new(self.call_id.as_str(), tool, arguments))
    }

    /// The definition, the arguments and the values of the root call, to compare calls.
    pub(super) fn outermost_identity(&self) -> (Fingerprint, Fingerprint, Fingerprint) {
        match self.outermost() {
            Some(frame) => {
                let arguments = toolcrib_tool::Arguments::from_validated(frame.arguments.clone());
                let values = self.caller.values_digest();
                (frame.definition, Fingerprint::of_arguments(&arguments), values)
            }
            None => (self.definition_hash, self.argument_hash, self.caller.injected()),
        }
    }
}
