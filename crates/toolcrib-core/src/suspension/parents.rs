//! The calls that a suspended call was made within: enough to make them again after a restart.

use serde::{Deserialize, Serialize};
use toolcrib_tool::{RawArguments, ToolCall, ToolResult};

use super::Suspension;
use crate::identity::fingerprint::Fingerprint;

/// The calls that led to a suspended call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Within {
    /// The suspended call as it is made. The suspension itself has the id of the outermost call,
    /// which is the one that the caller knows.
    pub(crate) nested: MadeCall,
    /// The calls that lead to it, the outermost first. There is at least one.
    pub(crate) frames: Vec<Frame>,
    /// The executor in which these calls are at work and wait. Absent: they have ended, because they
    /// only handed the call on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) alive_in: Option<String>,
}

/// Which call a running tool made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MadeCall {
    pub(crate) call_id: String,
    pub(crate) tool: String,
    /// The digest of its arguments as they were written.
    pub(crate) arguments: Fingerprint,
}

/// One of the calls that lead to a suspended one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Frame {
    /// The call as its maker made it.
    pub(crate) made: MadeCall,
    pub(crate) definition: Fingerprint,
    /// Its arguments as checked: JSON text.
    pub(crate) arguments: String,
    /// Whether it may be made again from its start.
    pub(crate) is_repeatable: bool,
    /// The calls it has made that have ended, for when it is made again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) finished: Vec<Finished>,
}

/// A nested call that has ended, and its answer.
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

/// The digest of arguments as they were written.
fn written(arguments: &RawArguments) -> Fingerprint {
    Fingerprint::of_bytes(arguments.as_str().as_bytes())
}

impl Within {
    /// Whether all of these calls may be made again from their start.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.frames.iter().all(|frame| frame.is_repeatable)
    }

    /// Whether this is the call that waits. Tools that only hand a call on may write its arguments
    /// in another way the next time.
    pub(crate) fn is_nested(&self, call: &MadeCall) -> bool {
        self.is_made(&self.nested, call)
    }

    /// Whether this is the call of that frame.
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
    /// Notes the calls that led to this one and wait with it. From now on the suspension has the id
    /// of the outermost one, which the caller knows.
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

    /// The id under which the call itself is made: another than the caller's, if a running tool has
    /// made it.
    pub(crate) fn bound_call_id(&self) -> &str {
        self.within.as_ref().map_or(&self.call_id, |within| &within.nested.call_id)
    }

    fn outermost(&self) -> Option<&Frame> {
        self.within.as_ref()?.frames.first()
    }

    /// The tool that the caller has called, where a running call of that tool made this one, directly
    /// or through others. The caller's call waits too.
    pub fn made_by(&self) -> Option<&str> {
        self.outermost().map(|frame| frame.made.tool.as_str())
    }

    /// The tools whose running calls led to this one, the outermost first. Empty for a call that the
    /// caller made itself.
    pub fn callers(&self) -> impl Iterator<Item = &str> {
        let frames = self.within.iter().flat_map(|within| &within.frames);
        frames.map(|frame| frame.made.tool.as_str())
    }

    /// The tool that the caller has called: the one whose result the caller gets.
    pub fn called_tool(&self) -> &str {
        self.made_by().unwrap_or(&self.tool)
    }

    /// The caller's call, as it is made again.
    pub(crate) fn outermost_call(&self) -> Option<ToolCall> {
        let frame = self.outermost()?;
        let (tool, arguments) = (frame.made.tool.as_str(), frame.arguments.as_str());
        Some(ToolCall::new(self.call_id.as_str(), tool, arguments))
    }

    /// The definition, the arguments and the values of the caller's call, for telling whether two are
    /// the same.
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
