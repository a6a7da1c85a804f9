//! Retries with backoff.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::time::{Instant, sleep};
use toolcrib_tool::{ErrorKind, RetryPolicy, ToolDefinition, ToolError, ToolOutput};

/// The maximum pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The retry policy of a tool, if it states one and is idempotent.
pub(crate) fn policy(definition: &ToolDefinition) -> Option<RetryPolicy> {
    definition.retry().filter(|_| definition.annotations().idempotent)
}

/// The pause after failed attempt number `attempt` (from 1); `None` for no further attempt.
///
/// Exponential backoff without jitter, at most 30 s. If the error states a longer wait, that is
/// used; if it exceeds the maximum, there is no retry.
pub(crate) fn pause(policy: RetryPolicy, error: &ToolError, attempt: u32) -> Option<Duration> {
    // The work may still be running, or would fail the same way.
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

/// Runs attempts until one succeeds or fails permanently, or until the next could not start before
/// the deadline. Returns the last outcome and the number of attempts, or what interrupted a pause.
///
/// The caller's time limit ends a running attempt; this only starts none too late.
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

/// Notes in the outcome that there was more than one attempt: `attempts` in the notes of an output,
/// a hint in an error.
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
