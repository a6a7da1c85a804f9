//! Everything before the permit: finding the tool, checking the call, and what is answered already.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use toolcrib_tool::{
    Arguments, CallContext, CallContextBuilder, CallId, Dedupe, Defines, ErrorKind, HostedContext,
    Plan, RawArguments, Tool, ToolDefinition, ToolError,
};

use super::{Leave, Way};
use crate::answers::{Asked, Key};
use crate::arguments::mending::Mending;
use crate::checking::checked_arguments;
use crate::events::Voice;
use crate::execution::{poll_once, timed_out, validate};
use crate::fingerprint::Fingerprint;
use crate::host::Host;
use crate::lifecycle::Instance;
use crate::panics::PanicMessage;
use crate::redaction::redact;
use crate::registry::{Compiled, Slot};
use crate::suspension::{Granted, Waiting};
use crate::turn::Turn;

/// A call that only needs its permit.
pub(super) struct Ready<'t> {
    pub(super) checked: Checked<'t>,
    pub(super) hosted: HostedContext<Host>,
    pub(super) tool: Instance<'t>,
    pub(super) asked: Option<Asked>,
}

impl<'a> Way<'a> {
    /// Finds out whether a call that was checked has to run at all, and may.
    pub(super) async fn ready(
        &mut self,
        slot: &'a Arc<Slot>,
        mut checked: Checked<'a>,
    ) -> Result<Ready<'a>, Leave> {
        let turn = self.turn;
        let voice = self.voice.map(Voice::handle);
        let host = Host::new(turn, self.started, self.origin.lineage, voice);
        let mut builder = context(turn, slot, self.id);
        if let Some(grant) = self.origin.grant
            && let Granted::Answer(answer) = grant.granted()
        {
            let remembered = grant.suspension().waiting().remembered().cloned();
            builder = builder.answer(answer.clone()).remembered(remembered);
        }
        let hosted = builder.host(host).build_hosted();
        let context = hosted.context();
        if let Some(voice) = self.voice {
            let arguments = checked.arguments.value();
            voice.prepare(Some(redact(
                &slot.entry.definition,
                arguments,
                &turn.state.shared.mask.load(),
            )));
        }
        if slot.entry.definition.client() {
            if self.needs_consent(slot) {
                Box::pin(self.consent(slot, &mut checked, None)).await?;
            }
            let arguments = Some(&checked.arguments);
            return Err(Box::pin(self.suspend(slot, arguments, Waiting::Client)).await);
        }
        let limit = turn.state.shared.config.limit(slot.entry.definition.timeout());
        let tool = if let Some(live) = slot.live() {
            Instance::shared(live)?
        } else {
            Box::pin(Instance::own(&slot.entry.body, context, limit)).await?
        };
        let own = OwnCheck { tool: tool.tool().as_ref(), context, limit };
        if slot.may_validate() {
            own.passes(&checked.arguments).await?;
        }
        if self.needs_consent(slot) {
            Box::pin(self.consent(slot, &mut checked, Some(own))).await?;
        }
        let asked = match &checked.key {
            None => None,
            Some(key) => Some(self.ask(slot, key).await?),
        };
        Ok(Ready { checked, hosted, tool, asked })
    }

    /// Whether the call was answered before or is being answered.
    async fn ask(&self, slot: &Slot, key: &Key) -> Result<Asked, ToolError> {
        let state = &self.turn.state;
        let mut ask = pin!(state.shared.answers.ask(key, self.scope()));
        // An answer that is there, or is nowhere under way, needs no timer.
        if let Poll::Ready(asked) = poll_once(ask.as_mut()).await {
            return Ok(asked);
        }
        let Some(limit) = state.shared.config.limit(slot.entry.definition.timeout()) else {
            return Ok(ask.await);
        };
        match tokio::time::timeout(limit, ask).await {
            Ok(asked) => Ok(asked),
            Err(_) => Err(timed_out(&slot.entry.definition, limit)),
        }
    }
}

/// The tool's own check of its arguments.
#[derive(Clone, Copy)]
pub(super) struct OwnCheck<'c> {
    tool: &'c dyn Tool,
    context: &'c CallContext,
    limit: Option<Duration>,
}

impl OwnCheck<'_> {
    /// What the tool would do, as far as it can say.
    pub(super) fn plan(self, arguments: &Arguments) -> Result<Option<Plan>, ToolError> {
        self.tool.plan(arguments, self.context)
    }

    /// The digest of the code that would run now, where it can change.
    pub(super) fn code(self) -> Option<String> {
        Some(Fingerprint::of_json(&self.tool.code()?.into()).to_string())
    }

    pub(super) async fn passes(self, arguments: &Arguments) -> Result<(), ToolError> {
        validate(self.tool, arguments, self.context, self.limit).await
    }
}

/// A call all of whose checks that need no tool have passed.
pub(super) struct Checked<'t> {
    pub(super) compiled: &'t Compiled,
    pub(super) arguments: Arguments,
    /// Which call it is; `None` for tools whose calls always run.
    pub(super) key: Option<Key>,
}

/// Reads and checks the arguments of a call. What had to be mended is noted in `mending`, also where
/// the call is refused.
pub(super) fn checked<'t>(
    turn: &Turn,
    slot: &'t Slot,
    raw: RawArguments,
    mending: &mut Mending,
) -> Result<Checked<'t>, ToolError> {
    let compiled = slot.compiled();
    let definition = &slot.entry.definition;
    let may_close = definition.annotations().read_only;
    let schemas = turn.state.shared.registry.schemas();
    let arguments = checked_arguments(slot, schemas, raw, may_close, mending)?;
    let may_be_spared = definition.cache().is_some() || definition.dedupe() != Dedupe::None;
    let key = may_be_spared
        .then(|| {
            let (values, context) = (&turn.state.values, &turn.state.context);
            Ok::<_, ToolError>(Key::of(&compiled.callee, arguments.tape()?.root(), values, context))
        })
        .transpose()?;
    let checked = Checked { compiled, arguments, key };
    require_context(turn, slot)?;
    if let Some(constraint) = &slot.entry.constraint {
        // Whatever it calls its refusal, and if it panics: what cannot be checked does not hold.
        let arguments = &checked.arguments;
        let checked = AssertUnwindSafe(|| constraint.check(arguments, &turn.state.values));
        let checked = catch_unwind(checked).unwrap_or_else(|panic| {
            let text = "a rule of this tool failed while it was checked";
            Err(PanicMessage::of(panic.as_ref()).into_error(ErrorKind::Constraint, text))
        });
        checked.map_err(|error| error.with_kind(ErrorKind::Constraint))?;
    }
    Ok(checked)
}

/// The definition of a tool, or what a call of it would fail with.
pub(crate) fn describe<'t>(
    turn: &'t Turn,
    name: &str,
) -> Result<&'t Arc<ToolDefinition>, ToolError> {
    let slot = turn.state.slot(name).ok_or_else(|| unknown(turn, name))?;
    available(slot).map(|()| &slot.entry.definition)
}

/// There is no such tool; which ones are near.
pub(super) fn unknown(turn: &Turn, name: &str) -> ToolError {
    let near: Vec<_> = turn.state.near(name).iter().map(|near| format!("`{near}`")).collect();
    let error = ToolError::new(ErrorKind::NotFound, "there is no tool of that name");
    match near.as_slice() {
        [] => error.with_hint("Use one of the listed tools, spelt exactly."),
        near => error.with_hint(format!("Did you mean {}?", near.join(" or "))),
    }
    .with_hint(format!("For the user: tool {name} is unavailable."))
}

/// Fails if the tool cannot run here.
pub(super) fn available(slot: &Slot) -> Result<(), ToolError> {
    if slot.is_available() {
        return Ok(());
    }
    let reason = slot.entry.unavailable_reason().unwrap_or_default();
    let name = slot.entry.name();
    Err(ToolError::unavailable(reason)
        .with_hint("Use another tool; this one cannot run here.")
        .with_hint(format!("For the user: tool {name} is unavailable.")))
}

/// Fails if the host has not supplied what the tool needs.
fn require_context(turn: &Turn, slot: &Slot) -> Result<(), ToolError> {
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

pub(super) fn context(turn: &Turn, slot: &Arc<Slot>, id: &CallId) -> CallContextBuilder {
    let output_chars =
        slot.entry.definition.output_chars().unwrap_or(turn.state.shared.config.output_chars);
    CallContext::builder_of(id.clone(), Arc::clone(slot) as Arc<dyn Defines>)
        .values(turn.state.values.clone())
        .output_chars(output_chars)
}
