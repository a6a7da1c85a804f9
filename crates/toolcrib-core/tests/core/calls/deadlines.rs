//! Time limits, deadlines and cancellation: which time counts, and which calls they affect.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolcrib_core::approval::{ApprovalRequest, Approver, Decision};
use toolcrib_core::{BatchOptions, Executor, ExecutorConfig, TurnOptions};
use toolcrib_tool::{
    Approval, Arguments, BoxFuture, CallContext, ErrorKind, IntoOutcome, RetryPolicy, Tool,
    ToolCall, ToolEntry, ToolError, ToolOutcome, ToolOutput, tool_factory, tool_fn,
};

use crate::harness::{call, define, entry, executor, registry, source, turn};

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Sleeps, and reports when it is done.
fn sleeps(takes: Duration) -> impl Tool {
    tool_fn(move |_: Value, _| async move {
        tokio::time::sleep(takes).await;
        "done"
    })
}

/// Approves after a while.
struct Slow(Duration);

impl Approver for Slow {
    fn decide<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Decision> {
        Box::pin(async move {
            tokio::time::sleep(self.0).await;
            Decision::approve()
        })
    }
}

/// Takes a long time for everything before the work, and works for 10 ms.
struct SlowToCheck;

impl Tool for SlowToCheck {
    fn call<'a>(
        &'a self,
        _: Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async {
            tokio::time::sleep(millis(900)).await;
            "done".into_outcome()
        })
    }

    fn validate<'a>(
        &'a self,
        _: &'a Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async {
            tokio::time::sleep(millis(900)).await;
            Ok(())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_that_comes_before_the_work_counts_against_the_limit() {
    let asks = define("asks").approval(Approval::Always).timeout(Duration::from_secs(1));
    let factory = tool_factory(|_| async {
        tokio::time::sleep(millis(900)).await;
        Ok(SlowToCheck)
    });
    let made = define("made").timeout(Duration::from_secs(1)).build().expect("a definition");
    let executor =
        executor([entry(asks, SlowToCheck), ToolEntry::per_use(made, Arc::new(factory), source())]);
    let approver = Arc::new(Slow(Duration::from_secs(2)));
    let turn = executor.turn(TurnOptions::default().approver(approver));
    for _ in 0..4 {
        for name in ["asks", "made"] {
            let result = call(&turn, name, json!({})).await;
            assert!(result.is_success(), "{name}: {}", result.text());
        }
    }
    for tool in executor.statistics().snapshot() {
        assert!(tool.average_seconds < Some(0.95), "{}: {:?}", tool.tool, tool.average_seconds);
    }
}

#[test]
fn a_time_limit_of_zero_is_no_definition() {
    let error = define("never").timeout(Duration::ZERO).build().expect_err("none could run");
    assert!(error.to_string().contains("its time limit is zero"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn all_waiting_counts_against_the_callers_deadline() {
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = {
        let ran = Arc::clone(&ran);
        tool_fn(move |_: Value, _| {
            ran.fetch_add(1, Ordering::SeqCst);
            async { "done" }
        })
    };
    let executor = executor([
        entry(define("asks").approval(Approval::Always), counted),
        entry(define("works").timeout(Duration::from_secs(60)), sleeps(Duration::from_secs(30))),
    ]);
    let from = tokio::time::Instant::now();
    let options = TurnOptions::default()
        .approver(Arc::new(Slow(Duration::from_secs(5))))
        .deadline(Duration::from_secs(2));
    let waited = call(&executor.turn(options), "asks", json!({})).await;
    assert_eq!(waited.error_kind(), Some(ErrorKind::Timeout), "{}", waited.text());
    assert!(waited.text().contains("Nothing was run"), "{}", waited.text());
    assert_eq!(from.elapsed(), Duration::from_secs(2));

    // Three cancellations in a row are not held against the tool.
    for _ in 0..4 {
        let turn = executor.turn(TurnOptions::default().deadline(Duration::from_secs(3)));
        let worked = call(&turn, "works", json!({})).await;
        assert_eq!(worked.error_kind(), Some(ErrorKind::Timeout), "{}", worked.text());
        assert!(worked.text().contains("the caller's deadline passed"), "{}", worked.text());
    }
    // The deadline has passed, so the work does not begin.
    let past = executor.turn(TurnOptions::default().deadline(SystemTime::UNIX_EPOCH));
    let late = call(&past, "asks", json!({})).await;
    assert_eq!(late.error_kind(), Some(ErrorKind::Timeout));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    // A distant deadline changes nothing.
    let enough = executor.turn(TurnOptions::default().deadline(Duration::MAX));
    assert!(call(&enough, "works", json!({})).await.is_success());
}

#[tokio::test(start_paused = true)]
async fn the_own_limit_of_a_nested_call_ends_it_and_not_the_call_that_makes_it() {
    let outer = tool_fn(|_: Value, cx: CallContext| async move {
        let inner = cx.call(ToolCall::new("n", "inner", "{}")).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        format!("{:?}", inner.error_kind())
    });
    let executor = executor([
        entry(define("inner").timeout(Duration::from_secs(1)), sleeps(Duration::from_secs(30))),
        entry(define("outer").timeout(Duration::from_secs(5)), outer),
    ]);
    let from = tokio::time::Instant::now();
    let result = call(&executor.turn(TurnOptions::default()), "outer", json!({})).await;
    assert_eq!((&*result.text(), result.is_success()), ("Some(Timeout)", true));
    assert_eq!(from.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_tool_sees_the_nearer_of_its_limit_and_the_callers_deadline() {
    let tool = tool_fn(|_: Value, cx: CallContext| async move {
        let left = cx.deadline().map(|at| at - tokio::time::Instant::now().into_std());
        format!("{left:?}")
    });
    let executor = executor([entry(define("look").timeout(Duration::from_secs(10)), tool)]);
    for (deadline, seen) in [(5, "Some(5s)"), (20, "Some(10s)")] {
        let options = TurnOptions::default().deadline(Duration::from_secs(deadline));
        let result = call(&executor.turn(options), "look", json!({})).await;
        assert_eq!(result.text(), seen);
    }
}

#[test]
fn blocking_work_that_has_not_begun_when_its_call_is_answered_never_begins() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .expect("a runtime");
    let ran = Arc::new(AtomicUsize::new(0));
    let body = {
        let ran = Arc::clone(&ran);
        tool_fn(move |_: Value, _| {
            let ran = Arc::clone(&ran);
            async move {
                std::thread::sleep(millis(300));
                ran.fetch_add(1, Ordering::SeqCst);
                "written"
            }
        })
    };
    let write = define("write").blocking(true).timeout(millis(100));
    let turn = turn([entry(write, body)]);
    runtime.block_on(async {
        let calls = || ToolCall::new("1", "write", "{}");
        let (first, second) = tokio::join!(turn.call(calls()), turn.call(calls()));
        assert_eq!(first.error_kind(), Some(ErrorKind::Timeout));
        assert_eq!(second.error_kind(), Some(ErrorKind::Timeout));
        assert!(second.text().contains("Nothing was run"), "{}", second.text());
        // The same for a call that is dropped, and for one that is cancelled.
        let dropped = tokio::time::timeout(millis(10), turn.call(calls()));
        assert!(dropped.await.is_err());
        let (withdrawn, ()) = tokio::join!(turn.call(calls()), async { turn.cancel() });
        assert_eq!(withdrawn.error_kind(), Some(ErrorKind::Cancelled));
        tokio::time::sleep(millis(800)).await;
    });
    assert_eq!(ran.load(Ordering::SeqCst), 1, "the first, which had begun");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_over_makes_no_more_calls() {
    let charged = Arc::new(AtomicUsize::new(0));
    let charge = {
        let charged = Arc::clone(&charged);
        tool_fn(move |_: Value, _| {
            charged.fetch_add(1, Ordering::SeqCst);
            async { "charged" }
        })
    };
    let (told, mut hears) = tokio::sync::mpsc::unbounded_channel();
    let late = tool_fn(move |_: Value, cx: CallContext| {
        let told = told.clone();
        async move {
            std::thread::sleep(millis(150));
            let result = cx.call(ToolCall::new("n", "charge", "{}")).await;
            let _ = told.send((result.error_kind(), result.text().into_owned()));
            "late"
        }
    });
    let leaves_behind = tool_fn(|_: Value, cx: CallContext| async move {
        tokio::spawn(async move {
            tokio::time::sleep(millis(50)).await;
            cx.call(ToolCall::new("n", "charge", "{}")).await;
        });
        "done"
    });
    let executor = executor([
        entry(define("charge"), charge),
        entry(define("late").blocking(true).timeout(millis(50)), late),
        entry(define("leaves_behind"), leaves_behind),
    ]);
    let turn = executor.turn(TurnOptions::default());
    let result = call(&turn, "late", json!({})).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Timeout));
    let (kind, text) = hears.recv().await.expect("the thread goes on");
    assert_eq!(kind, Some(ErrorKind::Cancelled));
    assert!(text.contains("the call that would make this one is over"), "{text}");
    assert!(call(&turn, "leaves_behind", json!({})).await.is_success());
    tokio::time::sleep(millis(200)).await;
    assert_eq!(charged.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_nested_call_has_the_deadline_and_the_cancellation_of_the_call_that_makes_it() {
    let ended = Arc::new(AtomicUsize::new(0));
    let inner = {
        let ended = Arc::clone(&ended);
        tool_fn(move |_: Value, cx: CallContext| {
            let ended = Arc::clone(&ended);
            async move {
                let left = cx.deadline().map(|at| at - tokio::time::Instant::now().into_std());
                assert_eq!(left, Some(Duration::from_secs(5)));
                cx.cancelled().await;
                ended.fetch_add(1, Ordering::SeqCst);
                std::future::pending::<()>().await;
                "never"
            }
        })
    };
    let outer = tool_fn(|_: Value, cx: CallContext| async move {
        cx.call(ToolCall::new("n", "inner", "{}")).await.into_result().map(ToolOutcome::Done)
    });
    let entries = [
        entry(define("inner").timeout(Duration::from_secs(60)), WindsDown(inner)),
        entry(define("outer").timeout(Duration::from_secs(5)), WindsDown(outer)),
    ];
    let turn = turn(entries);
    let from = tokio::time::Instant::now();
    let result = call(&turn, "outer", json!({})).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Timeout), "{}", result.text());
    assert!(from.elapsed() <= Duration::from_secs(6), "{:?}", from.elapsed());
    assert_eq!(ended.load(Ordering::SeqCst), 1);
    let (result, ()) = tokio::join!(call(&turn, "outer", json!({})), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        turn.cancel();
    });
    assert_eq!(result.error_kind(), Some(ErrorKind::Cancelled), "{}", result.text());
    assert_eq!(ended.load(Ordering::SeqCst), 2);
}

/// The same tool with half a second to wind down.
struct WindsDown<T>(T);

impl<T: Tool> Tool for WindsDown<T> {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        self.0.call(arguments, cx)
    }

    fn wind_down(&self) -> Duration {
        millis(500)
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_ends_a_call_its_tool_has_its_wind_down() {
    let wound_down = Arc::new(AtomicUsize::new(0));
    let body = {
        let wound_down = Arc::clone(&wound_down);
        tool_fn(move |_: Value, cx: CallContext| {
            let wound_down = Arc::clone(&wound_down);
            async move {
                cx.cancelled().await;
                tokio::time::sleep(millis(20)).await;
                wound_down.fetch_add(1, Ordering::SeqCst);
                "half of it"
            }
        })
    };
    let executor =
        executor([entry(define("work").timeout(Duration::from_secs(60)), WindsDown(body))]);
    let turn = executor.turn(TurnOptions::default());
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        turn.cancel();
    };
    let (cancelled, ()) = tokio::join!(call(&turn, "work", json!({})), cancel);
    assert_eq!(cancelled.error_kind(), Some(ErrorKind::Cancelled));
    assert!(cancelled.text().contains("half of it"), "{}", cancelled.text());
    let turn = executor.turn(TurnOptions::default().deadline(Duration::from_secs(1)));
    let late = call(&turn, "work", json!({})).await;
    assert_eq!(late.error_kind(), Some(ErrorKind::Timeout));
    assert!(late.text().contains("half of it"), "{}", late.text());
    let turn = executor.turn(TurnOptions::default());
    let (ended, report) =
        tokio::join!(call(&turn, "work", json!({})), executor.shutdown(Duration::from_secs(1)));
    assert_eq!(ended.error_kind(), Some(ErrorKind::Cancelled), "{}", ended.text());
    assert_eq!((report.cancelled, report.abandoned), (1, 0));
    assert_eq!(wound_down.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn output_of_use_however_far_it_came_is_a_success_at_the_callers_deadline_too() {
    let body = tool_fn(|_: Value, cx: CallContext| async move {
        cx.cancelled().await;
        ToolOutput::from("so far").with_timed_out()
    });
    let executor = executor([entry(define("log"), WindsDown(body))]);
    let turn = executor.turn(TurnOptions::default().deadline(Duration::from_secs(1)));
    let result = call(&turn, "log", json!({})).await;
    assert!(result.is_success(), "{}", result.text());
    assert_eq!(result.text(), "so far");
    let [counted] = &executor.statistics().snapshot()[..] else { panic!("one tool") };
    assert_eq!((counted.successes, counted.timeouts), (1, 1));
}

#[tokio::test]
async fn each_batch_has_its_own_concurrency() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let body = {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        tool_fn(move |_: Value, _| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                now.fetch_sub(1, Ordering::SeqCst);
                "done"
            }
        })
    };
    let turn =
        executor([entry(define("work"), body)]).turn(TurnOptions::default().max_concurrency(3));
    let calls = || (0..12).map(|id| ToolCall::new(id.to_string(), "work", "{}")).collect();
    for (options, expected) in [
        (BatchOptions::default(), 3),
        (BatchOptions::default().max_concurrency(1), 1),
        (BatchOptions::default().max_concurrency(0), 12),
    ] {
        most.store(0, Ordering::SeqCst);
        assert_eq!(turn.call_batch_with(calls(), options).await.len(), 12);
        assert_eq!(most.load(Ordering::SeqCst), expected);
    }
}

#[tokio::test]
async fn a_failed_attempt_sets_no_result_for_the_next_one() {
    let attempts = AtomicUsize::new(0);
    let body = tool_fn(move |_: Value, cx: CallContext| {
        let attempt = attempts.fetch_add(1, Ordering::SeqCst);
        async move {
            if attempt == 0 {
                cx.set_result("half of page 1");
                return Err(ToolError::execution("the connection broke").with_retryable(true));
            }
            Ok(ToolOutput::new())
        }
    });
    let read = define("read").idempotent(true).retry(RetryPolicy::new(1).with_backoff(millis(1)));
    let result = call(&turn([entry(read, body)]), "read", json!({})).await;
    assert!(!result.is_success(), "{}", result.text());
    assert!(result.text().contains("no output"), "{}", result.text());
}

#[tokio::test]
async fn a_panic_of_the_hosts_own_code_counts_as_internal() {
    let asks = define("asks").approval(Approval::Always);
    let executor = Executor::builder(registry([entry(asks, sleeps(millis(1)))]))
        .config(ExecutorConfig::default())
        .suspensions(Arc::new(toolcrib_core::suspension::MemorySuspensions::new()))
        .clock(Arc::new(|| -> toolcrib_core::clock::Timestamp { panic!("the clock is broken") }))
        .build();
    let result = call(&executor.turn(TurnOptions::default()), "asks", json!({})).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Internal), "{}", result.text());
    let counted = executor.statistics().snapshot();
    assert_eq!(counted[0].errors_by_kind.get("internal"), Some(&1));
    assert_eq!(counted[0].errors_by_kind.get("cancelled"), None);
}
