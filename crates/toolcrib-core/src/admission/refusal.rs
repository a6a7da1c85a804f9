//! Errors for calls that may not start: why, and when to try again.

use std::time::Duration;

use toolcrib_tool::{ErrorKind, RateLimit, ToolError};

use super::MAX_DEPTH;
use super::breaker::Paused;
use super::fair_bucket::Refused;

pub(super) fn too_deep() -> ToolError {
    ToolError::denied(format!(
        "calls can be nested {MAX_DEPTH} levels deep, and this call is nested deeper"
    ))
    .with_hint("Call the tool directly, not through other tools.")
}

pub(super) fn paused(paused: Paused, timeouts: u32) -> ToolError {
    let times =
        if timeouts == 1 { "once".to_owned() } else { format!("{timeouts} times in a row") };
    let (rest, wait) = match paused {
        Paused::For(left) => (format!("is paused for {}", seconds(left)), left),
        Paused::WhileTried => {
            ("is paused until a call that tries it out has ended".to_owned(), Duration::ZERO)
        }
    };
    let error = ToolError::new(
        ErrorKind::Paused,
        format!("the tool ran into its time limit {times} and {rest}"),
    );
    later(error, wait, format!("Use another tool, or call again in {}.", seconds(wait)))
}

/// All calls that wait now are answered within the queue's time limit.
pub(super) fn queue_full(limit: Duration) -> ToolError {
    busy("the tool is busy, and too many calls are waiting for it", limit)
}

pub(super) fn queue_timeout(limit: Duration) -> ToolError {
    busy(&format!("the tool is busy, and no slot was free within {}", seconds(limit)), limit)
}

pub(super) fn rate_limited(limit: RateLimit, refused: Refused) -> ToolError {
    let Refused { wait, is_shared } = refused;
    let calls = limit.calls();
    let per = limit.per();
    let per = match (per.as_secs(), per.subsec_nanos()) {
        (1, 0) => "second".to_owned(),
        (60, 0) => "minute".to_owned(),
        (3600, 0) => "hour".to_owned(),
        _ => format!("{per:?}"),
    };
    let calls = if calls.get() == 1 { "once".to_owned() } else { format!("{calls} times") };
    let shared = if is_shared { " by all of its callers, who share this fairly" } else { "" };
    let message = format!("the tool may be called {calls} per {per}{shared}");
    let error = ToolError::new(ErrorKind::RateLimited, message);
    later(error, wait, format!("Nothing was run. Call again in {}.", seconds(wait)))
}

fn busy(message: &str, wait: Duration) -> ToolError {
    let hint = format!("Nothing was run. Call again in {}.", seconds(wait));
    later(ToolError::unavailable(message), wait, hint)
}

/// The same call may succeed after `wait`. The hint is for models, `retry_after` for programs.
fn later(error: ToolError, wait: Duration, hint: String) -> ToolError {
    let wait = Duration::from_secs(whole_seconds(wait));
    error.with_retryable(true).with_retry_after(wait).with_hint(hint)
}

/// At least one second, rounded up: a call that comes too early is refused again.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1)
}

fn seconds(wait: Duration) -> String {
    let whole = whole_seconds(wait);
    if whole == 1 { "1 second".to_owned() } else { format!("{whole} seconds") }
}
