//! Nested calls: they wait together with their caller, or fail before anything is stored, and run
//! alone if their tool requires it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_core::approval::{ApprovalRequest, Decision};
use toolcrib_core::meta::meta_entries;
use toolcrib_core::run::{Run, RunState};
use toolcrib_core::suspension::{
    MemorySuspensions, Resolution, Submission, Suspension, SuspensionStore, Waiting,
};
use toolcrib_core::{Answer, Executor, Turn, TurnOptions};
use toolcrib_tool::{
    Approval, CallContext, ContextValues, ErrorKind, InputRequest, ToolCall, ToolEntry,
    ToolOutcome, ToolOutput, ToolResult, tool_fn,
};

use crate::harness::{define, entry, registry, source, turn};

struct Host {
    store: Arc<MemorySuspensions>,
    removed: Arc<AtomicUsize>,
    executor: Executor,
}

impl Host {
    fn new() -> Self {
        let store = Arc::new(MemorySuspensions::new());
        let removed: Arc<AtomicUsize> = Arc::default();
        let remove = {
            let removed = Arc::clone(&removed);
            let schema = json!({"properties": {"path": {"type": "string"}}, "required": ["path"]});
            let body = tool_fn(move |arguments: Value, _| {
                removed.fetch_add(1, Ordering::SeqCst);
                async move { format!("removed {}", arguments["path"]) }
            });
            entry(define("remove").approval(Approval::Always).input_schema(schema), body)
        };
        let greet = tool_fn(|_: Value, cx: CallContext| async move {
            match cx.answer().and_then(|answer| answer["name"].as_str()) {
                Some(name) => ToolOutcome::Done(ToolOutput::from(format!("Hello, {name}!"))),
                None => ToolOutcome::needs_input(InputRequest::new(
                    "Who is there?",
                    json!({"properties": {"name": {"type": "string"}}}),
                )),
            }
        });
        let pick = ToolEntry::client(define("pick").build().expect("a definition"), source());
        let entries = [remove, entry(define("greet"), greet), pick];
        let executor = Executor::builder(registry(entries.into_iter().chain(meta_entries())))
            .suspensions(Arc::clone(&store) as Arc<dyn SuspensionStore>)
            .build();
        Self { store, removed, executor }
    }

    fn turn(&self) -> Turn {
        let values = ContextValues::new().with("user", "ada");
        self.executor.turn(TurnOptions::default().values(values).may_approve(true))
    }

    async fn kept(&self) -> Vec<Suspension> {
        self.store.all().await.expect("it is in memory")
    }
}

fn handed_on(tool: &str, arguments: &Value) -> ToolCall {
    ToolCall::new("call_1", "tool_call", json!({"name": tool, "arguments": arguments}))
}

async fn suspended(turn: &Turn, call: ToolCall) -> Suspension {
    match turn.start(call).await {
        Answer::Suspended(suspension) => *suspension,
        Answer::Done(result) => panic!("it does not wait: {}", result.text()),
    }
}

async fn resolved(turn: &Turn, waiting: &Suspension, resolution: Resolution) -> String {
    match turn.resolve(waiting.id(), resolution).await.expect("it waits") {
        Answer::Done(result) => {
            assert_eq!((result.call_id().as_str(), result.tool()), ("call_1", "tool_call"));
            result.text().into_owned()
        }
        Answer::Suspended(_) => panic!("it waits again"),
    }
}

#[tokio::test]
async fn a_call_that_is_handed_on_waits_and_is_answered_with_the_answer_of_the_other() {
    let host = Host::new();
    let turn = host.turn();
    let call = || handed_on("remove", &json!({"path": "build"}));
    let waiting = suspended(&turn, call()).await;
    // The question has the caller's own id and is asked once; it names the tool that would run.
    assert_eq!((waiting.call_id(), waiting.tool()), ("call_1", "remove"));
    assert_eq!(waiting.made_by(), Some("tool_call"));
    assert_eq!(waiting.arguments(), r#"{"path":"build"}"#);
    assert!(matches!(waiting.waiting(), Waiting::Approval { .. }));
    let kept = host.kept().await;
    assert_eq!(kept.iter().map(Suspension::id).collect::<Vec<_>>(), [waiting.id()]);
    assert_eq!(host.removed.load(Ordering::SeqCst), 0);

    let text = resolved(&turn, &waiting, Decision::approve().into()).await;
    assert_eq!(text, r#"removed "build""#);
    assert!(host.kept().await.is_empty());
    assert_eq!(host.removed.load(Ordering::SeqCst), 1);

    let waiting = suspended(&turn, call()).await;
    let changed = Decision::approve_changed(r#"{"path":"dist"}"#);
    assert_eq!(resolved(&turn, &waiting, changed.into()).await, r#"removed "dist""#);
    let waiting = suspended(&turn, call()).await;
    let denied = resolved(&turn, &waiting, Decision::deny("not today").into()).await;
    assert!(denied.contains("not today"), "{denied}");
    assert_eq!(host.removed.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn what_is_written_down_of_it_is_all_that_another_process_needs() {
    let host = Host::new();
    let waiting = suspended(&host.turn(), handed_on("remove", &json!({"path": "build"}))).await;
    let text = serde_json::to_string(&waiting).expect("JSON");
    let read: Suspension = serde_json::from_str(&text).expect("what was written is read");
    assert_eq!(read, waiting);
    let other = Host::new();
    other.store.put(&read).await.expect("there is room");
    let text = resolved(&other.turn(), &read, Decision::approve().into()).await;
    assert_eq!(text, r#"removed "build""#);
}

#[tokio::test]
async fn questions_and_client_tools_behind_a_call_that_is_handed_on_wait_too() {
    let host = Host::new();
    let turn = host.turn();
    let question = suspended(&turn, handed_on("greet", &json!({}))).await;
    let answer = Resolution::Answer(json!({"name": "Ada"}));
    assert_eq!(resolved(&turn, &question, answer).await, "Hello, Ada!");
    let run = Run::start(&turn, vec![handed_on("pick", &json!({}))]).await;
    let mut run = run.expect("there is randomness");
    assert_eq!(run.state(), RunState::RequiresAction);
    run.submit(&turn, vec![Submission::new("call_1", "a.txt")]).await.expect("it waits for that");
    let results = run.results().expect("all are answered");
    assert_eq!((results[0].text().as_ref(), results[0].tool()), ("a.txt", "tool_call"));
}

#[tokio::test]
async fn whoever_approves_from_elsewhere_decides_on_the_tool_that_runs() {
    let host = Host::new();
    let waiting = suspended(&host.turn(), handed_on("remove", &json!({"path": "build"}))).await;
    let approvals = host.executor.approvals(TurnOptions::default());
    let [request] = &approvals.list().await.expect("it is in memory")[..] else {
        panic!("one call waits")
    };
    let ApprovalRequest { tool, shown, .. } = request;
    assert_eq!((tool.as_str(), &shown.arguments), ("remove", &json!({"path": "build"})));
    approvals.decide(waiting.id(), Decision::approve()).await.expect("it holds");
    let turn = host.turn();
    let settled = turn.wait_for_outcome(waiting.id(), Duration::from_secs(5)).await;
    let settled = settled.expect("it is in memory").expect("it was decided on");
    let result = settled.result().expect("it is done");
    assert_eq!((result.text().as_ref(), result.tool()), (r#"removed "build""#, "tool_call"));
}

#[tokio::test]
async fn a_tool_that_changes_while_its_call_waits_is_not_gone_on_with() {
    let host = Host::new();
    let waiting = suspended(&host.turn(), handed_on("remove", &json!({"path": "build"}))).await;
    let mut next = toolcrib_core::RegistryBuilder::new();
    let body = tool_fn(|_: Value, _| async { "something else" });
    let _ = next.register(entry(define("remove").approval(Approval::Always), body));
    for meta in meta_entries() {
        let _ = next.register(meta);
    }
    host.executor.registry().publish(next.build());
    let text = resolved(&host.turn(), &waiting, Decision::approve().into()).await;
    assert!(text.contains("changed since the call was made"), "{text}");
}

/// Tools that report how many run at the same time.
struct Beside {
    running: Arc<AtomicUsize>,
    most_beside_alone: Arc<AtomicUsize>,
}

impl Beside {
    fn entries(&self) -> Vec<ToolEntry> {
        let tool = |name: &str, alone: bool| {
            let (running, most) = (Arc::clone(&self.running), Arc::clone(&self.most_beside_alone));
            let body = tool_fn(move |_: Value, _| {
                let (running, most) = (Arc::clone(&running), Arc::clone(&most));
                async move {
                    running.fetch_add(1, Ordering::SeqCst);
                    for _ in 0..5 {
                        if alone {
                            most.fetch_max(running.load(Ordering::SeqCst) - 1, Ordering::SeqCst);
                        }
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                    running.fetch_sub(1, Ordering::SeqCst);
                    "done"
                }
            });
            entry(define(name).parallel(!alone), body)
        };
        let wraps = tool_fn(|_: Value, cx: CallContext| async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            cx.call(ToolCall::new("n", "migrate", "{}")).await.into_result()
        });
        let mut entries = vec![tool("read", false), tool("migrate", true)];
        entries.push(entry(define("wraps"), wraps));
        entries.extend(meta_entries());
        entries
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_runs_alone_does_so_whoever_calls_it() {
    let beside = Beside { running: Arc::default(), most_beside_alone: Arc::default() };
    let turn = turn(beside.entries());
    let read = |id: &str| ToolCall::new(id, "read", "{}");
    let handed_on = || ToolCall::new("m", "tool_call", json!({"name": "migrate"}));
    let wraps = |id: &str| ToolCall::new(id, "wraps", "{}");
    for calls in [
        vec![read("1"), handed_on(), read("2")],
        vec![read("1"), wraps("2"), read("3")],
        vec![wraps("1"), wraps("2"), read("3"), wraps("4"), read("5"), read("6")],
        vec![wraps("1"), handed_on(), wraps("2")],
    ] {
        let answers = tokio::time::timeout(Duration::from_secs(10), turn.call_batch(calls));
        let answers = answers.await.expect("no two wait for each other");
        assert!(answers.iter().all(ToolResult::is_success));
        assert_eq!(beside.most_beside_alone.load(Ordering::SeqCst), 0);
    }
}

/// A tool that never ends, one that ends at once, and `tool_call`.
fn one_that_hangs() -> Executor {
    let hang = tool_fn(|_: Value, _| async {
        std::future::pending::<()>().await;
        "never"
    });
    let hang = entry(define("hang").timeout(Duration::from_secs(1)), hang);
    let quick = entry(define("quick"), tool_fn(|_: Value, _| async { "done" }));
    Executor::builder(registry([hang, quick].into_iter().chain(meta_entries()))).build()
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_hangs_is_paused_and_the_tool_that_called_it_is_not() {
    let executor = one_that_hangs();
    let turn = executor.turn(TurnOptions::default());
    for _ in 0..3 {
        let result = turn.call(handed_on("hang", &json!({}))).await;
        assert_eq!(result.error_kind(), Some(ErrorKind::Timeout), "{}", result.text());
    }
    let result = turn.call(handed_on("quick", &json!({}))).await;
    assert_eq!(result.text(), "done");
    let result = turn.call(ToolCall::new("2", "hang", "{}")).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Paused), "{}", result.text());
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_ends_a_nested_call_counts_against_neither_tool() {
    let executor = one_that_hangs();
    for _ in 0..3 {
        let soon = TurnOptions::default().deadline(Duration::from_millis(100));
        let result = executor.turn(soon).call(handed_on("hang", &json!({}))).await;
        assert_eq!(result.error_kind(), Some(ErrorKind::Timeout), "{}", result.text());
    }
    let turn = executor.turn(TurnOptions::default());
    let result = turn.call(handed_on("quick", &json!({}))).await;
    assert_eq!(result.text(), "done");
    let result = turn.call(ToolCall::new("2", "hang", "{}")).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Timeout), "{}", result.text());
}
