//! Batches under random schedules: every id has exactly one answer, in call order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_core::suspension::MemorySuspensions;
use toolcrib_core::{Executor, ExecutorConfig, TurnOptions};
use toolcrib_tool::{
    Approval, CallContext, Dedupe, ErrorKind, ToolCall, ToolEntry, ToolError, tool_fn,
};

use crate::harness::{define, entry, registry};

/// The kinds of calls, by what their tool does.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Plan {
    Succeeds,
    Fails,
    Panics,
    /// Reaches its time limit of 100 ms.
    Hangs,
    /// Runs alone.
    Alone,
    /// At most two run at once.
    Limited,
    /// The same call, made twice, runs once.
    Deduped,
    /// Waits for approval.
    Asks,
    /// Calls two other tools: itself and a limited one.
    Nests,
    Unknown,
    Invalid,
    NotJson,
}

const PLANS: [Plan; 12] = [
    Plan::Succeeds,
    Plan::Fails,
    Plan::Panics,
    Plan::Hangs,
    Plan::Alone,
    Plan::Limited,
    Plan::Deduped,
    Plan::Asks,
    Plan::Nests,
    Plan::Unknown,
    Plan::Invalid,
    Plan::NotJson,
];

#[derive(Debug, Deserialize)]
struct Wait {
    millis: u64,
}

/// The number of running calls: of the limited tool, of any tool, and of the tool that runs alone.
#[derive(Default)]
struct Load {
    limited: AtomicUsize,
    all: AtomicUsize,
    alone: AtomicUsize,
}

struct Running<'a>(&'a AtomicUsize);

impl<'a> Running<'a> {
    fn new(count: &'a AtomicUsize, most: usize) -> Self {
        let before = count.fetch_add(1, Ordering::SeqCst);
        assert!(before < most, "{} run at once, {most} may", before + 1);
        Self(count)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn wait(args: Wait) -> &'static str {
    tokio::time::sleep(Duration::from_millis(args.millis)).await;
    "done"
}

fn tools(load: &Arc<Load>) -> Vec<ToolEntry> {
    let schema = json!({
        "properties": {"millis": {"type": "integer", "minimum": 0}},
        "required": ["millis"],
    });
    let define = |name: &str| define(name).input_schema(schema.clone());
    let limited = Arc::clone(load);
    let alone = Arc::clone(load);
    let counted = |load: &Arc<Load>| {
        let load = Arc::clone(load);
        tool_fn(move |args: Wait, _| {
            let load = Arc::clone(&load);
            async move {
                assert_eq!(
                    load.alone.load(Ordering::SeqCst),
                    0,
                    "nothing runs beside the lone one"
                );
                let _running = Running::new(&load.all, usize::MAX);
                wait(args).await
            }
        })
    };
    vec![
        entry(define("succeeds"), counted(load)),
        entry(define("deduped").dedupe(Dedupe::Batch), counted(load)),
        entry(define("asks").approval(Approval::Always), counted(load)),
        entry(
            define("fails"),
            tool_fn(|args: Wait, _| async move {
                wait(args).await;
                Err::<String, _>(ToolError::execution("it failed"))
            }),
        ),
        entry(
            define("panics"),
            tool_fn(|args: Wait, _| async move {
                wait(args).await;
                assert!(std::hint::black_box(false), "it crashed");
                "never"
            }),
        ),
        entry(
            define("hangs").timeout(Duration::from_millis(100)),
            tool_fn(|_: Wait, _| async move {
                std::future::pending::<()>().await;
                "never"
            }),
        ),
        entry(
            define("alone").parallel(false),
            tool_fn(move |args: Wait, _| {
                let load = Arc::clone(&alone);
                async move {
                    assert_eq!(load.all.load(Ordering::SeqCst), 0, "the lone one runs alone");
                    let _running = Running::new(&load.alone, 1);
                    wait(args).await
                }
            }),
        ),
        entry(
            define("limited").max_concurrent(2),
            tool_fn(move |args: Wait, _| {
                let load = Arc::clone(&limited);
                async move {
                    let _running = Running::new(&load.limited, 2);
                    wait(args).await
                }
            }),
        ),
        entry(
            define("nests").max_concurrent(1),
            tool_fn(|args: Wait, cx: CallContext| async move {
                let millis = json!({"millis": args.millis / 2});
                let first = cx.call(ToolCall::new("inner", "limited", millis.clone())).await;
                if args.millis > 4 {
                    cx.call(ToolCall::new("again", "nests", millis)).await.into_result()?;
                }
                first.into_result()
            }),
        ),
    ]
}

fn called(number: usize, plan: Plan, millis: u64) -> ToolCall {
    let arguments = match plan {
        Plan::Invalid => json!({"millis": "soon"}).to_string(),
        Plan::NotJson => "{\"millis\": oops".to_owned(),
        _ => json!({"millis": millis}).to_string(),
    };
    let name = match plan {
        Plan::Succeeds | Plan::Invalid | Plan::NotJson => "succeeds",
        Plan::Fails => "fails",
        Plan::Panics => "panics",
        Plan::Hangs => "hangs",
        Plan::Alone => "alone",
        Plan::Limited => "limited",
        Plan::Deduped => "deduped",
        Plan::Asks => "asks",
        Plan::Nests => "nests",
        Plan::Unknown => "nobody",
    };
    ToolCall::new(format!("call_{number}"), name, arguments)
}

fn expected(plan: Plan) -> Option<ErrorKind> {
    match plan {
        Plan::Succeeds | Plan::Alone | Plan::Limited | Plan::Deduped | Plan::Nests => None,
        Plan::Asks => Some(ErrorKind::RequiresApproval),
        Plan::Fails => Some(ErrorKind::Execution),
        Plan::Panics => Some(ErrorKind::Panic),
        Plan::Hangs => Some(ErrorKind::Timeout),
        Plan::Unknown => Some(ErrorKind::NotFound),
        Plan::Invalid => Some(ErrorKind::InvalidArgs),
        Plan::NotJson => Some(ErrorKind::InvalidJson),
    }
}

fn calls() -> impl Strategy<Value = Vec<(Plan, u64)>> {
    prop::collection::vec((prop::sample::select(&PLANS[..]), 0_u64..40), 0..12)
}

fn paused<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_id_is_answered_once_and_in_order(
        planned in calls(),
        at_once in 0_usize..6,
        cancel_after in prop::option::of(0_u64..200),
        shut_down_after in prop::option::of(0_u64..200),
    ) {
        let load = Arc::new(Load::default());
        let mut config = ExecutorConfig::default();
        config.breaker_timeouts = 0;
        let executor = Executor::builder(registry(tools(&load)))
            .config(config)
            .suspensions(Arc::new(MemorySuspensions::new()))
            .build();
        let turn = executor.turn(TurnOptions::default().max_concurrency(at_once));
        let batch: Vec<_> = planned
            .iter()
            .enumerate()
            .map(|(number, &(plan, millis))| called(number, plan, millis))
            .collect();
        let ids: Vec<_> = batch.iter().map(|call| call.id().clone()).collect();
        let answers = paused(async {
            let cancel = async {
                match cancel_after {
                    None => std::future::pending().await,
                    Some(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
                }
                turn.cancel();
                std::future::pending::<()>().await;
            };
            let shut_down = async {
                match shut_down_after {
                    None => std::future::pending().await,
                    Some(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
                }
                executor.shutdown(Duration::from_millis(20)).await;
                std::future::pending::<()>().await;
            };
            tokio::select! {
                answers = turn.call_batch(batch) => answers,
                () = cancel => unreachable!("it never ends"),
                () = shut_down => unreachable!("it never ends"),
            }
        });

        let answered: Vec<_> = answers.iter().map(|answer| answer.call_id().clone()).collect();
        prop_assert_eq!(answered, ids);
        for (answer, (plan, _)) in answers.iter().zip(&planned) {
            let kind = answer.error_kind();
            let cancelled = kind == Some(ErrorKind::Cancelled)
                && (cancel_after.is_some() || shut_down_after.is_some());
            let refused = kind == Some(ErrorKind::Unavailable) && shut_down_after.is_some();
            let fits = cancelled || refused || kind == expected(*plan);
            prop_assert!(fits, "{plan:?}: {}", answer.text());
        }
        let running = [&load.all, &load.limited, &load.alone];
        prop_assert!(running.iter().all(|count| count.load(Ordering::SeqCst) == 0));
        let in_flight: u64 =
            executor.statistics().snapshot().iter().map(|tool| tool.in_flight).sum();
        prop_assert_eq!(in_flight, 0);
    }

    #[test]
    fn a_dropped_batch_leaves_nothing_running(planned in calls(), after in 0_u64..60) {
        let load = Arc::new(Load::default());
        let executor = Executor::new(registry(tools(&load)), ExecutorConfig::default());
        let turn = executor.turn(TurnOptions::default());
        let batch = planned
            .iter()
            .enumerate()
            .map(|(number, &(plan, millis))| called(number, plan, millis))
            .collect();
        paused(async {
            let limit = Duration::from_millis(after);
            let _: Result<Vec<_>, _> = tokio::time::timeout(limit, turn.call_batch(batch)).await;
        });
        let running = [&load.all, &load.limited, &load.alone];
        prop_assert!(running.iter().all(|count| count.load(Ordering::SeqCst) == 0));
        let statistics = executor.statistics().snapshot();
        prop_assert!(statistics.iter().all(|tool| tool.in_flight == 0));
    }
}

#[tokio::test]
async fn the_same_call_twice_in_a_batch_runs_once_and_the_second_says_so() {
    let load = Arc::new(Load::default());
    let executor = Executor::new(registry(tools(&load)), ExecutorConfig::default());
    let turn = executor.turn(TurnOptions::default());
    let args: Value = json!({"millis": 5});
    let same = |id: &str| ToolCall::new(id, "deduped", args.clone());
    let answers = turn.call_batch(vec![same("a"), same("b")]).await;
    assert_eq!((answers[0].skipped(), answers[1].skipped()), (false, true));
}
