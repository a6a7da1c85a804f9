//! The one way a call takes, top to bottom: resolve → parse (or repair) → strip → defaults →
//! validate (or coerce) → context → constraints → the tool's own check → policy and approval →
//! client tools leave → answered before? → breaker, permits and rate → run within its limit → check
//! the output → mask → fit the budget → record.

mod answered;
mod consent;
mod dry_run;
mod finish;
mod ready;
mod record;
mod withdrawal;

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, CallId, ErrorKind, RawArguments, RetryPolicy, ToolCall,
    ToolError, ToolOutput, ToolResult,
};
use tracing::Instrument;

use self::consent::waits;
pub(crate) use self::finish::check_data;
use self::finish::finished;
pub(crate) use self::ready::describe;
use self::ready::{Checked, Ready};
use self::record::Record;
use self::withdrawal::unless_cancelled;
use crate::admission::{Lineage, Permit};
use crate::answers::{Asked, Flights, Run, Scope};
use crate::arguments::mending::Mending;
use crate::audit::Decision;
use crate::audit::trail::{AuditedArguments, End};
use crate::events::Voice;
use crate::execution::{Deadline, Held, execute};
use crate::host::Host;
use crate::lifecycle::Instance;
use crate::output_budget::{OutputLimits, Place, allows, fit_outcome};
use crate::panics::PanicMessage;
use crate::registry::Slot;
use crate::retry;
use crate::spill::Owner;
use crate::statistics::{Ending, InFlight};
use crate::suspension::{Grant, Suspension};
use crate::turn::Turn;

pub(crate) use self::answered::{Answered, Aside};
pub(crate) use self::dry_run::dry_run;
pub use self::dry_run::{DryRun, KeptAnswer};

/// Where a call comes from.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'a> {
    /// The calls it was made from.
    pub(crate) lineage: &'a Lineage,
    /// The flights of the batch it is part of.
    pub(crate) batch: Option<&'a Flights>,
    /// Its place in that batch, from 0.
    pub(crate) position: usize,
    /// It was suspended, and this is what has come of that.
    pub(crate) grant: Option<&'a Grant>,
}

impl<'a> Origin<'a> {
    /// Of a call made by `lineage`, which is no part of a batch.
    pub(crate) fn alone(lineage: &'a Lineage) -> Self {
        Self { lineage, batch: None, position: 0, grant: None }
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
            let answered = answer(turn, call, origin).await;
            let (result, apart) = answered.apart();
            *inner.lock().unwrap_or_else(PoisonError::into_inner) = Some(apart);
            result
        })
    };
    let result = Box::pin(shared.middleware.run(turn, call, &innermost)).await;
    let apart = inner.into_inner().unwrap_or_else(PoisonError::into_inner);
    Answered::together(result, apart, shared.config.output_chars)
}

/// The answer to a call that is not let in.
#[cold]
fn refused(turn: &Turn, call: ToolCall, error: ToolError) -> Answered {
    let started = Instant::now();
    let (id, name, raw) = call.into_parts();
    let known = turn.state.slot(&name).map(|slot| &**slot);
    let record = Record::begin(&turn.state, &id, &name, known, &raw, started);
    let duration = started.elapsed();
    record.end(End::failed(&error, duration));
    let result = ToolResult::failure(id, name, error, duration);
    let limit = turn.state.shared.config.output_chars;
    Answered { result, limit, aside: None }
}

/// Answers one call, whatever happens.
async fn answer(turn: &Turn, call: ToolCall, origin: Origin<'_>) -> Answered {
    let state = &*turn.state;
    let started = Instant::now();
    let (id, name, raw) = call.into_parts();
    let slot = state.slot(&name);
    let mut record = Record::begin(state, &id, &name, slot.map(|slot| &**slot), &raw, started);
    let voice = slot
        .filter(|_| !state.listeners.is_silent())
        .map(|slot| state.listeners.voice(origin.position, &id, &slot.entry.definition));
    let mut way = Way {
        turn,
        voice: voice.as_ref(),
        origin,
        id: &id,
        name: &name,
        started,
        spent: None,
        source: Source::Own,
        mending: Mending::default(),
        decision: Decision::Undecided,
        changed: None,
    };
    let outcome = {
        let work = AssertUnwindSafe(way.go(slot, raw)).catch_unwind();
        let work = pin!(work.instrument(record.span().clone()));
        match unless_cancelled(state, work).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(panic)) => Err(host_failed(panic.as_ref()).into()),
            Err(by) => Err(by.error(started, slot.map(|slot| &**slot)).into()),
        }
    };
    let (source, spent, mending) = (way.source, way.spent, way.mending);
    record.decision = way.decision;
    if let Some(changed) = way.changed {
        record.arguments = Some(changed);
    }
    let mut aside: Option<Box<Aside>> = None;
    let outcome = outcome.map_err(|leave| match leave {
        Leave::Failed(error) => error,
        Leave::Suspended(suspension) => {
            let error = waits(&suspension);
            aside.get_or_insert_default().suspension = Some(suspension);
            error
        }
    });
    let mut outcome = state.shared.mask.outcome(mending.noted(outcome));
    let own_chars = slot.and_then(|slot| slot.entry.definition.output_chars());
    let limits = OutputLimits {
        chars: own_chars.unwrap_or(state.shared.config.output_chars),
        data_bytes: state.shared.config.data_bytes,
    };
    if !allows(&outcome, limits) {
        let owner = Owner::known(&state.identity, state.session.as_ref());
        let place = state.spill().map(|store| Place { store, owner: &owner });
        let fitted = Box::pin(fit_outcome(outcome, limits, place)).await;
        outcome = fitted.outcome;
        if let Some(whole) = fitted.whole {
            aside.get_or_insert_default().whole = Some(whole);
        }
    }
    let truncated = aside.as_ref().is_some_and(|aside| aside.whole.is_some());
    let duration = spent.unwrap_or_else(|| started.elapsed());
    let (cached, skipped) = (source == Source::Kept, source == Source::Shared);
    record.end(End { error: outcome.as_ref().err(), cached, skipped, duration });
    let result = match outcome {
        Ok(output) => ToolResult::success(id, name, output, duration),
        Err(error) => ToolResult::failure(id, name, error, duration),
    }
    .with_truncated(truncated)
    .with_cached(cached)
    .with_skipped(skipped);
    // Recorded first: whoever hears of the end finds it written down.
    if let Some(voice) = &voice {
        match aside.as_ref().and_then(|aside| aside.suspension.as_ref()) {
            None => voice.record(&result),
            Some(suspension) => voice.suspend(suspension.waiting().as_str()),
        }
    }
    Answered { result, limit: limits.chars, aside }
}

/// Why a call goes no further.
enum Leave {
    /// It has failed.
    Failed(ToolError),
    /// It waits, and is kept.
    Suspended(Box<Suspension>),
}

impl From<ToolError> for Leave {
    fn from(error: ToolError) -> Self {
        Self::Failed(error)
    }
}

/// Counts a call that goes no further before it ran.
#[cold]
fn not_run(counted: InFlight, leave: Leave) -> Leave {
    match &leave {
        Leave::Failed(error) => counted.refuse(error.kind()),
        Leave::Suspended(_) => counted.wait(),
    }
    leave
}

/// Where an answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The tool ran, or the call was refused.
    Own,
    /// An earlier call.
    Kept,
    /// The same call, made at the same time.
    Shared,
}

/// Tools' panics are caught where tools run; any other is a fault of the host's code, and its call
/// is answered too.
fn host_failed(panic: &(dyn std::any::Any + Send)) -> ToolError {
    let text = "the host failed while it answered this call";
    PanicMessage::of(panic).into_error(ErrorKind::Internal, text)
}

/// A call on its way.
struct Way<'a> {
    turn: &'a Turn,
    /// Where somebody listens.
    voice: Option<&'a Voice>,
    origin: Origin<'a>,
    id: &'a CallId,
    name: &'a str,
    started: Instant,
    /// How long it took until the tool had done its work: one look at the clock serves all who ask.
    spent: Option<Duration>,
    source: Source,
    /// What was done to the model's text.
    mending: Mending,
    /// What was decided, for the audit log.
    decision: Decision,
    /// What the audit log says of arguments that whoever approved has put in place of the model's.
    changed: Option<AuditedArguments>,
}

impl<'a> Way<'a> {
    /// The whole way, and its place in the statistics.
    async fn go(
        &mut self,
        slot: Option<&'a Arc<Slot>>,
        raw: RawArguments,
    ) -> Result<ToolOutput, Leave> {
        let shared = &self.turn.state.shared;
        let Some(slot) = slot else {
            shared.statistics.unknown();
            return Err(ready::unknown(self.turn, self.name).into());
        };
        let raw = raw.parsed();
        let definition = &slot.entry.definition;
        let (turn, started) = (self.turn, self.started.into_std());
        let begin = || turn.state.shared.statistics.begin(definition, started);
        if let Some(grant) = self.origin.grant {
            if let Some(outcome) = self.decided(slot, grant, begin) {
                return Ok(outcome?);
            }
        }
        let counted = begin();
        let checked = ready::available(slot)
            .and_then(|()| ready::checked(turn, slot, raw, &mut self.mending));
        let ready = match checked {
            Ok(checked) => self.ready(slot, checked).await,
            Err(error) => Err(error.into()),
        };
        let Ready { checked, hosted, tool, asked } = match ready {
            Ok(ready) => ready,
            Err(leave) => return Err(not_run(counted, leave)),
        };
        let Checked { compiled, arguments, key: _ } = checked;
        let kept = match asked {
            None => None,
            Some(Asked::Run(run)) => Some(run),
            Some(Asked::Kept(output)) => {
                return self.spared(Source::Kept, counted, Ok(output));
            }
            Some(Asked::Shared(outcome)) => {
                return self.spared(Source::Shared, counted, outcome);
            }
        };

        let (admission, edition) = (&shared.admission, compiled.edition);
        let (identity, lineage) = (&*self.turn.state.identity, self.origin.lineage);
        let permit = match admission.admit(definition, edition, identity, lineage).await {
            Ok(permit) => permit,
            Err(error) => return Err(not_run(counted, error.into())),
        };
        // The limit starts here: waiting for an approver, another call, a permit or an instance is
        // no part of it.
        let waited = self.started.elapsed();
        let limit = shared.config.limit(definition.timeout());
        let latest = limit.map(|limit| waited.saturating_add(limit));
        let deadline = limit.zip(latest).and_then(|(limit, latest)| {
            Some(Deadline { limit, at: self.started.checked_add(latest)? })
        });
        let (context, host) = (hosted.context(), hosted.host());
        host.begin(&permit, latest);
        let work = Work { slot, tool: &tool, context, host, permit: &permit, deadline };
        // A tool that asks back is suspended with the arguments it was given.
        let again = shared.suspensions.is_some().then(|| arguments.clone());
        let outcome = if let Some(policy) = retry::policy(definition) {
            self.run_again(policy, arguments, &work).await
        } else {
            self.run(arguments, &work).await
        };
        if self.voice.is_some() {
            host.finish_speech().await;
        }
        if outcome.is_err()
            && let Some(waiting) = host.take_waiting()
        {
            permit.finish(None);
            counted.wait();
            return Err(Box::pin(self.suspend(slot, again.as_ref(), waiting)).await);
        }
        let failure = outcome.as_ref().err().map(ToolError::kind);
        if permit.finish(failure) {
            self.turn.state.paused(self.name);
        }
        let spent = self.started.elapsed();
        self.spent = Some(spent);
        counted.finish(Ending::of(&outcome), spent.saturating_sub(waited));
        let outcome = match kept {
            Some(run) => self.publish(run, outcome),
            None => outcome,
        };
        Ok(outcome?)
    }

    /// The answer of another call, in place of this one's own.
    #[cold]
    fn spared(
        &mut self,
        source: Source,
        counted: InFlight,
        outcome: Result<Arc<ToolOutput>, Arc<ToolError>>,
    ) -> Result<ToolOutput, Leave> {
        self.source = source;
        counted.cache_hit();
        outcome.map(Arc::unwrap_or_clone).map_err(|error| Arc::unwrap_or_clone(error).into())
    }

    /// What became of a call that was suspended, where that needs no other look at it.
    fn decided(
        &mut self,
        slot: &Slot,
        grant: &Grant,
        begin: impl FnOnce() -> InFlight,
    ) -> Option<Result<ToolOutput, ToolError>> {
        if grant.is_approved() {
            // The audit log names who approved a call that is refused after all.
            self.decision = consent::approved_by(grant);
        }
        // What was decided on must still be what it was, before anything else is said about it.
        if let Err(error) = grant.check_definition(slot.fingerprint()) {
            begin().refuse(error.kind());
            return Some(Err(error));
        }
        let outcome = self.settled(slot, grant)?;
        begin().finish(Ending::of(&outcome), self.started.elapsed());
        Some(outcome)
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            session: self.turn.state.session.as_deref(),
            batch: self.origin.batch,
            nested: self.origin.lineage.depth() > 0,
        }
    }

    /// Hands the outcome to those who wait for the same.
    fn publish(
        &self,
        run: Run,
        outcome: Result<ToolOutput, ToolError>,
    ) -> Result<ToolOutput, ToolError> {
        let outcome = outcome.map(Arc::new).map_err(Arc::new);
        self.turn.state.shared.answers.publish(run, self.scope(), &outcome);
        outcome.map(Arc::unwrap_or_clone).map_err(Arc::unwrap_or_clone)
    }

    /// Runs the tool, again as often as its definition allows.
    async fn run_again(
        &self,
        policy: RetryPolicy,
        arguments: Arguments,
        work: &Work<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let attempt = || self.run(arguments.clone(), work);
        let latest = work.deadline.map(|deadline| deadline.at);
        let (outcome, attempts) = retry::with_retries(policy, latest, attempt).await;
        retry::noted(outcome, attempts)
    }

    /// Runs the tool and checks what it hands back.
    async fn run(&self, arguments: Arguments, work: &Work<'_>) -> Result<ToolOutput, ToolError> {
        let shared = &self.turn.state.shared;
        let definition = &work.slot.entry.definition;
        let held = Held {
            slot: work.permit.slot().cloned(),
            writing: shared.answers.writing(definition.resources()),
            lease: work.tool.lease(),
        };
        let Work { tool, context, deadline, .. } = *work;
        let running =
            execute(tool.tool(), arguments, context, definition.blocking(), deadline, held);
        let running = pin!(running);
        let outcome = if self.origin.batch.is_some() {
            shared.polls.watch(self.name, running).await?
        } else {
            running.await?
        };
        let output = finished(self.name, outcome, work.host)?;
        // Before anything keeps it, and before it is cut: half a secret is not found.
        let output = shared.mask.outcome(Ok(output))?;
        check_data(definition, shared.registry.schemas(), output, shared.config.data_bytes)
    }
}

/// What a call runs with.
struct Work<'w> {
    slot: &'w Slot,
    tool: &'w Instance<'w>,
    context: &'w CallContext,
    host: &'w Host,
    permit: &'w Permit<'w>,
    deadline: Option<Deadline>,
}
