//! The path of a call, top to bottom: resolve → parse (or repair) → strip → defaults → validate (or
//! coerce) → context → constraints → the tool's own check → policy and approval → client tools leave
//! → answered before? → breaker, permits and rate → run within its limit → check the output → mask →
//! fit the budget → record.

mod answer;
mod checks;
mod consent;
mod dry_run;
mod interruption;
mod output;
mod perform;
mod record;
mod suspend;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;
use toolcrib_tool::{
    BoxFuture, CallContext, CallHost, CallId, ErrorKind, RawArguments, ToolCall, ToolError,
    ToolOutput, ToolResult,
};
use tracing::Instrument;

use self::checks::{Checked, OwnCheck};
pub(crate) use self::checks::{checked, describe};
pub(crate) use self::interruption::{Interruption, Interrupts, Reached};
use self::record::Record;
pub(crate) use self::suspend::waits;
use crate::admission::{Lineage, Permit};
use crate::arguments::corrections::Mending;
use crate::cache::{Asked, Flights, Key, Run, Scope, SpillMemo};
use crate::call::batch::Presence;
use crate::call::cancellation::Cancellation;
use crate::call::host::Host;
use crate::call::nested::{NestedWait, Repetition};
use crate::call::panics::PanicMessage;
pub(crate) use crate::call::pipeline::output::check_data;
use crate::call::turn::{State, Turn};
use crate::events::Voice;
use crate::lifecycle::Instance;
use crate::observability::audit::AuditOutcome;
use crate::observability::audit::trail::End;
use crate::observability::statistics::{Ending, InFlight};
use crate::output::budget::{OutputLimits, Place, allows, fit_outcome};
use crate::output::redaction::{exact_value, redact};
use crate::output::spill::Owner;
use crate::registry::Slot;
use crate::suspension::{Grant, Granted, MadeCall, Suspension, Waiting};

pub(crate) use self::dry_run::dry_run;
pub use self::dry_run::{DryRun, KeptAnswer};
pub(crate) use crate::call::pipeline::answer::{Answered, SideOutput};

/// Where a call comes from.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'a> {
    /// The calls it was made from.
    pub(crate) lineage: &'a Lineage,
    /// What cancels the call that made it.
    pub(crate) maker: Option<&'a Cancellation>,
    /// How that one made it.
    pub(crate) made: Option<&'a MadeCall>,
    /// The flights of the batch it is part of.
    pub(crate) batch: Option<&'a Flights>,
    /// Its place in that batch, from 0.
    pub(crate) position: usize,
    /// It was suspended, and this is what was decided on it.
    pub(crate) grant: Option<&'a Grant>,
    /// A call within it was suspended and decided on, and this one is made again.
    pub(crate) repetition: Option<&'a Repetition>,
}

impl<'a> Origin<'a> {
    /// Of a call made by `lineage`, which is no part of a batch.
    pub(crate) fn alone(lineage: &'a Lineage) -> Self {
        let (maker, made, batch, grant, repetition) = Default::default();
        Self { lineage, maker, made, batch, position: 0, grant, repetition }
    }

    /// What cancels the call.
    pub(crate) fn cancellation(&self) -> &'a Cancellation {
        self.maker.unwrap_or_else(|| self.lineage.outermost().cancellation())
    }
}

/// Answers one call, through the host's middleware.
pub(crate) async fn run(turn: &Turn, call: ToolCall, origin: Origin<'_>) -> Answered {
    let shared = &turn.state.shared;
    // Calls made from a call that is in belong to it.
    let entered = (origin.lineage.depth() == 0).then(|| shared.shutdown.enter()).transpose();
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
    Answered::join(result, bypass, shared.config.output_chars)
}

/// As [`run`], for calls from within others: the parts of each level would add up on the stack.
pub(crate) fn run_boxed<'a>(
    turn: &'a Turn,
    call: ToolCall,
    origin: Origin<'a>,
) -> BoxFuture<'a, Answered> {
    Box::pin(run(turn, call, origin))
}

/// The answer to a call that is not let in, or cannot go on.
pub(crate) fn refused(turn: &Turn, call: ToolCall, error: ToolError) -> Answered {
    let started = Instant::now();
    let (id, name, raw) = call.into_parts();
    let known = turn.state.slot(&name).map(|slot| &**slot);
    let when = (started, &turn.state.cancellation);
    let record = Record::begin(&turn.state, &id, &name, known, &raw, when);
    let duration = started.elapsed();
    record.end(End::failed(&error, duration));
    let result = ToolResult::failure(id, name, error, duration);
    let limit = turn.state.shared.config.output_chars;
    Answered { result, limit, side: SideOutput::default() }
}

/// Answers one call, whatever happens.
async fn answer(turn: &Turn, call: ToolCall, origin: Origin<'_>) -> Answered {
    let state = &*turn.state;
    let started = Instant::now();
    let (id, name, raw) = call.into_parts();
    let slot = state.slot(&name);
    let cancellation = origin.cancellation();
    let known = slot.map(|slot| &**slot);
    let record = Record::begin(state, &id, &name, known, &raw, (started, cancellation));
    let voice = slot
        .filter(|_| !state.listeners.is_silent())
        .map(|slot| state.listeners.voice(origin.position, &id, &slot.entry.definition));
    let span = record.span().clone();
    let mut run = PipelineRun::new(turn, origin, (&id, &name), voice.as_ref(), record);
    let outcome = {
        let work = AssertUnwindSafe(run.go(slot, raw)).catch_unwind();
        match work.instrument(span).await {
            Ok(outcome) => outcome,
            Err(panic) => Err(host_failed(panic.as_ref()).into()),
        }
    };
    run.count(&outcome);
    let Left { source, spent, mending, record, spilled } = run.left();
    let mut side = SideOutput::default();
    let outcome = outcome.map_err(|leave| match leave {
        Leave::Failed(error) => error,
        Leave::Suspended(suspension, wait) => {
            let error = waits(&suspension);
            (side.suspension, side.wait) = (Some(suspension), wait);
            error
        }
    });
    let outcome = match origin.lineage.refusal() {
        Some(refusal) => Err(refusal),
        None => outcome,
    };
    let mut outcome = state.shared.mask.outcome(mending.noted(outcome));
    let own_chars = slot.and_then(|slot| slot.entry.definition.output_chars());
    let limits = OutputLimits {
        chars: own_chars.unwrap_or(state.shared.config.output_chars),
        data_bytes: state.shared.config.data_bytes,
    };
    if !allows(&outcome, limits) {
        let owner = Owner::known(&state.identity, state.session.as_ref());
        let memo = spilled.as_deref();
        let place = state.spill().map(|store| Place { store, owner: &owner, memo });
        let fitted = Box::pin(fit_outcome(outcome, limits, place)).await;
        outcome = fitted.outcome;
        side.whole = fitted.whole;
    }
    side.spilled = spilled;
    let truncated = side.whole.is_some();
    let duration = spent.unwrap_or_else(|| started.elapsed());
    let (cached, skipped) = (source == Source::Cache, source == Source::SameCall);
    let error = outcome.as_ref().err();
    let audited = match error {
        None => AuditOutcome::Success,
        Some(_) if side.suspension.is_some() => AuditOutcome::Waiting,
        Some(error) => AuditOutcome::Failure(error.kind()),
    };
    let is_revoked =
        audited == AuditOutcome::Failure(ErrorKind::Cancelled) && cancellation.is_revoked();
    let end = End { outcome: audited, error, cached, skipped, duration };
    record.end(end.revoked_if(is_revoked));
    let result = match outcome {
        Ok(output) => ToolResult::success(id, name, output, duration),
        Err(error) => ToolResult::failure(id, name, error, duration),
    }
    .with_truncated(truncated)
    .with_cached(cached)
    .with_skipped(skipped);
    // Recorded first: whoever hears of the end finds it written down.
    if let Some(voice) = &voice {
        match &side.suspension {
            None => voice.record(&result),
            Some(suspension) => voice.suspend(suspension.waiting().as_str()),
        }
    }
    Answered { result, limit: limits.chars, side }
}

/// Why a call goes no further.
enum Leave {
    /// It has failed.
    Failed(ToolError),
    /// It waits, and is kept; with the wait of a nested call whose maker stays at work.
    Suspended(Box<Suspension>, Option<Box<NestedWait>>),
}

impl From<ToolError> for Leave {
    fn from(error: ToolError) -> Self {
        Self::Failed(error)
    }
}

/// Where an answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The tool ran, or the call was refused.
    Own,
    /// An earlier call.
    Cache,
    /// The same call, made at the same time.
    SameCall,
}

/// Tools' panics are caught where tools run; any other is a fault of the host's code, and its call
/// is answered too.
fn host_failed(panic: &(dyn std::any::Any + Send)) -> ToolError {
    let text = "the host failed while it answered this call";
    PanicMessage::of(panic).into_error(ErrorKind::Internal, text)
}

/// One call on its way through the pipeline.
struct PipelineRun<'a> {
    turn: &'a Turn,
    /// Where somebody listens.
    voice: Option<&'a Voice>,
    origin: Origin<'a>,
    id: &'a CallId,
    name: &'a str,
    started: Instant,
    interrupts: Interrupts<'a>,
    /// Its place in the statistics.
    counted: Option<InFlight>,
    /// How long the tool was at work, if it was.
    worked: Option<Duration>,
    /// How long it took from when the call came in until the tool had done its work.
    spent: Option<Duration>,
    source: Source,
    /// What was done to the model's text.
    mending: Mending,
    /// The digest of the code that was approved, if somebody was asked.
    approved_code: Option<ApprovedCode>,
    /// What is written down of it, also if it is dropped halfway.
    record: Record<'a>,
    /// Where the text of an answer that others get too was spilled, if it was.
    spilled: Option<Arc<SpillMemo>>,
}

/// The digest of the code that was approved; `None` for code that cannot change while the host runs.
struct ApprovedCode(Option<String>);

/// A call that only has to run.
struct Ready<'a> {
    checked: Checked<'a>,
    cx: CallContext,
    host: Arc<Host>,
    instance: Instance<'a>,
    permit: Permit<'a>,
    presence: Presence,
    /// Whoever waits for its answer.
    run: Option<Run>,
}

/// What is left to do for a call that has passed every check.
enum Prepared<'a> {
    /// To run it.
    Ready(Box<Ready<'a>>),
    /// Nothing: the answer is there.
    Answered(Result<ToolOutput, ToolError>),
}

/// What is left of a call's way through the pipeline once its outcome is known.
struct Left<'a> {
    source: Source,
    spent: Option<Duration>,
    mending: Mending,
    record: Record<'a>,
    spilled: Option<Arc<SpillMemo>>,
}

impl<'a> PipelineRun<'a> {
    fn left(self) -> Left<'a> {
        let Self { source, spent, mending, record, spilled, .. } = self;
        Left { source, spent, mending, record, spilled }
    }

    fn new(
        turn: &'a Turn,
        origin: Origin<'a>,
        (id, name): (&'a CallId, &'a str),
        voice: Option<&'a Voice>,
        record: Record<'a>,
    ) -> Self {
        let started = record.started();
        let interrupts = Interrupts {
            cancellation: origin.cancellation(),
            shutdown: &turn.state.shared.shutdown,
            lineage: origin.lineage,
            own: None,
        };
        Self {
            turn,
            voice,
            origin,
            id,
            name,
            started,
            interrupts,
            counted: None,
            worked: None,
            spent: None,
            source: Source::Own,
            mending: Mending::default(),
            approved_code: None,
            record,
            spilled: None,
        }
    }

    fn state(&self) -> &'a State {
        &self.turn.state
    }

    /// All stations, in order.
    async fn go(
        &mut self,
        slot: Option<&'a Arc<Slot>>,
        raw: RawArguments,
    ) -> Result<ToolOutput, Leave> {
        let interrupts = self.interrupts;
        let (started, definition) = (self.started, slot.map(|slot| &*slot.entry.definition));
        // Counted first: a call that is interrupted before its first station is a call, too.
        let statistics = &self.state().shared.statistics;
        match slot {
            None => statistics.unknown(),
            Some(slot) => {
                let counted = statistics.begin(&slot.entry.definition, started.into_std());
                self.counted = Some(counted);
            }
        }
        let prepared = interrupts.unless_interrupted(self.prepare(slot, raw)).await;
        let prepared = prepared.unwrap_or_else(|interruption| {
            Err(interruption.error(Reached::Nothing, started, definition).into())
        });
        match prepared? {
            Prepared::Answered(outcome) => Ok(outcome?),
            Prepared::Ready(ready) => match slot {
                Some(slot) => self.perform(slot, ready).await,
                None => Err(checks::unknown(self.turn, self.name).into()),
            },
        }
    }

    /// Everything before the tool runs. Interrupted, it is dropped: nothing has run.
    ///
    /// Boxed here, as [`perform`](Self::perform) is, because calls nest: the parts of each level would
    /// add up on the stack.
    fn prepare<'s>(
        &'s mut self,
        slot: Option<&'a Arc<Slot>>,
        raw: RawArguments,
    ) -> BoxFuture<'s, Result<Prepared<'a>, Leave>>
    where
        'a: 's,
    {
        Box::pin(self.prepared(slot, raw))
    }

    async fn prepared(
        &mut self,
        slot: Option<&'a Arc<Slot>>,
        raw: RawArguments,
    ) -> Result<Prepared<'a>, Leave> {
        let (turn, state) = (self.turn, self.state());
        let Some(slot) = slot else {
            return Err(checks::unknown(turn, self.name).into());
        };
        let definition = &slot.entry.definition;
        if let Some(outcome) = self.decided(slot) {
            return Ok(Prepared::Answered(outcome));
        }
        checks::available(slot)?;
        let mut checked = checks::checked(turn, slot, raw, &mut self.mending)?;
        let (cx, host) = self.context(slot);
        if let Some(voice) = self.voice {
            let arguments = exact_value(&checked.arguments);
            voice.prepare(Some(redact(definition, &arguments, &state.shared.mask.load())));
        }
        // Calls of a tool with an instance for each get theirs when it is certain that they run.
        let limit = state.shared.config.limit(definition.timeout());
        let shared = slot.live().map(|live| Instance::shared(live)).transpose()?;
        if let Some(instance) = &shared {
            let own = OwnCheck::new(instance.tool().as_ref(), &cx, limit);
            own.passes(&checked.arguments).await?;
        }
        self.consent(slot, &mut checked, shared.as_ref(), &cx).await?;
        if let Some(instance) = &shared {
            let own = OwnCheck::new(instance.tool().as_ref(), &cx, limit);
            self.check_code(own)?;
        }
        if definition.client() {
            let arguments = Some(&checked.arguments);
            return Err(self.suspend(slot, arguments, Waiting::Client).await);
        }
        let run = match &checked.key {
            None => None,
            Some(key) => match self.answered_before(key).await {
                Ok(run) => Some(run),
                Err(outcome) => return Ok(Prepared::Answered(outcome)),
            },
        };
        let instance = if let Some(instance) = shared {
            instance
        } else {
            let own = Instance::own(&slot.entry.body, &cx, limit).await?;
            let check = OwnCheck::new(own.tool().as_ref(), &cx, limit);
            check.passes(&checked.arguments).await?;
            self.check_code(check)?;
            own
        };
        let (identity, lineage) = (&*state.identity, self.origin.lineage);
        let edition = checked.compiled.edition;
        let permit = state.shared.admission.admit(definition, edition, identity, lineage).await?;
        let alone = lineage.runs_alone(definition);
        let presence = Presence::enter(lineage.barrier(), alone).await;
        let ready = Ready { checked, cx, host, instance, permit, presence, run };
        Ok(Prepared::Ready(Box::new(ready)))
    }

    /// What the tool sees of the call, and what the executor knows of it.
    fn context(&self, slot: &'a Arc<Slot>) -> (CallContext, Arc<Host>) {
        let voice = self.voice.map(Voice::handle);
        let host = Arc::new(Host::new(self.turn, &self.origin, slot, self.id, voice));
        let mut builder = checks::context(self.turn, slot, self.id);
        if let Some(grant) = self.origin.grant
            && let Granted::Answer(answer) = grant.granted()
        {
            let remembered = grant.suspension().waiting().remembered().cloned();
            builder = builder.answer(answer.clone()).remembered(remembered);
        }
        (builder.host(Arc::clone(&host) as Arc<dyn CallHost>).build(), host)
    }

    /// The answer that is there or on its way; if there is none, the duty to run the call.
    async fn answered_before(&mut self, key: &Key) -> Result<Run, Result<ToolOutput, ToolError>> {
        match self.state().shared.answers.ask(key, self.scope()).await {
            Asked::Run(run) => Ok(run),
            Asked::Kept(kept) => {
                (self.source, self.spilled) = (Source::Cache, Some(kept.spilled));
                Err(Ok(Arc::unwrap_or_clone(kept.output)))
            }
            Asked::Shared(outcome, spilled) => {
                (self.source, self.spilled) = (Source::SameCall, Some(spilled));
                Err(outcome.map(Arc::unwrap_or_clone).map_err(Arc::unwrap_or_clone))
            }
        }
    }

    /// What became of a call that was suspended, where that needs no other look at it.
    fn decided(&mut self, slot: &Slot) -> Option<Result<ToolOutput, ToolError>> {
        // What was decided on must still be what it was, before anything else is said about it.
        let fingerprint = slot.fingerprint();
        if let Some(repetition) = self.origin.repetition
            && let Err(error) = repetition.check_definition(fingerprint)
        {
            return Some(Err(error));
        }
        let grant = self.origin.grant?;
        if grant.is_approved() {
            // The audit log names who approved a call that is refused after all.
            self.record.decision = consent::approved_by(grant);
        }
        if let Err(error) = grant.check_definition(fingerprint) {
            return Some(Err(error));
        }
        let outcome = self.settled(slot, grant)?;
        self.worked = Some(self.started.elapsed());
        Some(outcome)
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            session: self.state().session.as_deref(),
            batch: self.origin.batch,
            nested: self.origin.lineage.depth() > 0,
        }
    }

    /// Counts what became of the call.
    fn count(&mut self, outcome: &Result<ToolOutput, Leave>) {
        let Some(counted) = self.counted.take() else { return };
        match (outcome, self.worked) {
            (Err(Leave::Suspended(..)), _) => counted.wait(),
            _ if self.source != Source::Own => counted.cache_hit(),
            (Ok(output), worked) => {
                counted.finish(Ending::of(output), worked.unwrap_or_default());
            }
            (Err(Leave::Failed(error)), Some(worked)) => {
                counted.finish(Ending::Failure(error.kind()), worked);
            }
            (Err(Leave::Failed(error)), None) => counted.refuse(error.kind()),
        }
    }
}
