//! Which failures are tried again, when, and how often.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;
use toolcrib_tool::{ErrorKind, RetryPolicy, ToolDefinition, ToolError, ToolOutput};

use super::{MAX_PAUSE, noted, pause, policy, with_retries};

const POLICY: RetryPolicy = RetryPolicy::new(3).with_backoff(Duration::from_millis(100));

fn busy() -> ToolError {
    ToolError::execution("busy").with_retryable(true)
}

#[test]
fn only_idempotent_tools_are_tried_again() {
    let definition = |idempotent, retry: bool| {
        let builder = ToolDefinition::builder("t").description("T.").idempotent(idempotent);
        if retry { builder.retry(POLICY) } else { builder }.build()
    };
    assert!(policy(&definition(true, true).unwrap()).is_some());
    assert!(policy(&definition(true, false).unwrap()).is_none());
    // The contract refuses it before we could.
    definition(false, true).unwrap_err();
}

#[test]
fn only_errors_that_say_so_are_tried_again() {
    for &kind in ErrorKind::ALL {
        let error = |retryable| ToolError::new(kind, "no").with_retryable(retryable);
        let ends = matches!(kind, ErrorKind::Timeout | ErrorKind::Cancelled | ErrorKind::Panic);
        assert_eq!(pause(POLICY, &error(true), 1).is_none(), ends, "{kind}");
        assert_eq!(pause(POLICY, &error(false), 1), None, "{kind}");
    }
}

#[test]
fn pauses_double_up_to_a_bound_and_end() {
    let pauses: Vec<_> =
        (1..=4).map(|n| pause(POLICY, &busy(), n).map(|pause| pause.as_millis())).collect();
    assert_eq!(pauses, [Some(100), Some(200), Some(400), None]);
    let endless = RetryPolicy::new(u32::MAX).with_backoff(Duration::from_secs(1));
    assert_eq!(pause(endless, &busy(), 200), Some(MAX_PAUSE));
}

#[test]
fn nobody_is_asked_again_before_the_time_it_named() {
    let after = |wait| pause(POLICY, &busy().with_retry_after(Duration::from_secs(wait)), 1);
    assert_eq!(after(7), Some(Duration::from_secs(7)));
    assert_eq!(after(0), Some(Duration::from_millis(100)));
    assert_eq!(after(30), Some(MAX_PAUSE));
    assert_eq!(after(31), None);
}

/// Interrupts no pause.
fn never() -> std::future::Pending<std::convert::Infallible> {
    std::future::pending()
}

#[tokio::test(start_paused = true)]
async fn an_interruption_ends_the_pause_between_two_attempts() {
    let from = Instant::now();
    let interrupted = || async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        "interrupted"
    };
    let attempt = || async { Err::<ToolOutput, _>(busy()) };
    let retried = with_retries(POLICY, || None, interrupted, attempt).await;
    assert_eq!(retried.err(), Some("interrupted"));
    assert_eq!(from.elapsed().as_millis(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_call_succeeds_at_a_later_attempt() {
    let runs = Cell::new(0);
    let from = Instant::now();
    let retried = with_retries(
        POLICY,
        || None,
        never,
        || {
            runs.set(runs.get() + 1);
            let run = runs.get();
            async move { if run < 3 { Err(busy()) } else { Ok(ToolOutput::from("done")) } }
        },
    )
    .await;
    let Ok((outcome, attempts)) = retried;
    assert_eq!((runs.get(), attempts), (3, 3));
    assert_eq!(from.elapsed().as_millis(), 300);
    assert_eq!(noted(outcome, attempts).unwrap().meta()["attempts"], 3);
}

#[tokio::test(start_paused = true)]
async fn no_attempt_begins_after_the_deadline() {
    let from = Instant::now();
    let deadline = from + Duration::from_millis(250);
    let attempt = || async { Err::<ToolOutput, _>(busy()) };
    let retried = with_retries(POLICY, || Some(deadline), never, attempt).await;
    let Ok((outcome, attempts)) = retried;
    // The second pause would end at 300 ms.
    assert_eq!((attempts, from.elapsed().as_millis()), (2, 100));
    let error = noted(outcome, attempts).unwrap_err();
    assert_eq!(error.hints(), ["It was tried 2 times."]);
}

#[tokio::test]
async fn what_fails_for_good_is_tried_once_and_not_noted() {
    let failed = || async { Err::<ToolOutput, _>(ToolError::execution("no such file")) };
    let retried = with_retries(POLICY, || None, never, failed).await;
    let Ok((outcome, attempts)) = retried;
    assert_eq!(attempts, 1);
    assert!(noted(outcome, attempts).unwrap_err().hints().is_empty());
}
