//! The pipeline of a call, from top to bottom.
//!
//! [`run`] lets a call in, through the host's middleware. [`answer`] answers it whatever happens:
//! the call passes its stations, and its answer is counted, masked, cut to its budget and recorded.
//! [`PipelineRun::go`] lists the stations in order, and [`Incoming::before_consent`] the first of
//! them, which dry runs share.

mod answer;
mod checks;
mod consent;
mod dry_run;
mod earlier_answers;
mod interruption;
mod origin;
mod output;
mod perform;
mod pipeline_run;
mod record;
mod start;
mod suspend;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use tokio::time::Instant;
use toolcrib_tool::{
    BoxFuture, ErrorKind, RawArguments, ToolCall, ToolError, ToolOutput, ToolResult,
};
use tracing::Instrument;

use self::checks::Incoming;
pub(crate) use self::checks::{checked, describe};
pub(crate) use self::interruption::{Interruption, Interrupts, ReachedStage};
use self::pipeline_run::{AnswerSource, Candidate, FinishedRun, PipelineExit, PipelineRun, Ready};
use self::record::CallRecord;
pub(crate) use self::suspend::waits;
use crate::arguments::corrections::Corrections;
use crate::call::panics::PanicMessage;
pub(crate) use crate::call::pipeline::output::check_data;
use crate::call::turn::Turn;
use crate::lifecycle::Instance;
use crate::observability::audit::AuditOutcome;
use crate::observability::audit::trail::End;
use crate::registry::ToolSlot;

pub(crate) use self::answer::{Answered, SideOutput};
pub(crate) use self::dry_run::dry_run;
pub use self::dry_run::{CacheStatus, DryRun};
pub(crate) use self::origin::{Origin, refused};

/// Answers a call through the host's middleware.
pub(crate) async fn run(turn: &Turn, call: ToolCall, origin: Origin<'_>) -> Answered {
    let shared = &turn.state.shared;
    // Nested calls and those that go on do not enter again.
    let enters = origin.lineage.depth() == 0 && !origin.is_permitted;
    let entered = enters.then(|| shared.shutdown.enter()).transpose();
    let _entered = match entered {
        Ok(entered) => entered,
        Err(error) => return refused(turn, call, error),
    };
    if shared.middleware.is_empty() {
        return answer(turn, call, origin).await;
    }
    let inner = Mutex::new(None);
    let innermost = |call| -> BoxFuture<'_, ToolResult> {
        let inner = &inner;
        Box::pin(async move {
            let (result, bypass) = answer(turn, call, origin).await.split();
            *inner.lock().unwrap_or_else(PoisonError::into_inner) = Some(bypass);
            result
        })
    };
    let result = Box::pin(shared.middleware.run(turn, call, &innermost)).await;
    let bypass = inner.into_inner().unwrap_or_else(PoisonError::into_inner);
    Answered::join(result, bypass, shared.config.load().output_chars)
}

/// As [`run`], boxed for nested calls, whose futures would add up on the stack.
pub(crate) fn run_boxed<'a>(
    turn: &'a Turn,
    call: ToolCall,
    origin: Origin<'a>,
) -> BoxFuture<'a, Answered> {
    Box::pin(run(turn, call, origin))
}

/// Answers a call whatever happens.
async fn answer(turn: &Turn, call: ToolCall, origin: Origin<'_>) -> Answered {
    let state = &*turn.state;
    let started = Instant::now();
    let config = state.shared.config.load_full();
    let (id, name, raw) = call.into_parts();
    let slot = state.slot(&name);
    let cancellation = origin.cancellation();
    let known = slot.map(|slot| &**slot);
    let emitter = slot
        .filter(|_| !state.listeners.is_silent())
        .map(|slot| state.listeners.emitter(origin.position, &id, &slot.entry.definition));

    let record = CallRecord::begin(state, &id, &name, known, &raw, (started, cancellation));
    let mut run = PipelineRun::new(turn, &config, origin, (&id, &name), emitter.as_ref(), record);
    let span = run.record.span().clone();
    let stations = AssertUnwindSafe(run.go(slot, raw)).catch_unwind().instrument(span);
    let leave = match stations.await {
        Ok(Ok(output)) => PipelineExit::Answered(output),
        Ok(Err(leave)) => leave,
        Err(panic) => PipelineExit::Failed(host_failed(panic.as_ref())),
    };
    run.count(&leave);

    let FinishedRun { source, spent, mending, record, spilled } = run.left();
    let (outcome, mut side) = SideOutput::of(leave, spilled);
    let outcome = origin.lineage.refusal().map_or(outcome, Err);
    let outcome = state.shared.mask.outcome(mending.noted(outcome));
    let limits = answer::limits(&config, slot);
    let outcome = side.fit(state, outcome, limits).await;

    let duration = spent.unwrap_or_else(|| started.elapsed());
    let (cached, skipped) = (source == AnswerSource::Cache, source == AnswerSource::SameCall);
    let end = End {
        outcome: side.audited(&outcome),
        error: outcome.as_ref().err(),
        cached,
        skipped,
        duration,
    };
    let is_cancelled = end.outcome == AuditOutcome::Failure(ErrorKind::Cancelled);
    record.end(end.revoked_if(is_cancelled && cancellation.is_revoked()));
    // A name of no tool is whatever a model wrote.
    let name = match known {
        Some(_) => name,
        None => state.shared.mask.text(name.to_string()).into(),
    };
    let result = match outcome {
        Ok(output) => ToolResult::success(id, name, output, duration),
        Err(error) => ToolResult::failure(id, name, error, duration),
    }
    .with_truncated(side.whole.is_some())
    .with_cached(cached)
    .with_skipped(skipped);
    // Recorded first, so that listeners find the record when they hear of the end.
    if let Some(emitter) = &emitter {
        side.announce(emitter, &result);
    }
    Answered { result, limit: limits.chars, side }
}

/// Panics of tools are caught where tools run. Any other panic is a fault of the host's code; its
/// call is answered, too.
fn host_failed(panic: &(dyn std::any::Any + Send)) -> ToolError {
    let text = "the host failed while it answered this call";
    PanicMessage::of(panic).into_error(ErrorKind::Internal, text)
}

impl<'a> PipelineRun<'a> {
    /// All stations of a call, in order.
    ///
    /// Both halves are boxed: the futures of nested calls would add up on the stack.
    async fn go(
        &mut self,
        slot: Option<&'a Arc<ToolSlot>>,
        raw: RawArguments,
    ) -> Result<ToolOutput, PipelineExit> {
        self.begin_count(slot);
        self.apply_cancellation()?;
        let slot = self.known(slot)?;
        let interrupts = self.interrupts;
        let until_it_runs = Box::pin(async {
            self.apply_decision(slot)?;
            let (incoming, mending) = self.incoming();
            let mut call = incoming.before_consent(slot, raw, mending).await?;
            self.consent(slot, &mut call).await?;
            self.check_code(call.own_check())?;
            self.leave_to_client(slot, &call).await?;
            let run = self.answered_before(call.checked.key.as_ref()).await?;
            let instance = self.instance(slot, &mut call).await?;
            let permit = self.admit(slot, &call).await?;
            let presence = self.take_its_turn(slot).await;
            Ok::<_, PipelineExit>(Box::new(Ready { call, instance, permit, presence, run }))
        });
        // A call that is interrupted here is dropped: nothing has run.
        let ready = match interrupts.unless_interrupted(until_it_runs).await {
            Ok(ready) => ready?,
            Err(why) => return Err(self.interrupted(Some(slot), why).into()),
        };
        Box::pin(self.perform(slot, ready)).await
    }
}

impl Incoming<'_> {
    /// The stations before consent, in order. A dry run ends after them.
    async fn before_consent<'t>(
        self,
        slot: &'t Arc<ToolSlot>,
        raw: RawArguments,
        mending: &mut Corrections,
    ) -> Result<Candidate<'t>, ToolError> {
        checks::available(slot)?;
        let checked = checks::checked(self.turn, slot, raw, mending)?;
        let (cx, host) = self.context(slot);
        self.announce(slot, &checked.arguments);
        let shared = slot.live().map(|live| Instance::shared(live)).transpose()?;
        let limit = self.config.limit(slot.entry.definition.timeout());
        let call = Candidate { checked, cx, host, shared, limit };
        if let Some(own_check) = call.own_check() {
            own_check.passes(&call.checked.arguments).await?;
        }
        Ok(call)
    }
}
