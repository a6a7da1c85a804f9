//! Instances per call, middleware, retries and the shutdown of an executor, as a host sees them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use toolcrib_core::{
    Executor, ExecutorConfig, Registry, RegistryBuilder, Turn, TurnOptions, before,
};
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, ErrorKind, Layer, RetryPolicy, Source, Tool, ToolCall,
    ToolDefinition, ToolDefinitionBuilder, ToolEntry, ToolError, ToolOutcome, tool_factory,
    tool_fn,
};

type Work = fn(CallContext) -> BoxFuture<'static, Result<ToolOutcome, ToolError>>;

/// An instance for one call, which counts its closing.
struct Connection {
    work: Work,
    closed: Arc<AtomicUsize>,
}

impl Tool for Connection {
    fn call<'a>(
        &'a self,
        _: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        (self.work)(cx.clone())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.closed.fetch_add(1, Ordering::SeqCst);
        })
    }
}

fn definition(name: &str) -> ToolDefinitionBuilder {
    ToolDefinition::builder(name).description("A test.").timeout(Duration::from_millis(50))
}

fn executor(entry: ToolEntry) -> Executor {
    let mut builder = RegistryBuilder::new();
    let _ = builder.register(entry);
    Executor::new(Registry::new(builder.build()), ExecutorConfig::default())
}

fn per_use(blocking: bool, work: Work) -> (Executor, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (opened, closed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counter, at_close) = (Arc::clone(&opened), Arc::clone(&closed));
    let factory = tool_factory(move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        let closed = Arc::clone(&at_close);
        async move { Ok(Connection { work, closed }) }
    });
    let definition = definition("a").blocking(blocking).build().unwrap();
    let entry = ToolEntry::per_use(definition, Arc::new(factory), Source::new(Layer::Host, "test"));
    (executor(entry), opened, closed)
}

fn call(id: &str) -> ToolCall {
    ToolCall::new(id, "a", "{}")
}

async fn becomes(count: &AtomicUsize, expected: usize) {
    let from = Instant::now();
    while count.load(Ordering::SeqCst) != expected {
        assert!(from.elapsed() < Duration::from_secs(10), "{count:?}, not {expected}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn an_instance_of_a_call_is_closed_however_the_call_ends() {
    let cases: [(bool, Work, Option<ErrorKind>); 5] = [
        (false, |_| Box::pin(async { Ok("done".into()) }), None),
        (true, |_| Box::pin(async { Ok("done".into()) }), None),
        (
            false,
            |_| Box::pin(async { Err(ToolError::execution("no")) }),
            Some(ErrorKind::Execution),
        ),
        (false, |_| Box::pin(async { panic!("no") }), Some(ErrorKind::Panic)),
        (false, |_| Box::pin(std::future::pending()), Some(ErrorKind::Timeout)),
    ];
    for (blocking, work, kind) in cases {
        let (executor, opened, closed) = per_use(blocking, work);
        let turn = executor.turn(TurnOptions::default());
        for n in 1..=3 {
            let result = turn.call(call(&n.to_string())).await;
            assert_eq!(result.error_kind(), kind);
            becomes(&closed, n).await;
            assert_eq!(opened.load(Ordering::SeqCst), n);
        }
    }
}

#[tokio::test]
async fn a_thread_that_outlives_its_call_keeps_its_instance() {
    let (executor, _, closed) = per_use(true, |cx| {
        Box::pin(async move {
            while !cx.is_cancelled() {
                std::thread::sleep(Duration::from_millis(5));
            }
            std::thread::sleep(Duration::from_millis(200));
            Ok("late".into())
        })
    });
    let result = executor.turn(TurnOptions::default()).call(call("1")).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Timeout));
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(closed.load(Ordering::SeqCst), 0, "the thread still uses it");
    becomes(&closed, 1).await;
}

#[tokio::test]
async fn a_shutdown_answers_every_call_once_and_closes_every_instance() {
    let work: Work = |cx| {
        let takes =
            Duration::from_millis(if cx.call_id().as_str() == "slow" { 60_000 } else { 20 });
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            Ok("done".into())
        })
    };
    let closed = Arc::new(AtomicUsize::new(0));
    let connection = Connection { work, closed: Arc::clone(&closed) };
    let definition = ToolDefinition::builder("a").description("A test.").build().unwrap();
    let executor = executor(ToolEntry::new(
        definition,
        Arc::new(connection),
        Source::new(Layer::Host, "test"),
    ));
    let turn = executor.turn(TurnOptions::default());
    let running = {
        let turn = turn.clone();
        tokio::spawn(async move { turn.call_batch(vec![call("slow"), call("quick")]).await })
    };
    tokio::task::yield_now().await;
    let report = executor.shutdown(Duration::from_millis(100)).await;
    assert_eq!((report.cancelled, report.abandoned), (1, 0));
    assert_eq!(closed.load(Ordering::SeqCst), 1, "though a turn still holds it");
    let kinds: Vec<_> =
        running.await.unwrap().iter().map(toolcrib_tool::ToolResult::error_kind).collect();
    assert_eq!(kinds, [Some(ErrorKind::Cancelled), None]);
    let late = turn.call(call("late")).await;
    assert_eq!(late.error_kind(), Some(ErrorKind::Unavailable));
}

#[tokio::test]
async fn whenever_a_shutdown_comes_every_id_has_one_answer() {
    for moment in 0..24_u64 {
        let work: Work = |cx| {
            let takes = cx.call_id().as_str().parse::<u64>().unwrap_or_default() * 3;
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(takes)).await;
                Ok("done".into())
            })
        };
        let (executor, opened, closed) = per_use(moment % 2 == 0, work);
        let turn = executor.turn(TurnOptions::default().max_concurrency(3));
        let ids: Vec<String> = (0..8).map(|n| n.to_string()).collect();
        let calls = ids.iter().map(|id| call(id)).collect();
        let batch = tokio::spawn(async move { turn.call_batch(calls).await });
        tokio::time::sleep(Duration::from_millis(moment)).await;
        executor.shutdown(Duration::from_millis(moment % 7)).await;
        let answers = batch.await.unwrap();
        let answered: Vec<_> = answers.iter().map(|r| r.call_id().as_str()).collect();
        assert_eq!(answered, ids);
        for answer in &answers {
            let ending = answer.error_kind();
            let right =
                matches!(ending, None | Some(ErrorKind::Cancelled | ErrorKind::Unavailable));
            assert!(right, "{ending:?}");
        }
        becomes(&closed, opened.load(Ordering::SeqCst)).await;
    }
}

fn counting(failures: usize) -> (Turn, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&runs);
    let body = tool_fn(move |_: serde_json::Value, _| {
        let run = counter.fetch_add(1, Ordering::SeqCst);
        async move {
            if run < failures {
                Err(ToolError::execution("busy").with_retryable(true))
            } else {
                Ok("done")
            }
        }
    });
    let retry = RetryPolicy::new(2).with_backoff(Duration::from_millis(1));
    let definition = definition("a").idempotent(true).retry(retry).build().unwrap();
    let entry = ToolEntry::new(definition, Arc::new(body), Source::new(Layer::Host, "test"));
    (executor(entry).turn(TurnOptions::default()), runs)
}

#[tokio::test]
async fn an_idempotent_tool_is_tried_again_as_often_as_it_says() {
    let (turn, runs) = counting(2);
    let result = turn.call(call("1")).await;
    assert_eq!(result.output().unwrap().meta()["attempts"], 3);
    assert_eq!(runs.load(Ordering::SeqCst), 3);

    let (turn, runs) = counting(9);
    let result = turn.call(call("1")).await;
    assert!(result.text().contains("It was tried 3 times."));
    assert_eq!(runs.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn middleware_sees_nested_calls_and_every_call_of_a_batch() {
    let body = tool_fn(|_: serde_json::Value, cx: CallContext| async move {
        if cx.call_id().as_str() == "outer" {
            return cx.call(ToolCall::new("inner", "a", "{}")).await.text().into_owned();
        }
        "done".to_owned()
    });
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&seen);
    let entry = ToolEntry::new(
        definition("a").build().unwrap(),
        Arc::new(body),
        Source::new(Layer::Host, "test"),
    );
    let mut builder = RegistryBuilder::new();
    let _ = builder.register(entry);
    let executor = Executor::builder(Registry::new(builder.build()))
        .middleware(before(move |_, call| {
            counter.fetch_add(1, Ordering::SeqCst);
            if call.id().as_str() == "refused" {
                return ControlFlow::Break(Err(ToolError::denied("no")));
            }
            ControlFlow::Continue(())
        }))
        .build();
    let turn = executor.turn(TurnOptions::default());
    let results = turn.call_batch(vec![call("outer"), call("refused"), call("plain")]).await;
    let ids: Vec<_> = results.iter().map(|r| r.call_id().as_str()).collect();
    assert_eq!(ids, ["outer", "refused", "plain"]);
    assert_eq!(results[0].text(), "done");
    assert_eq!(results[1].error_kind(), Some(ErrorKind::Denied));
    assert_eq!(seen.load(Ordering::SeqCst), 4);
}
