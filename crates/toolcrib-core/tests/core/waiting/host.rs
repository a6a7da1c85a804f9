//! A host whose tools make nested calls that wait, with helpers for deciding on them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_core::approval::Decision;
use toolcrib_core::clock::{Clock, Timestamp};
use toolcrib_core::meta::meta_entries;
use toolcrib_core::suspension::{MemorySuspensions, Resolution, Suspension, SuspensionStore as _};
use toolcrib_core::{Answer, Executor, ExecutorBuilder, Turn, TurnOptions};
use toolcrib_tool::{
    Approval, CachePolicy, CallContext, ContextValues, InputRequest, ToolCall,
    ToolDefinitionBuilder, ToolEntry, ToolOutcome, ToolOutput, ToolResult, tool_fn,
};

use crate::harness::{define, entry, registry, source};

/// Counters of events.
#[derive(Default)]
pub(crate) struct Counts {
    /// `note` ran.
    pub(crate) noted: AtomicUsize,
    /// `remove` ran.
    pub(crate) removed: AtomicUsize,
    /// Parents that began.
    pub(crate) begun: AtomicUsize,
    /// Parents that were ended or have ended.
    pub(crate) over: AtomicUsize,
    /// Parents that are working outside their nested calls, and the maximum of them.
    pub(crate) working: AtomicUsize,
    pub(crate) most_working: AtomicUsize,
}

impl Counts {
    pub(crate) fn of(count: &AtomicUsize) -> usize {
        count.load(Ordering::SeqCst)
    }
}

/// Counts the end of a parent, however it ends.
pub(crate) struct Over(Arc<Counts>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.over.fetch_add(1, Ordering::SeqCst);
    }
}

pub(crate) fn remove_call(path: &str) -> ToolCall {
    ToolCall::new(format!("n-{path}"), "remove", json!({"path": path, "password": "hunter2"}))
}

/// Calls `note`, then `remove` for `build`, and reports both results.
pub(crate) async fn cleans(
    counts: Arc<Counts>,
    cx: CallContext,
) -> Result<String, toolcrib_tool::ToolError> {
    counts.begun.fetch_add(1, Ordering::SeqCst);
    let _over = Over(Arc::clone(&counts));
    let noted = cx.call(ToolCall::new("n-note", "note", "{}")).await.text().into_owned();
    let removed = cx.call(remove_call("build")).await;
    Ok(format!("{noted}; {}", removed.text()))
}

pub(crate) fn numbers() -> Value {
    json!({"additionalProperties": {"type": "integer"}})
}

/// The clock of the runtime, which tests can pause.
pub(crate) struct RuntimeClock(tokio::time::Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(0).after(self.0.elapsed())
    }
}

pub(crate) fn host_tools(counts: &Arc<Counts>) -> Vec<ToolEntry> {
    let parent = |definition: ToolDefinitionBuilder| {
        let counts = Arc::clone(counts);
        entry(definition, tool_fn(move |_: Value, cx| cleans(Arc::clone(&counts), cx)))
    };
    let schema = json!({"properties": {
        "path": {"type": "string"},
        "password": {"type": "string", "x-sensitive": true},
    }, "required": ["path"]});
    let (for_remove, for_note) = (Arc::clone(counts), Arc::clone(counts));
    let remove = tool_fn(move |arguments: Value, _| {
        for_remove.removed.fetch_add(1, Ordering::SeqCst);
        async move { format!("removed {}", arguments["path"].as_str().unwrap_or_default()) }
    });
    let note = tool_fn(move |_: Value, _| {
        let count = for_note.noted.fetch_add(1, Ordering::SeqCst) + 1;
        async move { format!("noted {count}") }
    });
    let greet = tool_fn(|_: Value, cx: CallContext| async move {
        match cx.answer().and_then(|answer| answer["name"].as_str()) {
            Some(name) => ToolOutcome::Done(ToolOutput::from(format!("Hello, {name}!"))),
            None => ToolOutcome::needs_input(InputRequest::new(
                "Who is there?",
                json!({"properties": {"name": {"type": "string"}}}),
            )),
        }
    });
    let visits = tool_fn(|_: Value, cx: CallContext| async move {
        let name = cx.call(ToolCall::new("g", "greet", "{}")).await.text().into_owned();
        let file = cx.call(ToolCall::new("p", "pick", "{}")).await.text().into_owned();
        format!("{name} {file}")
    });
    let counted = Arc::clone(counts);
    let works = tool_fn(move |arguments: Value, cx: CallContext| {
        let counts = Arc::clone(&counted);
        async move {
            let work = async |seconds: &Value| {
                let now = counts.working.fetch_add(1, Ordering::SeqCst) + 1;
                counts.most_working.fetch_max(now, Ordering::SeqCst);
                let seconds = seconds.as_u64().unwrap_or_default();
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                counts.working.fetch_sub(1, Ordering::SeqCst);
            };
            work(&arguments["before"]).await;
            let removed = cx.call(remove_call("build")).await.text().into_owned();
            work(&arguments["after"]).await;
            removed
        }
    });
    let both = tool_fn(|_: Value, cx: CallContext| async move {
        let calls = [remove_call("one"), remove_call("two")].map(|call| cx.call(call));
        let results = futures_util::future::join_all(calls).await;
        results.iter().map(|result| result.text().into_owned()).collect::<Vec<_>>().join(", ")
    });
    let gives_up = tool_fn(|_: Value, cx: CallContext| async move {
        let limit = Duration::from_secs(5);
        match tokio::time::timeout(limit, cx.call(remove_call("build"))).await {
            Ok(result) => result.text().into_owned(),
            Err(_) => "gave up".to_owned(),
        }
    });
    let calls = |tool: &'static str| {
        tool_fn(move |_: Value, cx: CallContext| async move {
            cx.call(ToolCall::new("d", tool, "{}")).await.into_result()
        })
    };
    let through_meta = tool_fn(|_: Value, cx: CallContext| async move {
        let arguments = json!({"name": "remove", "arguments": {"path": "deep"}});
        cx.call(ToolCall::new("t", "tool_call", arguments)).await.into_result()
    });
    let mut tools = vec![
        entry(define("remove").approval(Approval::Always).input_schema(schema), remove),
        entry(define("note"), note),
        entry(define("greet"), greet),
        entry(define("visit"), visits),
        ToolEntry::client(define("pick").build().expect("a definition"), source()),
        parent(define("clean").input_schema(numbers())),
        parent(define("clean_again").idempotent(true)),
        parent(
            define("clean_kept")
                .read_only(true)
                .idempotent(true)
                .cache(CachePolicy::new().with_shared(true)),
        ),
        entry(
            define("work")
                .input_schema(numbers())
                .timeout(Duration::from_secs(10))
                .max_concurrent(1),
            works,
        ),
        entry(define("alone").parallel(false), calls("clean")),
        entry(define("outer"), calls("middle")),
        entry(define("middle"), through_meta),
        entry(define("wraps_alone"), calls("alone")),
        entry(define("both"), both),
        entry(define("gives_up"), gives_up),
    ];
    tools.extend(meta_entries());
    tools
}

pub(crate) struct Host {
    pub(crate) store: Arc<MemorySuspensions>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) executor: Executor,
}

impl Host {
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder)
    }

    pub(crate) fn with(options: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder) -> Self {
        let (store, counts) = (Arc::new(MemorySuspensions::new()), Arc::default());
        Self::over(store, counts, options)
    }

    pub(crate) fn over(
        store: Arc<MemorySuspensions>,
        counts: Arc<Counts>,
        options: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder,
    ) -> Self {
        let builder = Executor::builder(registry(host_tools(&counts)))
            .suspensions(store.clone())
            .clock(Arc::new(RuntimeClock(tokio::time::Instant::now())));
        Self { store, counts, executor: options(builder).build() }
    }

    /// The same tools over the same store after the process has ended.
    pub(crate) fn restarted(self) -> Self {
        let Self { store, counts, executor } = self;
        drop(executor);
        Self::over(store, counts, |builder| builder)
    }

    pub(crate) fn turn(&self) -> Turn {
        self.turn_with(TurnOptions::default())
    }

    pub(crate) fn turn_with(&self, options: TurnOptions) -> Turn {
        let values = ContextValues::new().with("user", "ada");
        self.executor.turn(options.values(values).may_approve(true))
    }

    pub(crate) async fn kept(&self) -> Vec<Suspension> {
        self.store.all().await.expect("it is in memory")
    }

    /// Asserts that no waiting call left anything behind.
    pub(crate) async fn settles(&self) {
        for _ in 0..100 {
            if self.kept().await.is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("still kept: {:?}", self.kept().await);
    }
}

pub(crate) fn call(tool: &str) -> ToolCall {
    ToolCall::new("call_1", tool, "{}")
}

pub(crate) async fn suspended(turn: &Turn, call: ToolCall) -> Suspension {
    waits(turn.start(call).await)
}

pub(crate) fn waits(answer: Answer) -> Suspension {
    match answer {
        Answer::Suspended(suspension) => *suspension,
        Answer::Done(result) => panic!("it does not wait: {}", result.text()),
    }
}

pub(crate) fn done(answer: Answer) -> ToolResult {
    match answer {
        Answer::Done(result) => result,
        Answer::Suspended(suspension) => panic!("it still waits: {suspension:?}"),
    }
}

pub(crate) async fn resolve(
    turn: &Turn,
    waiting: &Suspension,
    resolution: impl Into<Resolution>,
) -> Answer {
    turn.resolve(waiting.id(), resolution.into()).await.expect("it waits")
}

pub(crate) async fn approve(turn: &Turn, waiting: &Suspension) -> Answer {
    resolve(turn, waiting, Decision::approve()).await
}

pub(crate) async fn outcome(turn: &Turn, waiting: &Suspension) -> ToolResult {
    let settled = turn.wait_for_outcome(waiting.id(), Duration::from_secs(60)).await;
    let settled = settled.expect("it is in memory").expect("it has an outcome");
    settled.result().expect("it is done")
}
