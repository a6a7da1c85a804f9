//! Calls that fail: unknown and unavailable tools, panics, rate limits, and the counts in the
//! statistics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_core::{ExecutorConfig, TurnOptions};
use toolcrib_tool::{ContextValues, ErrorKind, ToolError, tool_fn};

use crate::harness::{call, configured, define, echo, entry, executor, says, turn};

#[tokio::test]
async fn an_unknown_name_is_answered_with_near_names() {
    let turn = turn([says("read_file", "x"), says("write_file", "x")]);
    let result = call(&turn, "raed_file", json!({})).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::NotFound));
    assert!(result.text().contains("Did you mean `read_file`"), "{}", result.text());
}

#[tokio::test]
async fn an_unavailable_tool_is_in_no_listing_and_says_why() {
    let turn =
        turn([says("ports", "x").unavailable("needs the program `ss`, which is not on PATH")]);
    assert!(turn.definitions().is_empty());
    assert!(turn.describe("ports").is_none());
    let result = call(&turn, "ports", json!({})).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Unavailable));
    assert!(result.text().contains("needs the program `ss`"));
}

#[tokio::test]
async fn a_panic_is_an_answer_and_the_next_call_works() {
    for blocking in [false, true] {
        let turn = turn([
            entry(define("crash").blocking(blocking), tool_fn(|_: Value, _| async { crash() })),
            says("fine", "ok"),
        ]);
        let result = call(&turn, "crash", json!({})).await;
        assert_eq!(result.error_kind(), Some(ErrorKind::Panic));
        assert!(!result.text().contains("secret detail"), "a panic's text is for the operator");
        assert!(
            result
                .error()
                .and_then(ToolError::source)
                .expect("source")
                .to_string()
                .contains("secret detail")
        );
        assert!(call(&turn, "fine", json!({})).await.is_success());
    }
}

fn crash() -> &'static str {
    panic!("secret detail")
}

#[tokio::test]
async fn a_rate_limit_answers_with_when_to_try_again() {
    let limited = entry(
        define("limited").rate("2/min".parse().expect("a rate")),
        tool_fn(|_: Value, _| async { "ok" }),
    );
    let turn = turn([limited]);
    assert!(call(&turn, "limited", json!({})).await.is_success());
    assert!(call(&turn, "limited", json!({})).await.is_success());
    let refused = call(&turn, "limited", json!({})).await;
    assert_eq!(refused.error_kind(), Some(ErrorKind::RateLimited));
    assert!(refused.error().is_some_and(ToolError::retryable));
    assert!(refused.text().contains("again"), "{}", refused.text());
}

#[tokio::test(start_paused = true)]
async fn three_timeouts_pause_a_tool_for_one_identity_until_a_trial_succeeds() {
    let slow = Arc::new(AtomicBool::new(true));
    let is_slow = Arc::clone(&slow);
    let tool = entry(
        define("moody").timeout(Duration::from_secs(1)),
        tool_fn(move |_: Value, _| {
            let slow = is_slow.load(Ordering::SeqCst);
            async move {
                if slow {
                    tokio::time::sleep(Duration::from_secs(60)).await;
                }
                "done"
            }
        }),
    );
    let executor = executor([tool]);
    let of = |user: &str| {
        executor.turn(TurnOptions::default().values(ContextValues::new().with("user", user)))
    };
    for _ in 0..3 {
        let result = call(&of("ada"), "moody", json!({})).await;
        assert_eq!(result.error_kind(), Some(ErrorKind::Timeout));
    }
    assert_eq!(call(&of("ada"), "moody", json!({})).await.error_kind(), Some(ErrorKind::Paused));
    slow.store(false, Ordering::SeqCst);
    assert!(call(&of("bob"), "moody", json!({})).await.is_success(), "another identity");
    tokio::time::advance(Duration::from_secs(61)).await;
    assert!(call(&of("ada"), "moody", json!({})).await.is_success(), "the trial");
    assert!(call(&of("ada"), "moody", json!({})).await.is_success(), "closed again");
}

#[tokio::test]
async fn statistics_count_what_became_of_calls() {
    let schema = json!({"properties": {"n": {"type": "integer"}}, "additionalProperties": false});
    let executor = configured(
        [
            echo(define("echo").input_schema(schema)),
            entry(
                define("fails"),
                tool_fn(|_: Value, _| async { Err::<String, _>(ToolError::execution("no")) }),
            ),
        ],
        ExecutorConfig::default(),
    );
    let turn = executor.turn(TurnOptions::default());
    for arguments in [json!({"n": 1}), json!({"n": 2}), json!({"m": 1})] {
        call(&turn, "echo", arguments).await;
    }
    call(&turn, "fails", json!({})).await;
    call(&turn, "made_up_1", json!({})).await;
    call(&turn, "made_up_2", json!({})).await;
    let statistics = serde_json::to_value(executor.statistics().snapshot()).expect("JSON");
    let of = |name: &str| {
        let all = statistics.as_array().expect("a list");
        all.iter()
            .find(|one| one["tool"] == name)
            .cloned()
            .unwrap_or_else(|| panic!("{statistics}"))
    };
    assert_eq!(
        (&of("echo")["successes"], &of("echo")["errors_by_kind"]),
        (&json!(2), &json!({"invalid_args": 1}))
    );
    assert_eq!(of("fails")["errors_by_kind"], json!({"execution": 1}));
    assert_eq!(of("(unknown)")["refused"], json!(2));
    assert_eq!(of("echo")["in_flight"], json!(0));
}
