//! The state of a call in the pipeline.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolcrib_tool::{CallContext, CallId, ToolError, ToolOutput};

use super::checks::{Checked, Incoming, OwnCheck};
use super::interruption::{Interrupts, ReachedStage};
use super::record::CallRecord;
use super::{Interruption, Origin, checks};
use crate::ExecutorConfig;
use crate::admission::Permit;
use crate::arguments::corrections::Corrections;
use crate::cache::{LeaderDuty, SpillMemo};
use crate::call::batch::Presence;
use crate::call::host::ExecutorHost;
use crate::call::nested::NestedWait;
use crate::call::turn::{Turn, TurnState};
use crate::events::EventEmitter;
use crate::lifecycle::Instance;
use crate::observability::statistics::{Ending, InFlight};
use crate::registry::ToolSlot;
use crate::suspension::Suspension;

/// One call in the pipeline.
pub(super) struct PipelineRun<'a> {
    pub(super) turn: &'a Turn,
    /// The settings when the call arrived.
    pub(super) config: &'a ExecutorConfig,
    /// Present if there are listeners.
    pub(super) emitter: Option<&'a EventEmitter>,
    pub(super) origin: Origin<'a>,
    pub(super) id: &'a CallId,
    pub(super) name: &'a str,
    pub(super) started: Instant,
    pub(super) interrupts: Interrupts<'a>,
    /// Its entry in the statistics.
    counted: Option<InFlight>,
    /// How long the tool ran, if it did.
    pub(super) worked: Option<Duration>,
    /// The time from the call's arrival until the tool had finished.
    pub(super) spent: Option<Duration>,
    pub(super) source: AnswerSource,
    /// Corrections of the model's text.
    pub(super) mending: Corrections,
    /// The digest of the approved code, if approval was needed.
    pub(super) approved_code: Option<ApprovedCode>,
    /// Its record for logs, written even if the call is dropped.
    pub(super) record: CallRecord<'a>,
    /// Where the text was spilled, if other calls share the answer.
    pub(super) spilled: Option<Arc<SpillMemo>>,
}

/// A call that has passed all stations before consent.
pub(super) struct Candidate<'a> {
    pub(super) checked: Checked<'a>,
    pub(super) cx: CallContext,
    pub(super) host: Arc<ExecutorHost>,
    /// The tool's shared instance; `None` if each call gets its own, which is created once it is
    /// certain that the call runs.
    pub(super) shared: Option<Instance<'a>>,
    /// The time limit, for the tool's own check and for its run.
    pub(super) limit: Option<Duration>,
}

/// A call that is ready to run.
pub(super) struct Ready<'a> {
    pub(super) call: Candidate<'a>,
    pub(super) instance: Instance<'a>,
    pub(super) permit: Permit<'a>,
    pub(super) presence: Presence,
    /// The duty to publish its answer.
    pub(super) run: Option<LeaderDuty>,
}

/// How a call leaves the pipeline.
pub(super) enum PipelineExit {
    /// With an output, its own or an earlier one.
    Answered(ToolOutput),
    /// With an error.
    Failed(ToolError),
    /// It is suspended; for a nested call whose parent stays alive, with its wait.
    Suspended(Box<Suspension>, Option<Box<NestedWait>>),
}

/// Where an answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerSource {
    /// The tool ran, or the call was refused here.
    Own,
    /// An earlier call.
    Cache,
    /// A concurrent call with the same key.
    SameCall,
}

/// The digest of the code that was approved; `None` for code that cannot change while the host runs.
pub(super) struct ApprovedCode(pub(super) Option<String>);

/// What the pipeline needs of a call once its outcome is known.
pub(super) struct FinishedRun<'a> {
    pub(super) source: AnswerSource,
    pub(super) spent: Option<Duration>,
    pub(super) mending: Corrections,
    pub(super) record: CallRecord<'a>,
    pub(super) spilled: Option<Arc<SpillMemo>>,
}

impl From<ToolError> for PipelineExit {
    fn from(error: ToolError) -> Self {
        Self::Failed(error)
    }
}

impl From<Result<ToolOutput, ToolError>> for PipelineExit {
    fn from(outcome: Result<ToolOutput, ToolError>) -> Self {
        outcome.map_or_else(Self::Failed, Self::Answered)
    }
}

impl Candidate<'_> {
    /// The tool's own check, if there is an instance to run it.
    pub(super) fn own_check(&self) -> Option<OwnCheck<'_>> {
        self.shared.as_ref().map(|instance| self.check_of(instance))
    }

    /// The own check of an instance.
    pub(super) fn check_of<'c>(&'c self, instance: &'c Instance<'_>) -> OwnCheck<'c> {
        OwnCheck::new(instance.tool().as_ref(), &self.cx, self.limit)
    }
}

impl<'a> PipelineRun<'a> {
    pub(super) fn new(
        turn: &'a Turn,
        config: &'a ExecutorConfig,
        origin: Origin<'a>,
        (id, name): (&'a CallId, &'a str),
        emitter: Option<&'a EventEmitter>,
        record: CallRecord<'a>,
    ) -> Self {
        let interrupts = Interrupts {
            cancellation: origin.cancellation(),
            shutdown: &turn.state.shared.shutdown,
            lineage: origin.lineage,
            own: None,
        };
        Self {
            turn,
            config,
            emitter,
            origin,
            id,
            name,
            started: record.started(),
            interrupts,
            counted: None,
            worked: None,
            spent: None,
            source: AnswerSource::Own,
            mending: Corrections::default(),
            approved_code: None,
            record,
            spilled: None,
        }
    }

    pub(super) fn state(&self) -> &'a TurnState {
        &self.turn.state
    }

    /// The inputs of the stations before consent, and the place for corrections.
    pub(super) fn incoming(&mut self) -> (Incoming<'_>, &mut Corrections) {
        let Self { turn, config, origin, id, emitter, mending, .. } = self;
        (Incoming { turn, config, origin, id, emitter: *emitter }, mending)
    }

    pub(super) fn left(self) -> FinishedRun<'a> {
        let Self { source, spent, mending, record, spilled, .. } = self;
        FinishedRun { source, spent, mending, record, spilled }
    }

    /// Starts to count the call, even if it is interrupted before its first station.
    pub(super) fn begin_count(&mut self, slot: Option<&Arc<ToolSlot>>) {
        let statistics = &self.state().shared.statistics;
        match slot {
            None => statistics.unknown(),
            Some(slot) => {
                let counted = statistics.begin(&slot.entry.definition, self.started.into_std());
                self.counted = Some(counted);
            }
        }
    }

    /// Counts the outcome of the call.
    pub(super) fn count(&mut self, leave: &PipelineExit) {
        let Some(counted) = self.counted.take() else { return };
        match (leave, self.worked) {
            (PipelineExit::Suspended(..), _) => counted.wait(),
            _ if self.source != AnswerSource::Own => counted.cache_hit(),
            (PipelineExit::Answered(output), worked) => {
                counted.finish(Ending::of(output), worked.unwrap_or_default());
            }
            (PipelineExit::Failed(error), Some(worked)) => {
                counted.finish(Ending::Failure(error.kind()), worked);
            }
            (PipelineExit::Failed(error), None) => counted.refuse(error.kind()),
        }
    }

    /// The called tool, if it exists.
    pub(super) fn known(
        &self,
        slot: Option<&'a Arc<ToolSlot>>,
    ) -> Result<&'a Arc<ToolSlot>, ToolError> {
        slot.ok_or_else(|| match self.interrupts.pending() {
            Some(interruption) => self.interrupted(None, interruption),
            None => checks::unknown(self.turn, self.name),
        })
    }

    /// The error for a call that was interrupted before its tool started.
    pub(super) fn interrupted(&self, slot: Option<&ToolSlot>, why: Interruption) -> ToolError {
        let definition = slot.map(|slot| &*slot.entry.definition);
        why.error(ReachedStage::Nothing, self.started, definition)
    }
}
