//! The last steps of a call's answer.

use std::sync::Arc;

use toolcrib_tool::{Content, ErrorKind, ToolError, ToolOutput, ToolResult};

use super::PipelineExit;
use super::suspend::waits;
use crate::ExecutorConfig;
use crate::cache::SpillMemo;
use crate::call::nested::NestedWait;
use crate::call::turn::TurnState;
use crate::events::EventEmitter;
use crate::observability::audit::AuditOutcome;
use crate::output::budget::{OutputLimits, SpillTarget, UncutOutput, allows, fit_outcome};
use crate::output::spill::Owner;
use crate::registry::ToolSlot;
use crate::suspension::{Answer, Suspension};

/// A call's answer, and what its batch needs beside it.
pub(crate) struct Answered {
    pub(crate) result: ToolResult,
    /// The call's own text budget, in characters.
    pub(crate) limit: usize,
    pub(crate) side: SideOutput,
}

/// Parts of an answer beside the result.
#[derive(Default)]
pub(crate) struct SideOutput {
    /// The output before the text was cut.
    pub(crate) whole: Option<UncutOutput>,
    /// Where the text was spilled, if other calls share the answer.
    pub(crate) spilled: Option<Arc<SpillMemo>>,
    /// Set if the call waits; the result only reports that.
    pub(crate) suspension: Option<Box<Suspension>>,
    /// Set if a nested call waits, together with its parent.
    pub(crate) wait: Option<Box<NestedWait>>,
}

/// The output limits of a call of this tool.
pub(super) fn limits(config: &ExecutorConfig, slot: Option<&Arc<ToolSlot>>) -> OutputLimits {
    let own_chars = slot.and_then(|slot| slot.entry.definition.output_chars());
    OutputLimits { chars: own_chars.unwrap_or(config.output_chars), data_bytes: config.data_bytes }
}

impl SideOutput {
    /// Splits a pipeline exit into the outcome and the side output.
    pub(super) fn of(
        leave: PipelineExit,
        spilled: Option<Arc<SpillMemo>>,
    ) -> (Result<ToolOutput, ToolError>, Self) {
        let side = Self { spilled, ..Self::default() };
        match leave {
            PipelineExit::Answered(output) => (Ok(output), side),
            PipelineExit::Failed(error) => (Err(error), side),
            PipelineExit::Suspended(suspension, wait) => {
                let error = waits(&suspension);
                (Err(error), Self { suspension: Some(suspension), wait, ..side })
            }
        }
    }

    /// Cuts an outcome that exceeds its limits, and keeps the complete one.
    pub(super) async fn fit(
        &mut self,
        state: &TurnState,
        outcome: Result<ToolOutput, ToolError>,
        limits: OutputLimits,
    ) -> Result<ToolOutput, ToolError> {
        if allows(&outcome, limits) {
            return outcome;
        }
        let owner = Owner::known(&state.identity, state.session.as_ref());
        let memo = self.spilled.as_deref();
        let place = state.spill().map(|store| SpillTarget { store, owner: &owner, memo });
        let fitted = Box::pin(fit_outcome(outcome, limits, place)).await;
        self.whole = fitted.whole;
        fitted.outcome
    }

    /// The outcome as the audit log records it.
    pub(super) fn audited(&self, outcome: &Result<ToolOutput, ToolError>) -> AuditOutcome {
        match outcome {
            Ok(_) => AuditOutcome::Success,
            Err(_) if self.suspension.is_some() => AuditOutcome::Waiting,
            Err(error) => AuditOutcome::Failure(error.kind()),
        }
    }

    /// Tells listeners how the call ended.
    pub(super) fn announce(&self, emitter: &EventEmitter, result: &ToolResult) {
        match &self.suspension {
            None => emitter.record(result),
            Some(suspension) => emitter.suspend(suspension.waiting().as_str()),
        }
    }
}

/// The part of an answer that does not pass through middleware.
pub(super) struct Bypass {
    limit: usize,
    side: SideOutput,
    /// The cut content, if the text was cut.
    cut: Option<Vec<Content>>,
}

impl Answered {
    pub(super) fn split(self) -> (ToolResult, Bypass) {
        let cut = self.whole().and(self.result.output()).map(|output| output.content().to_vec());
        let Self { result, limit, side } = self;
        (result, Bypass { limit, side, cut })
    }

    /// The answer after middleware: a changed text is used as it is, and a waiting call still waits
    /// unless the middleware answered it. `limit` applies to answers that the middleware made.
    pub(super) fn join(result: ToolResult, bypass: Option<Bypass>, limit: usize) -> Self {
        let Some(Bypass { limit, side, cut }) = bypass else {
            return Self { result, limit, side: SideOutput::default() };
        };
        // A result without content cannot be identified as the one that was cut.
        let same = cut.zip(result.output()).is_some_and(|(cut, output)| output.content() == cut);
        let waits = result.error_kind() == Some(ErrorKind::RequiresApproval);
        let SideOutput { whole, spilled, suspension, wait } = side;
        let side = SideOutput {
            whole: whole.filter(|_| same),
            spilled,
            suspension: suspension.filter(|_| waits),
            wait: wait.filter(|_| waits),
        };
        Self { result, limit, side }
    }

    /// The output before the text was cut, if it was.
    pub(crate) fn whole(&self) -> Option<&UncutOutput> {
        self.side.whole.as_ref()
    }

    /// Converts it into the public answer.
    pub(crate) fn into_answer(self) -> Answer {
        match self.side.suspension {
            Some(suspension) => Answer::Suspended(suspension),
            None => Answer::Done(self.result),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolcrib_tool::ToolError;

    use super::*;

    fn failed(partial: Option<&str>) -> ToolResult {
        let error = ToolError::execution("broken");
        let error = match partial {
            Some(text) => error.with_partial(text),
            None => error,
        };
        ToolResult::failure("1".into(), "t", error, Duration::ZERO)
    }

    /// Whether the uncut output is kept if middleware replaces the first result with the second.
    fn keeps_whole(cut: Option<&str>, now: Option<&str>) -> bool {
        let whole = Some(UncutOutput::of(&"the secret and more".into()));
        let side = SideOutput { whole, ..SideOutput::default() };
        let (_, bypass) = Answered { result: failed(cut), limit: 9, side }.split();
        Answered::join(failed(now), Some(bypass), 9).whole().is_some()
    }

    #[test]
    fn what_was_cut_is_kept_only_with_the_text_it_was_cut_to() {
        assert!(keeps_whole(Some("the"), Some("the")));
        assert!(!keeps_whole(Some("the"), Some("***")));
        assert!(!keeps_whole(Some("the"), None));
        assert!(!keeps_whole(None, Some("***")));
        assert!(!keeps_whole(None, None));
    }
}
