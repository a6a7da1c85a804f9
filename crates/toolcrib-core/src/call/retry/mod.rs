//! Trying a failed call again: whether, and after how long.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::time::{Instant, sleep};
use toolcrib_tool::{ErrorKind, RetryPolicy, ToolDefinition, ToolError, ToolOutput};

/// The longest pause between two attempts, however often the backoff was doubled.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The policy of a tool whose calls may be tried again: one that states it and is idempotent.
pub(crate) fn policy(definition: &ToolDefinition) -> Option<RetryPolicy> {
    definition.retry().filter(|_| definition.annotations().idempotent)
}

/// The pause after attempt number `attempt` (from 1) failed, before the next; `None`: no next one.
///
/// Twice as long each time, at most 30 s, and always the same for the same attempt: what a call does
/// can be told from its definition. Longer if the failure says how long to wait; if that is longer
/// than such a pause may be, nobody waits for it.
pub(crate) fn pause(policy: RetryPolicy, error: &ToolError, attempt: u32) -> Option<Duration> {
    // What ended so may still be at work, or will only end so again.
    let final_kind =
        matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Cancelled | ErrorKind::Panic);
    if !error.retryable() || final_kind || attempt > policy.max() {
        return None;
    }
    let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
    let pause = policy.backoff().saturating_mul(doubled).min(MAX_PAUSE);
    match error.retry_after() {
        Some(asked) if asked > MAX_PAUSE => None,
        Some(asked) => Some(pause.max(asked)),
        None => Some(pause),
    }
}

/// Runs attempts until one succeeds, fails for good, or the next could not begin before the
/// deadline. Returns the last outcome and how many attempts it took, or what interrupted the pause
/// between two.
///
/// The caller's time limit ends an attempt that runs; this only begins none too late.
pub(crate) async fn with_retries<T, R, I>(
    policy: RetryPolicy,
    deadline: impl Fn() -> Option<Instant>,
    mut interrupted: impl FnMut() -> I,
    mut attempt: impl FnMut() -> R,
) -> Result<(Result<T, ToolError>, u32), I::Output>
where
    R: Future<Output = Result<T, ToolError>>,
    I: Future,
{
    let mut attempts = 1;
    loop {
        let outcome = attempt().await;
        let next = outcome.as_ref().err().and_then(|error| pause(policy, error, attempts));
        let Some(pause) = next else { return Ok((outcome, attempts)) };
        let begins = Instant::now().checked_add(pause);
        if deadline().is_some_and(|deadline| begins.is_none_or(|begins| begins >= deadline)) {
            return Ok((outcome, attempts));
        }
        match select(pin!(sleep(pause)), pin!(interrupted())).await {
            Either::Left(_) => {}
            Either::Right((interruption, _)) => return Err(interruption),
        }
        attempts += 1;
    }
}

/// Says in the outcome that it took more than one attempt: `attempts` in the notes of an output, a
/// line in a failure.
pub(crate) fn noted(
    outcome: Result<ToolOutput, ToolError>,
    attempts: u32,
) -> Result<ToolOutput, ToolError> {
    if attempts < 2 {
        return outcome;
    }
    outcome
        .map(|output| output.with_meta("attempts", attempts))
        .map_err(|error| error.with_hint(format!("It was tried {attempts} times.")))
}

#[cfg(test)]
mod tests;
