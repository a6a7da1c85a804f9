//! Definitions follow what they describe, and a failure leaves what serves.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, ErrorKind, SharedTool, Tool, ToolCall, ToolDefinition,
    ToolError, ToolOutcome,
};

use super::{counted, definition, entry, quiet, snapshot, until};
use crate::{
    Executor, ExecutorConfig, Refreshed, Registry, RegistryBuilder, RegistrySnapshot, TurnOptions,
};

type Answer = Result<Option<ToolDefinition>, ToolError>;
type Ask = Box<dyn Fn(&ToolDefinition) -> BoxFuture<'static, Answer> + Send + Sync>;

/// A tool that answers `refresh` as the test says.
struct Fresh {
    asked: AtomicUsize,
    ask: Ask,
}

impl Tool for Fresh {
    fn call<'a>(
        &'a self,
        _: Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async { Ok("done".into()) })
    }

    fn refresh<'a>(&'a self, current: &'a ToolDefinition) -> BoxFuture<'a, Answer> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        (self.ask)(current)
    }
}

fn fresh(
    ask: impl Fn(&ToolDefinition) -> BoxFuture<'static, Answer> + Send + Sync + 'static,
) -> Arc<Fresh> {
    Arc::new(Fresh { asked: AtomicUsize::new(0), ask: Box::new(ask) })
}

fn described(text: &str) -> ToolDefinition {
    ToolDefinition::builder("a").description(text).build().unwrap()
}

fn answers(answer: Answer) -> Arc<Fresh> {
    fresh(move |_| Box::pin(std::future::ready(answer.clone())))
}

fn executor(tool: &Arc<Fresh>) -> Executor {
    let tool = SharedTool::new(Arc::clone(tool) as _);
    Executor::new(Registry::new(snapshot([("a", &tool)])), ExecutorConfig::default())
}

fn description(executor: &Executor) -> String {
    executor.registry().snapshot().get("a").unwrap().definition.description().to_owned()
}

async fn refreshed(executor: &Executor) -> Refreshed {
    executor.refresher().refresh(["a"]).await.of("a").unwrap().clone()
}

#[tokio::test]
async fn a_changed_definition_is_published_and_open_turns_keep_theirs() {
    let tool = answers(Ok(Some(described("New."))));
    let executor = executor(&tool);
    let old = executor.turn(TurnOptions::default());
    assert!(matches!(refreshed(&executor).await, Refreshed::Changed));
    assert_eq!(description(&executor), "New.");
    assert_eq!(old.definitions()[0].description(), "A test.");
    assert!(matches!(refreshed(&executor).await, Refreshed::Unchanged));
    let new = executor.turn(TurnOptions::default());
    assert!(new.call(ToolCall::new("1", "a", "{}")).await.is_success());
}

#[tokio::test]
async fn a_refresh_that_fails_keeps_the_last_definition() {
    let broken_schema = ToolDefinition::builder("a")
        .description("Broken.")
        .input_schema(json!({"properties": {"n": {"type": "no such type"}}}))
        .build()
        .unwrap();
    let renamed = definition("b");
    let cases = [
        (answers(Err(ToolError::execution("no database"))), ErrorKind::Execution),
        (answers(Ok(Some(renamed))), ErrorKind::Internal),
        (answers(Ok(Some(broken_schema))), ErrorKind::Internal),
        (fresh(|_| Box::pin(std::future::pending())), ErrorKind::Timeout),
        (fresh(|_| panic!("no")), ErrorKind::Panic),
    ];
    for (tool, kind) in cases {
        let executor = executor(&tool);
        let refresher = executor.refresher().with_timeout(Duration::from_millis(30));
        let report = refresher.refresh(["a"]).await;
        let Some(Refreshed::Kept(error)) = report.of("a") else { panic!("{kind}: {report:?}") };
        assert_eq!(error.kind(), kind);
        assert_eq!(description(&executor), "A test.");
    }
}

#[tokio::test]
async fn who_cannot_be_asked_is_not() {
    let tool = answers(Ok(None));
    let executor = executor(&tool);
    let refresher = executor.refresher();
    let report = refresher.refresh(["a", "unknown"]).await;
    let names: Vec<_> = report.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "unknown"]);
    assert!(matches!(report.of("unknown"), Some(Refreshed::NotAsked)));
    drop(executor);
    assert!(matches!(refresher.refresh(["a"]).await.of("a"), Some(Refreshed::NotAsked)));
}

#[tokio::test]
async fn changes_of_the_registry_meanwhile_are_not_lost() {
    // While the tool answers, the host adds another one, and then replaces the tool's entry.
    let executor_cell: Arc<Mutex<Option<Executor>>> = Arc::default();
    let cell = Arc::clone(&executor_cell);
    let asked = AtomicUsize::new(0);
    let (other, _) = counted(quiet);
    let tool = fresh(move |current| {
        let executor = cell.lock().unwrap().clone().unwrap();
        let other = other.clone();
        let round = asked.fetch_add(1, Ordering::SeqCst);
        let fresh = described(&format!("{} Refreshed.", current.description()));
        Box::pin(async move {
            if round == 0 {
                executor.registry().update(|current| with(current, &other, "Replaced."));
            }
            Ok(Some(fresh))
        })
    });
    let executor = executor(&tool);
    *executor_cell.lock().unwrap() = Some(executor.clone());
    assert!(matches!(refreshed(&executor).await, Refreshed::Changed));
    assert_eq!(description(&executor), "Replaced. Refreshed.");
    assert!(executor.registry().snapshot().get("other").is_some());
    executor_cell.lock().unwrap().take();
}

fn with(current: &RegistrySnapshot, other: &SharedTool, text: &str) -> RegistrySnapshot {
    let mut builder = RegistryBuilder::new();
    for known in current.entries() {
        let mut known = known.clone();
        known.definition = Arc::new(described(text));
        let _ = builder.register(known);
    }
    let _ = builder.register(entry("other", other));
    builder.build()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_refreshes_and_registrations_loses_nothing() {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let tool = fresh(move |_| {
        let text = format!("Version {}.", counter.fetch_add(1, Ordering::SeqCst));
        Box::pin(async move {
            tokio::task::yield_now().await;
            Ok(Some(described(&text)))
        })
    });
    let executor = executor(&tool);
    let names: Vec<String> = (0..40).map(|n| format!("tool_{n}")).collect();
    let adding = {
        let (executor, names) = (executor.clone(), names.clone());
        tokio::task::spawn_blocking(move || {
            for name in names {
                let (tool, _) = counted(quiet);
                executor.registry().update(|current| {
                    let mut builder = RegistryBuilder::new();
                    for known in current.entries() {
                        let _ = builder.register(known.clone());
                    }
                    let _ = builder.register(entry(&name, &tool));
                    builder.build()
                });
            }
        })
    };
    let mut changed = 0;
    while !adding.is_finished() {
        changed += usize::from(matches!(refreshed(&executor).await, Refreshed::Changed));
    }
    adding.await.unwrap();
    changed += usize::from(matches!(refreshed(&executor).await, Refreshed::Changed));
    assert!(changed > 0);
    let snapshot = executor.registry().snapshot();
    assert!(names.iter().all(|name| snapshot.get(name).is_some()));
    assert_eq!(description(&executor), format!("Version {}.", count.load(Ordering::SeqCst) - 1));
}

#[tokio::test(start_paused = true)]
async fn periods_are_served_until_the_executor_is_gone() {
    let tool = fresh(|current| {
        let longer = format!("{} Again.", current.description());
        let every = Duration::from_secs(60);
        let definition =
            ToolDefinition::builder("a").description(longer).refresh_every(every).build().unwrap();
        Box::pin(std::future::ready(Ok(Some(definition))))
    });
    let executor = executor(&tool);
    let serving = tokio::spawn(executor.refresher().run());
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(tool.asked.load(Ordering::SeqCst), 0, "it states no period");

    // From here on it does.
    refreshed(&executor).await;
    assert_eq!(tool.asked.load(Ordering::SeqCst), 1);
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(tool.asked.load(Ordering::SeqCst), 4);
    assert_eq!(description(&executor), "A test. Again. Again. Again. Again.");
    drop(executor);
    until(async || serving.is_finished()).await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_tool_does_not_hold_up_the_periods_of_others() {
    let periodic = |name: &str| {
        let every = Duration::from_secs(1);
        ToolDefinition::builder(name).description("A test.").refresh_every(every).build().unwrap()
    };
    let slow = fresh(|_| Box::pin(std::future::pending()));
    let quick = answers(Ok(None));
    let mut builder = RegistryBuilder::new();
    for (name, tool) in [("slow", &slow), ("quick", &quick)] {
        let mut entry = entry(name, &SharedTool::new(Arc::clone(tool) as _));
        entry.definition = Arc::new(periodic(name));
        let _ = builder.register(entry);
    }
    let executor = Executor::new(Registry::new(builder.build()), ExecutorConfig::default());
    let serving = tokio::spawn(executor.refresher().run());
    tokio::time::sleep(Duration::from_millis(9500)).await;
    assert_eq!(slow.asked.load(Ordering::SeqCst), 1);
    assert!(quick.asked.load(Ordering::SeqCst) >= 8);
    serving.abort();
}
