//! The one way a call takes, top to bottom: resolve → parse (or repair) → strip → defaults →
//! validate (or coerce) → context → answered before? → breaker, permits and rate → the tool's own
//! check → run within its limit → check the output → fit the budget.

use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use tokio::time::Instant;
use toolcrib_fuzzy::near_names;
use toolcrib_tool::{
    Arguments, Body, CallContext, CallContextBuilder, CallId, ErrorKind, HostedContext,
    RawArguments, ToolCall, ToolDefinition, ToolError, ToolOutcome, ToolOutput, ToolResult,
    canonical_json,
};

use crate::admission::{Lineage, Permit};
use crate::answers::{Answers, Asked, Flights, Key, Run, Scope};
use crate::cancel::Cancellation;
use crate::checking::{Mending, checked_arguments, listed};
use crate::execution::{Deadline, Held, PanicMessage, execute, poll_once, timed_out, validate};
use crate::host::Host;
use crate::output_budget;
use crate::registry::{Compiled, Slot};
use crate::statistics::Ending;
use crate::turn::Turn;

/// Where an answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The tool ran, or the call was refused.
    Own,
    /// An earlier call.
    Kept,
    /// The same call, made at the same time.
    Shared,
}

/// Answers one call. `lineage` is that of the call it was made from; `batch` has the flights of
/// the batch it is part of.
pub(crate) async fn run(
    turn: &Turn,
    call: ToolCall,
    lineage: &Lineage,
    batch: Option<&Flights>,
) -> ToolResult {
    let started = Instant::now();
    let (id, name, raw) = call.into_parts();
    tracing::debug!(tool = %name, call_id = %id, "execute_start");
    let record = Record { id: &id, name: &name, started, ended: false };
    let mut way = Way {
        turn,
        lineage,
        batch,
        id: &id,
        name: &name,
        started,
        origin: Origin::Own,
        output_chars: turn.state.shared.config.output_chars,
    };
    let outcome = {
        // Pinned here and lent: a call's future is large, and each hand-over would copy it.
        let work = pin!(AssertUnwindSafe(way.go(raw)).catch_unwind());
        match unless_cancelled(&turn.state.cancellation, work).await {
            Some(Ok(outcome)) => outcome,
            Some(Err(panic)) => Err(host_failed(panic.as_ref())),
            None => Err(cancelled(started)),
        }
    };
    let (origin, budget) = (way.origin, way.output_chars);
    let duration = started.elapsed();
    record.ended(duration, outcome.as_ref().err());
    answer(id, name, outcome, budget, duration)
        .with_cached(origin == Origin::Kept)
        .with_skipped(origin == Origin::Shared)
}

/// Runs `work` until the turn is cancelled; `None` if it was.
async fn unless_cancelled<F: Future>(
    cancellation: &Cancellation,
    mut work: Pin<&mut F>,
) -> Option<F::Output> {
    if cancellation.is_cancelled() {
        return None;
    }
    if let Poll::Ready(output) = poll_once(work.as_mut()).await {
        return Some(output);
    }
    let cancelled = pin!(cancellation.cancelled());
    match select(work, cancelled).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(_) => None,
    }
}

fn cancelled(started: Instant) -> ToolError {
    let spent = started.elapsed();
    ToolError::new(ErrorKind::Cancelled, format!("it was withdrawn after {spent:.1?}"))
        .with_hint("Whether it took effect is unknown: look before you call it again.")
}

/// Tools' panics are caught where tools run; any other is a fault of the host's code, and its call
/// is answered too.
fn host_failed(panic: &(dyn std::any::Any + Send)) -> ToolError {
    ToolError::internal("the host failed while it answered this call")
        .with_source(PanicMessage::of(panic))
}

/// Writes down how a call ended, also if it is dropped.
struct Record<'a> {
    id: &'a CallId,
    name: &'a str,
    started: Instant,
    ended: bool,
}

impl Record<'_> {
    fn ended(mut self, duration: Duration, error: Option<&ToolError>) {
        self.ended = true;
        log(self.name, self.id.as_str(), duration, error);
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let error = cancelled(self.started);
            log(self.name, self.id.as_str(), self.started.elapsed(), Some(&error));
        }
    }
}

/// A call on its way.
struct Way<'a> {
    turn: &'a Turn,
    lineage: &'a Lineage,
    batch: Option<&'a Flights>,
    id: &'a CallId,
    name: &'a str,
    started: Instant,
    origin: Origin,
    /// Characters of text the model gets.
    output_chars: usize,
}

impl Way<'_> {
    /// The whole way, and its place in the statistics.
    async fn go(&mut self, raw: RawArguments) -> Result<ToolOutput, ToolError> {
        let shared = &self.turn.state.shared;
        let slot = resolve(self.turn, self.name).inspect_err(|error| {
            if error.kind() == ErrorKind::NotFound {
                shared.statistics.unknown();
            }
        })?;
        let definition = &slot.entry.definition;
        if let Some(own) = definition.output_chars() {
            self.output_chars = own;
        }
        let counted = slot.counter(&shared.statistics).begin(self.started.into_std());
        let ready = match self.ready(slot, raw).await {
            Ok(ready) => ready,
            Err(error) => {
                counted.refuse(error.kind());
                return Err(error);
            }
        };
        let Ready { checked, hosted, asked } = ready;
        let Checked { compiled, arguments, mending } = checked;
        let kept = match asked {
            None => None,
            Some(Asked::Run(run)) => Some(run),
            Some(Asked::Kept(output)) => {
                self.origin = Origin::Kept;
                counted.cache_hit();
                return Ok(mending.noted_in(Arc::unwrap_or_clone(output)));
            }
            Some(Asked::Shared(outcome)) => {
                self.origin = Origin::Shared;
                counted.cache_hit();
                return outcome
                    .map(|output| mending.noted_in(Arc::unwrap_or_clone(output)))
                    .map_err(Arc::unwrap_or_clone);
            }
        };

        let admitted = shared.admission.admit(
            definition,
            compiled.fingerprint,
            &self.turn.state.identity,
            self.lineage,
        );
        let permit = match admitted.await {
            Ok(permit) => permit,
            Err(error) => {
                counted.refuse(error.kind());
                return Err(error);
            }
        };
        // Waiting is no part of the limit; where there was none, one look at the clock will do.
        let waited = kept.is_some() || permit.waited();
        let runs_from = if waited { Instant::now() } else { self.started };
        let outcome = self.run(slot, compiled, arguments, &hosted, &permit, runs_from).await;
        let failure = outcome.as_ref().err().map(ToolError::kind);
        permit.finish(failure);
        counted.finish(Ending::of(&outcome), runs_from.elapsed());
        let outcome = match kept {
            Some(run) => self.publish(run, outcome),
            None => outcome,
        };
        outcome.map(|output| mending.noted_in(output))
    }

    /// Everything before the permit: what is checked, asked, and answered already.
    async fn ready<'t>(&self, slot: &'t Slot, raw: RawArguments) -> Result<Ready<'t>, ToolError>
    where
        Self: 't,
    {
        let checked = checked(self.turn, slot, raw)?;
        let host = Host::new(self.turn, slot.entry.definition.tool_name(), self.lineage);
        let hosted = context(self.turn, slot, self.id).host(host).build_hosted();
        let Body::Shared(tool) = &slot.entry.body else {
            return Err(ToolError::internal("this version cannot run a body of that kind"));
        };
        let limit = self.turn.state.shared.config.limit(slot.entry.definition.timeout());
        validate(tool.as_ref(), &checked.arguments, &hosted.context(), limit).await?;
        let asked = self.ask(slot, &checked).await?;
        Ok(Ready { checked, hosted, asked })
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            session: self.turn.state.session.as_deref(),
            batch: self.batch,
            nested: self.lineage.depth() > 0,
        }
    }

    /// Whether the call was answered before or is being answered; `None` for tools whose calls
    /// always run.
    async fn ask(&self, slot: &Slot, checked: &Checked<'_>) -> Result<Option<Asked>, ToolError> {
        let definition = &slot.entry.definition;
        if !Answers::concern(definition) {
            return Ok(None);
        }
        let turn = self.turn;
        let arguments = checked.arguments.tape()?.root();
        let key =
            Key::of(&checked.compiled.callee, arguments, &turn.state.values, &turn.state.context);
        let ask = turn.state.shared.answers.ask(&key, self.scope());
        match turn.state.shared.config.limit(definition.timeout()) {
            None => Ok(Some(ask.await)),
            Some(limit) => match tokio::time::timeout(limit, ask).await {
                Ok(asked) => Ok(Some(asked)),
                Err(_) => Err(timed_out(definition, limit)),
            },
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

    /// Runs the tool and checks what it hands back.
    async fn run(
        &self,
        slot: &Slot,
        compiled: &Compiled,
        arguments: Arguments,
        hosted: &HostedContext<Host>,
        permit: &Permit<'_>,
        runs_from: Instant,
    ) -> Result<ToolOutput, ToolError> {
        let shared = &self.turn.state.shared;
        let definition = &slot.entry.definition;
        let Body::Shared(tool) = &slot.entry.body else {
            return Err(ToolError::internal("this version cannot run a body of that kind"));
        };
        let deadline = shared
            .config
            .limit(definition.timeout())
            .map(|limit| Deadline { limit, at: runs_from + limit });
        hosted.host().begin(permit, deadline.map(|deadline| deadline.at));
        let held = Held {
            slot: permit.slot().cloned(),
            writing: shared.answers.writing(definition.resources()),
        };
        let outcome = execute(tool, arguments, &hosted.context(), deadline, held).await?;
        let output = finished(self.name, outcome, hosted.host())?;
        check_data(compiled, output, shared.config.data_bytes)
    }
}

/// A call that only needs its permit.
struct Ready<'t> {
    checked: Checked<'t>,
    hosted: HostedContext<Host>,
    asked: Option<Asked>,
}

/// A call all of whose checks that need no tool have passed.
struct Checked<'t> {
    compiled: &'t Compiled,
    arguments: Arguments,
    mending: Mending,
}

fn checked<'t>(turn: &Turn, slot: &'t Slot, raw: RawArguments) -> Result<Checked<'t>, ToolError> {
    let definition = &slot.entry.definition;
    let compiled = slot.compiled(turn.state.shared.registry.schemas())?;
    let (arguments, mending) =
        checked_arguments(compiled, raw, definition.annotations().read_only)?;
    require_context(turn, definition)?;
    Ok(Checked { compiled, arguments, mending })
}

/// Does everything but running the tool.
pub(crate) fn dry_run(turn: &Turn, call: ToolCall) -> Result<(Arguments, CallContext), ToolError> {
    let (id, name, raw) = call.into_parts();
    let slot = resolve(turn, &name)?;
    let checked = checked(turn, slot, raw)?;
    Ok((checked.arguments, context(turn, slot, &id).build()))
}

/// Finds the tool, or says which ones are near.
fn resolve<'t>(turn: &'t Turn, name: &str) -> Result<&'t Slot, ToolError> {
    let Some(slot) = turn.state.snapshot.slot(name) else {
        let known = turn.definitions().iter().map(|definition| definition.name());
        let near: Vec<_> = near_names(name, known).iter().map(|near| format!("`{near}`")).collect();
        let error = ToolError::new(ErrorKind::NotFound, "there is no tool of that name");
        return Err(match near.as_slice() {
            [] => error.with_hint("Use one of the listed tools, spelt exactly."),
            near => error.with_hint(format!("Did you mean {}?", near.join(" or "))),
        }
        .with_hint(format!("For the user: tool {name} is unavailable.")));
    };
    match slot.entry.unavailable_reason() {
        None => Ok(slot),
        Some(reason) => Err(ToolError::unavailable(reason)
            .with_hint("Use another tool; this one cannot run here.")
            .with_hint(format!("For the user: tool {name} is unavailable."))),
    }
}

/// Fails if the host has not supplied what the tool needs.
fn require_context(turn: &Turn, definition: &ToolDefinition) -> Result<(), ToolError> {
    let missing = definition.injections().iter().find(|injection| {
        injection.required() && turn.state.values.get(injection.context_key()).is_none()
    });
    let Some(injection) = missing else { return Ok(()) };
    Err(ToolError::new(
        ErrorKind::MissingContext,
        format!(
            "the host has not supplied `{}`, which this tool takes from the context",
            injection.context_key()
        ),
    )
    .with_hint("It cannot be given as an argument. Tell the user that the host must set it."))
}

fn context(turn: &Turn, slot: &Slot, id: &CallId) -> CallContextBuilder {
    let definition = &slot.entry.definition;
    CallContext::builder(id.clone(), Arc::clone(definition))
        .values(turn.state.values.clone())
        .output_chars(definition.output_chars().unwrap_or(turn.state.shared.config.output_chars))
}

/// Output, or the reason why waiting is not possible here.
fn finished(name: &str, outcome: ToolOutcome, host: &Host) -> Result<ToolOutput, ToolError> {
    match outcome {
        ToolOutcome::Done(output) if !output.is_empty() => Ok(output),
        ToolOutcome::Done(_) => host.take_result().ok_or_else(|| {
            ToolError::execution("the tool ended with no output")
                .with_hint("Nothing is known of what it did. Try another tool.")
        }),
        ToolOutcome::NeedsInput(request) => Err(ToolError::unavailable(format!(
            "it needs an answer from a person, and this host keeps no waiting calls: {}",
            request.message
        ))),
        ToolOutcome::Pending(ticket) => Err(ToolError::unavailable(format!(
            "its work goes on elsewhere as {}, and this host keeps no waiting calls",
            ticket.id
        ))),
        _ => Err(ToolError::internal(format!("{name} ended in a way this version does not know"))),
    }
}

/// Holds `data` against its size limit and the declared output schema.
fn check_data(
    compiled: &Compiled,
    output: ToolOutput,
    data_bytes: usize,
) -> Result<ToolOutput, ToolError> {
    if let Some(data) = output.data() {
        let size = canonical_json(data).len();
        if size > data_bytes {
            return Err(ToolError::new(
                ErrorKind::InvalidOutput,
                format!("the result's data is {size} bytes, more than the limit of {data_bytes}"),
            )
            .with_hint("Ask for less at a time."));
        }
    }
    let Some(validator) = &compiled.output else { return Ok(output) };
    let Some(data) = output.data() else {
        return Err(ToolError::new(
            ErrorKind::InvalidOutput,
            "the tool declares an output schema and returned no data",
        )
        .with_partial(output));
    };
    let violations = validator.violations(data);
    if violations.is_empty() {
        return Ok(output);
    }
    let error = ToolError::new(
        ErrorKind::InvalidOutput,
        "the tool's data does not fit the output schema it declares",
    );
    Err(listed(error, &violations))
}

/// The final answer, with its text fitted to the budget.
fn answer(
    id: CallId,
    name: Arc<str>,
    outcome: Result<ToolOutput, ToolError>,
    budget: usize,
    duration: Duration,
) -> ToolResult {
    match outcome {
        Ok(output) => {
            let (output, truncated) = output_budget::fit(output, budget);
            ToolResult::success(id, name, output, duration).with_truncated(truncated)
        }
        Err(mut error) => {
            let mut truncated = false;
            if let Some(partial) = error.take_partial() {
                let (partial, cut) = output_budget::fit(partial, budget);
                truncated = cut;
                error = error.with_partial(partial);
            }
            ToolResult::failure(id, name, error, duration).with_truncated(truncated)
        }
    }
}

fn log(tool: &str, call_id: &str, duration: Duration, error: Option<&ToolError>) {
    let Some(error) = error else {
        tracing::info!(tool, call_id, ?duration, "execute_done");
        return;
    };
    let kind = error.kind().as_str();
    let source = error.source().map(ToString::to_string);
    match error.kind() {
        ErrorKind::NotFound
        | ErrorKind::Panic
        | ErrorKind::Timeout
        | ErrorKind::Unavailable
        | ErrorKind::InvalidOutput
        | ErrorKind::Internal => {
            tracing::error!(tool, call_id, ?duration, kind, source, %error, "execute_done");
        }
        _ => tracing::warn!(tool, call_id, ?duration, kind, source, %error, "execute_done"),
    }
}
