//! The checks before consent: whether the tool exists and is available, and whether arguments,
//! context and constraints are valid.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use toolcrib_tool::{
    Arguments, CallContext, CallHost, CallId, Dedupe, ErrorKind, Plan, RawArguments, Tool,
    ToolDefinition, ToolError, shown_name,
};

use super::Origin;
use crate::ExecutorConfig;
use crate::arguments::corrections::Corrections;
use crate::arguments::preparation::checked_arguments;
use crate::cache::CacheKey;
use crate::call::host::ExecutorHost;
use crate::call::panics::PanicMessage;
use crate::call::tool_run::validate;
use crate::call::turn::Turn;
use crate::events::EventEmitter;
use crate::identity::fingerprint::Fingerprint;
use crate::output::sensitive_arguments::{exact_value, redact};
use crate::registry::{Compiled, ToolSlot};
use crate::suspension::Granted;

/// The tool's own check of its arguments.
#[derive(Clone, Copy)]
pub(super) struct OwnCheck<'c> {
    tool: &'c dyn Tool,
    context: &'c CallContext,
    limit: Option<Duration>,
}

impl<'c> OwnCheck<'c> {
    pub(super) fn new(
        tool: &'c dyn Tool,
        context: &'c CallContext,
        limit: Option<Duration>,
    ) -> Self {
        Self { tool, context, limit }
    }

    /// The tool's plan, if it can make one.
    pub(super) fn plan(self, arguments: &Arguments) -> Result<Option<Plan>, ToolError> {
        self.tool.plan(arguments, self.context)
    }

    /// The digest of the code that would run, if it can change.
    pub(super) fn code(self) -> Option<String> {
        Some(Fingerprint::of_json(&self.tool.code()?.into()).to_string())
    }

    pub(super) async fn passes(self, arguments: &Arguments) -> Result<(), ToolError> {
        if !self.tool.validates() {
            return Ok(());
        }
        Box::pin(validate(self.tool, arguments, self.context, self.limit)).await
    }
}

/// A call that has passed all checks that do not run the tool's code.
pub(crate) struct Checked<'t> {
    pub(super) compiled: &'t Compiled,
    pub(crate) arguments: Arguments,
    /// The cache key; `None` for tools whose calls always run.
    pub(super) key: Option<CacheKey>,
}

/// Reads and checks the arguments of a call: parse or repair, strip, fill in defaults, validate or
/// coerce; then the context and the tool's constraints. Corrections are recorded in `mending`, even
/// if the call is refused.
pub(crate) fn checked<'t>(
    turn: &Turn,
    slot: &'t ToolSlot,
    raw: RawArguments,
    mending: &mut Corrections,
) -> Result<Checked<'t>, ToolError> {
    let may_close = slot.entry.definition.annotations().read_only;
    let schemas = turn.state.shared.registry.schemas();
    let arguments = checked_arguments(slot, schemas, raw, may_close, mending)?;
    let key = key(turn, slot, &arguments)?;
    require_context(turn, slot)?;
    require_constraint(turn, slot, &arguments)?;
    Ok(Checked { compiled: slot.compiled(), arguments, key })
}

/// The cache key; `None` for tools whose calls always run.
fn key(turn: &Turn, slot: &ToolSlot, arguments: &Arguments) -> Result<Option<CacheKey>, ToolError> {
    let definition = &slot.entry.definition;
    if definition.cache().is_none() && definition.dedupe() == Dedupe::None {
        return Ok(None);
    }
    let (values, identity) = (&turn.state.values, &turn.state.identity);
    let callee = &slot.compiled().callee;
    Ok(Some(CacheKey::of(callee, arguments.tape()?.root(), values, identity)))
}

/// Fails if the arguments violate a constraint of the tool, or if the constraint panics. The error
/// always gets the kind `constraint`.
fn require_constraint(
    turn: &Turn,
    slot: &ToolSlot,
    arguments: &Arguments,
) -> Result<(), ToolError> {
    let Some(constraint) = &slot.entry.constraint else { return Ok(()) };
    let checked = AssertUnwindSafe(|| constraint.check(arguments, &turn.state.values));
    catch_unwind(checked)
        .unwrap_or_else(|panic| {
            let text = "a rule of this tool failed while it was checked";
            Err(PanicMessage::of(panic.as_ref()).into_error(ErrorKind::Constraint, text))
        })
        .map_err(|error| error.with_kind(ErrorKind::Constraint))
}

/// The definition of a tool, or the error that a call would get.
pub(crate) fn describe<'t>(
    turn: &'t Turn,
    name: &str,
) -> Result<&'t Arc<ToolDefinition>, ToolError> {
    let slot = turn.state.slot(name).ok_or_else(|| unknown(turn, name))?;
    available(slot).map(|()| &slot.entry.definition)
}

/// The error for an unknown tool, with similar names.
pub(super) fn unknown(turn: &Turn, name: &str) -> ToolError {
    let near: Vec<_> = turn.state.near(name).iter().map(|near| format!("`{near}`")).collect();
    let error = ToolError::new(ErrorKind::NotFound, "there is no tool of that name");
    match near.as_slice() {
        [] => error.with_hint("Use one of the listed tools, spelt exactly."),
        near => error.with_hint(format!("Did you mean {}?", near.join(" or "))),
    }
    .with_hint(format!("For the user: tool {} is unavailable.", shown_name(name)))
}

/// Fails if the tool cannot run here.
pub(super) fn available(slot: &ToolSlot) -> Result<(), ToolError> {
    if slot.is_available() {
        return Ok(());
    }
    let reason = slot.entry.unavailable_reason().unwrap_or_default();
    let name = slot.entry.name();
    Err(ToolError::unavailable(reason)
        .with_hint("Use another tool; this one cannot run here.")
        .with_hint(format!("For the user: tool {name} is unavailable.")))
}

/// Fails if a required context value is missing.
fn require_context(turn: &Turn, slot: &ToolSlot) -> Result<(), ToolError> {
    let missing = slot.entry.definition.injections().iter().find(|injection| {
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

/// An incoming call, or a dry run of one.
#[derive(Clone, Copy)]
pub(super) struct Incoming<'c> {
    pub(super) turn: &'c Turn,
    /// The settings when the call arrived.
    pub(super) config: &'c ExecutorConfig,
    pub(super) origin: &'c Origin<'c>,
    pub(super) id: &'c CallId,
    /// Present if there are listeners.
    pub(super) emitter: Option<&'c EventEmitter>,
}

impl Incoming<'_> {
    /// The tool's context, and the executor's side of it.
    pub(super) fn context(self, slot: &Arc<ToolSlot>) -> (CallContext, Arc<ExecutorHost>) {
        let Self { turn, config, origin, id, emitter } = self;
        let host =
            Arc::new(ExecutorHost::new(turn, origin, slot, id, emitter.map(EventEmitter::handle)));
        let definition = &slot.entry.definition;
        let output_chars = definition.output_chars().unwrap_or(config.output_chars);
        let mut builder = CallContext::builder(id.clone(), Arc::clone(definition))
            .values(turn.state.values.clone())
            .output_chars(output_chars);
        if let Some(grant) = origin.grant
            && let Granted::Answer(answer) = grant.granted()
        {
            let remembered = grant.suspension().waiting().remembered().cloned();
            builder = builder.answer(answer.clone()).remembered(remembered);
        }
        (builder.host(Arc::clone(&host) as Arc<dyn CallHost>).build(), host)
    }

    /// Tells listeners which arguments the tool will get.
    pub(super) fn announce(self, slot: &ToolSlot, arguments: &Arguments) {
        if let Some(emitter) = self.emitter {
            let mask = self.turn.state.shared.mask.load();
            let arguments = exact_value(arguments);
            emitter.prepare(Some(redact(&slot.entry.definition, &arguments, &mask)));
        }
    }
}
