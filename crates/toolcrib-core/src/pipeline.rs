//! The one way a call takes, top to bottom: resolve → parse (or repair) → strip → defaults →
//! validate (or coerce) → context → the tool's own check → run within its limit → check the output → fit the budget.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use toolcrib_fuzzy::near_names;
use toolcrib_tool::{
    Arguments, Body, CallContext, CallId, ErrorKind, RawArguments, Tool, ToolCall, ToolDefinition,
    ToolError, ToolOutcome, ToolOutput, ToolResult, canonical_json,
};

use crate::cancel::Cancellation;
use crate::checking::{Mending, checked_arguments, listed};
use crate::output_budget;
use crate::registry::{Compiled, Slot};
use crate::turn::Turn;

/// When a call ends at the latest, and how long that was from its start.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    limit: Duration,
    at: Instant,
}

/// Answers one call.
pub(crate) async fn run(turn: &Turn, call: ToolCall) -> ToolResult {
    let started = Instant::now();
    let (id, name, raw) = call.into_parts();
    tracing::debug!(tool = %name, call_id = %id, "execute_start");

    let outcome = async {
        let Ready { slot, compiled, arguments, mending, cx, deadline, cancellation } =
            ready(turn, &id, &name, raw, started)?;
        let Body::Shared(tool) = &slot.entry.body else {
            return Err(ToolError::internal("this version cannot run a body of that kind"));
        };
        let outcome = execute(tool, arguments, &cx, deadline, &cancellation).await?;
        let output = mending.noted_in(finished(&name, outcome)?);
        check_data(compiled, output, turn.shared.config.data_bytes)
    }
    .await;

    let duration = started.elapsed();
    log(&name, id.as_str(), duration, outcome.as_ref().err());
    answer(turn, id, name, outcome, duration)
}

/// A call that may run: every check that needs no tool has passed.
struct Ready<'t> {
    slot: &'t Slot,
    compiled: &'t Compiled,
    arguments: Arguments,
    mending: Mending,
    cx: CallContext,
    deadline: Option<Deadline>,
    cancellation: Arc<Cancellation>,
}

fn ready<'t>(
    turn: &'t Turn,
    id: &CallId,
    name: &str,
    raw: RawArguments,
    started: Instant,
) -> Result<Ready<'t>, ToolError> {
    let slot = resolve(turn, name)?;
    let compiled = slot.compiled(turn.shared.registry.schemas())?;
    let may_close = slot.entry.definition.annotations().read_only;
    let (arguments, mending) = checked_arguments(compiled, raw, may_close)?;
    let cancellation = Arc::new(Cancellation::default());
    let limit = turn.shared.config.limit(slot.entry.definition.timeout());
    let deadline = limit.map(|limit| Deadline { limit, at: started + limit });
    let cx = context(turn, slot, id.as_str(), deadline, &cancellation)?;
    Ok(Ready { slot, compiled, arguments, mending, cx, deadline, cancellation })
}

/// Does everything but running the tool.
pub(crate) fn dry_run(turn: &Turn, call: ToolCall) -> Result<(Arguments, CallContext), ToolError> {
    let (id, name, raw) = call.into_parts();
    let ready = ready(turn, &id, &name, raw, Instant::now())?;
    Ok((ready.arguments, ready.cx))
}

/// Finds the tool, or says which ones are near.
fn resolve<'t>(turn: &'t Turn, name: &str) -> Result<&'t Slot, ToolError> {
    let Some(slot) = turn.snapshot.slot(name) else {
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

/// The call's context; fails if the host has not supplied what the tool needs.
fn context(
    turn: &Turn,
    slot: &Slot,
    id: &str,
    deadline: Option<Deadline>,
    cancellation: &Arc<Cancellation>,
) -> Result<CallContext, ToolError> {
    let definition = &slot.entry.definition;
    for injection in definition.injections().iter().filter(|injection| injection.required()) {
        if turn.values.get(injection.context_key()).is_none() {
            return Err(ToolError::new(
                ErrorKind::MissingContext,
                format!(
                    "the host has not supplied `{}`, which this tool takes from the context",
                    injection.context_key()
                ),
            )
            .with_hint(
                "It cannot be given as an argument. Tell the user that the host must set it.",
            ));
        }
    }
    let config = &turn.shared.config;
    let builder = CallContext::builder(id, Arc::clone(definition))
        .values(turn.values.clone())
        .output_chars(definition.output_chars().unwrap_or(config.output_chars))
        .host(Arc::clone(cancellation) as _);
    Ok(match deadline {
        Some(deadline) => builder.deadline(deadline.at).build(),
        None => builder.build(),
    })
}

/// Runs the tool's check and its work within the deadline, whatever it does.
async fn execute(
    tool: &Arc<dyn Tool>,
    arguments: Arguments,
    cx: &CallContext,
    deadline: Option<Deadline>,
    cancellation: &Arc<Cancellation>,
) -> Result<ToolOutcome, ToolError> {
    let cancel_when_dropped = cancellation.set_on_drop();
    let work = work(tool, arguments, cx);
    let Some(deadline) = deadline else {
        let outcome = work.await;
        cancel_when_dropped.disarm();
        return outcome;
    };

    let mut work = std::pin::pin!(work);
    if let Ok(outcome) = tokio::time::timeout_at(deadline.at.into(), &mut work).await {
        cancel_when_dropped.disarm();
        return outcome;
    }
    cancellation.set();
    let error = timed_out(cx.definition(), deadline.limit);
    let wind_down = tool.wind_down();
    if wind_down.is_zero() {
        return Err(error);
    }
    let partial = match tokio::time::timeout(wind_down, work).await {
        Ok(Ok(ToolOutcome::Done(output))) => Some(output),
        Ok(Err(mut late)) => late.take_partial(),
        Ok(Ok(_)) | Err(_) => None,
    };
    Err(match partial {
        Some(partial) => error.with_partial(partial),
        None => error,
    })
}

/// The tool's check and its work, with panics caught, on the pool its definition asks for.
async fn work(
    tool: &Arc<dyn Tool>,
    arguments: Arguments,
    cx: &CallContext,
) -> Result<ToolOutcome, ToolError> {
    async fn inner(
        tool: &dyn Tool,
        arguments: Arguments,
        cx: &CallContext,
    ) -> Result<ToolOutcome, ToolError> {
        tool.validate(&arguments, cx).await?;
        tool.call(arguments, cx).await
    }

    if cx.definition().blocking() {
        let (tool, cx) = (Arc::clone(tool), cx.clone());
        let runtime = tokio::runtime::Handle::current();
        let joined = tokio::task::spawn_blocking(move || {
            runtime.block_on(inner(tool.as_ref(), arguments, &cx))
        })
        .await;
        return joined.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => Err(panicked(panic.as_ref())),
            Err(error) => Err(ToolError::internal(format!("the blocking pool is closed: {error}"))),
        });
    }
    // A tool that panicked is asked again only through its own `&self`; what it left half done
    // behind a lock of its own, that lock's poisoning tells it.
    AssertUnwindSafe(inner(tool.as_ref(), arguments, cx))
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> ToolError {
    let said = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    ToolError::new(ErrorKind::Panic, "the tool crashed on this input")
        .with_hint("Try other arguments or another tool.")
        .with_source(PanicMessage(said.to_owned()))
}

/// What a panic said; for the operator's log.
#[derive(Debug)]
struct PanicMessage(String);

impl std::fmt::Display for PanicMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "panicked: {}", self.0)
    }
}

impl std::error::Error for PanicMessage {}

fn timed_out(definition: &ToolDefinition, limit: Duration) -> ToolError {
    let error = ToolError::new(
        ErrorKind::Timeout,
        format!("it ran longer than its limit of {limit:?} and was ended"),
    );
    if definition.annotations().read_only {
        error.with_hint("Ask for less at a time, or call again later.")
    } else {
        error.with_hint("Whether it took effect is unknown: look before you call it again.")
    }
}

/// Output, or the reason why waiting is not possible here.
fn finished(name: &str, outcome: ToolOutcome) -> Result<ToolOutput, ToolError> {
    match outcome {
        ToolOutcome::Done(output) => Ok(output),
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
    turn: &Turn,
    id: CallId,
    name: Arc<str>,
    outcome: Result<ToolOutput, ToolError>,
    duration: Duration,
) -> ToolResult {
    let own = turn.snapshot.get(&name).and_then(|entry| entry.definition.output_chars());
    let budget = own.unwrap_or(turn.shared.config.output_chars);
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
