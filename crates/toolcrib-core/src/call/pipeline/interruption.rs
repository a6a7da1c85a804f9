//! Interruptions of a call by its caller, its executor, or a time limit.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};
use toolcrib_tool::{ErrorKind, ToolDefinition, ToolError};

use crate::admission::Lineage;
use crate::call::cancellation::Cancellation;
use crate::call::nested::RunningCall;
use crate::call::tool_run::cut_short;
use crate::lifecycle::Shutdown;

/// Why a call was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// Its turn was cancelled, or its parent call has ended.
    Cancelled,
    /// Its client may no longer make it.
    Revoked,
    /// The executor's grace period is over.
    Shutdown,
    /// The caller's deadline, or the limit of a parent call.
    Deadline,
    /// The tool's own time limit.
    Limit(Duration),
}

/// What a call had reached when it was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReachedStage {
    /// The tool had not started, and will not.
    Nothing,
    /// The tool was running.
    Work,
}

impl Interruption {
    /// The interruption that a cancelled token means.
    pub(crate) fn of(cancellation: &Cancellation) -> Self {
        if cancellation.is_revoked() { Self::Revoked } else { Self::Cancelled }
    }

    /// The error for an interrupted call that began at `started`. `definition` is absent for an
    /// unknown tool.
    pub(crate) fn error(
        self,
        reached: ReachedStage,
        started: Instant,
        definition: Option<&ToolDefinition>,
    ) -> ToolError {
        self.error_with_hints(reached, started, definition, &[])
    }

    /// As [`error`](Self::error), with the hints that the tool gave when it was interrupted, which
    /// replace general advice.
    pub(crate) fn error_with_hints(
        self,
        reached: ReachedStage,
        started: Instant,
        definition: Option<&ToolDefinition>,
        hints: &[String],
    ) -> ToolError {
        let error = match self {
            Self::Cancelled => {
                let spent = started.elapsed();
                let message = format!("it was withdrawn after {spent:.1?}");
                ToolError::new(ErrorKind::Cancelled, message)
            }
            Self::Revoked => {
                let spent = started.elapsed();
                let message = format!(
                    "the client that made this call lost the right to make it, and it was ended after \
                     {spent:.1?}"
                );
                ToolError::new(ErrorKind::Cancelled, message)
            }
            Self::Shutdown => {
                let message = "the host is shutting down, and the call was ended";
                ToolError::new(ErrorKind::Cancelled, message)
            }
            Self::Deadline => {
                let spent = started.elapsed();
                let message =
                    format!("the caller's deadline passed after {spent:.1?}, and it was ended");
                ToolError::new(ErrorKind::Timeout, message)
            }
            Self::Limit(limit) if reached == ReachedStage::Nothing => {
                let message =
                    format!("no thread for blocking tools was free within its limit of {limit:?}");
                ToolError::new(ErrorKind::Timeout, message)
            }
            Self::Limit(limit) => {
                let message = format!("it ran longer than its limit of {limit:?} and was ended");
                ToolError::new(ErrorKind::Timeout, message)
            }
        };
        let read_only = definition.is_none_or(|definition| definition.annotations().read_only);
        match (reached, self) {
            (ReachedStage::Nothing, _) => error.with_hint("Nothing was run."),
            (ReachedStage::Work, Self::Limit(_)) if read_only && hints.is_empty() => error
                .with_hint(if definition.is_some_and(takes_arguments) {
                    ASK_FOR_LESS
                } else {
                    TELL_THE_USER
                }),
            (ReachedStage::Work, _) => {
                let error = cut_short(error, read_only);
                hints.iter().fold(error, |error, hint| error.with_hint(hint.as_str()))
            }
        }
    }

    /// Whether time ended the call.
    pub(crate) fn is_by_time(self) -> bool {
        matches!(self, Self::Limit(_) | Self::Deadline)
    }
}

/// Advice for a call that ran into its time limit.
const ASK_FOR_LESS: &str = "If the arguments can ask for less, call again with such arguments; otherwise tell the \
                            user: the same call is likely to run into the limit again.";

/// The same for a tool without arguments.
const TELL_THE_USER: &str = "Tell the user: the same call is likely to run into the limit again.";

/// Whether a call of the tool can have arguments, as far as the schema names any.
fn takes_arguments(definition: &ToolDefinition) -> bool {
    let Some(schema) = definition.input_schema().as_object() else { return true };
    schema.iter().any(|(key, value)| match (key.as_str(), value) {
        ("properties", Value::Object(properties)) => !properties.is_empty(),
        ("additionalProperties", rest) => *rest != Value::Bool(false),
        ("patternProperties" | "anyOf" | "oneOf" | "allOf" | "$ref", _) => true,
        _ => false,
    })
}

/// Everything that can interrupt one call.
#[derive(Clone, Copy)]
pub(crate) struct Interrupts<'a> {
    pub(crate) cancellation: &'a Cancellation,
    pub(crate) shutdown: &'a Shutdown,
    /// Its ancestors, whose limits apply to it, and the caller's deadline.
    pub(crate) lineage: &'a Lineage,
    /// The call itself, once its time limit runs.
    pub(crate) own: Option<&'a RunningCall>,
}

impl Interrupts<'_> {
    /// When and why time ends the call at present. This changes while a nested call or an ancestor
    /// waits for somebody.
    fn end(&self) -> Option<(Instant, Interruption)> {
        let limit = self.own.and_then(RunningCall::limit_end);
        let limit = limit.map(|(at, limit)| (at, Interruption::Limit(limit)));
        let deadline = self.lineage.deadline().map(|at| (at, Interruption::Deadline));
        match (limit, deadline) {
            (Some(limit), Some(deadline)) if deadline.0 < limit.0 => Some(deadline),
            (limit, deadline) => limit.or(deadline),
        }
    }

    /// When time ends the call, if ever.
    pub(crate) fn latest(&self) -> Option<Instant> {
        self.end().map(|(at, _)| at)
    }

    /// An interruption that has already happened.
    pub(crate) fn pending(&self) -> Option<Interruption> {
        if self.cancellation.is_cancelled() {
            return Some(Interruption::of(self.cancellation));
        }
        if self.shutdown.is_cancelled() {
            return Some(Interruption::Shutdown);
        }
        self.end().filter(|(at, _)| *at <= Instant::now()).map(|(_, why)| why)
    }

    /// Completes with the first interruption.
    pub(crate) async fn next(&self) -> Interruption {
        // Boxed at the first poll: a call whose work is ready at once needs none of this.
        Box::pin(self.first()).await
    }

    async fn first(&self) -> Interruption {
        let cancelled = pin!(self.cancellation.cancelled());
        let shutdown = pin!(self.shutdown.cancelled());
        let time = pin!(self.time_is_over());
        match select(cancelled, select(shutdown, time)).await {
            Either::Left(_) => Interruption::of(self.cancellation),
            Either::Right((Either::Left(_), _)) => Interruption::Shutdown,
            Either::Right((Either::Right((why, _)), _)) => why,
        }
    }

    async fn time_is_over(&self) -> Interruption {
        loop {
            let mut changed = pin!(self.lineage.outermost().time_changes());
            // Registered before the time is read, so that a change between the two is not missed.
            changed.as_mut().enable();
            let Some((at, why)) = self.end() else {
                changed.await;
                continue;
            };
            if at <= Instant::now() {
                return why;
            }
            let _ = select(pin!(sleep_until(at)), changed).await;
        }
    }

    /// Runs `work`, and drops it if the call is interrupted.
    pub(crate) async fn unless_interrupted<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, Interruption> {
        if let Some(interruption) = self.pending() {
            return Err(interruption);
        }
        match select(pin!(work), pin!(self.next())).await {
            Either::Left((output, _)) => Ok(output),
            Either::Right((interruption, _)) => Err(interruption),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hints(schema: Value, own: &[String]) -> Vec<String> {
        let definition = ToolDefinition::builder("look")
            .description("Look.")
            .input_schema(schema)
            .read_only(true)
            .build()
            .expect("it is right");
        let limit = Interruption::Limit(Duration::from_secs(3));
        let (reached, started) = (ReachedStage::Work, Instant::now());
        limit.error_with_hints(reached, started, Some(&definition), own).hints().to_vec()
    }

    #[tokio::test]
    async fn advice_at_the_time_limit_fits_the_tool() {
        let named = json!({"type": "object", "properties": {"lines": {"type": "integer"}}});
        assert_eq!(hints(named.clone(), &[]), [ASK_FOR_LESS]);
        assert_eq!(
            hints(json!({"type": "object", "additionalProperties": true}), &[]),
            [ASK_FOR_LESS]
        );
        let none = json!({"type": "object", "properties": {}, "additionalProperties": false});
        assert_eq!(hints(none, &[]), [TELL_THE_USER]);
        assert_eq!(hints(json!({"type": "object"}), &[]), [TELL_THE_USER]);
        // What the tool itself says takes the place of general advice.
        let own = ["This worker has never answered.".to_owned()];
        assert_eq!(hints(named, &own), own);
    }
}
