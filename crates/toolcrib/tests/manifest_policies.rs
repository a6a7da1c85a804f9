//! What a manifest asks of the executor is what the executor does.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]
#![cfg(all(feature = "manifests", unix))]

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use toolcrib::core::ExecutorBuilder;
use toolcrib::core::approval::{ApprovalRequest, Decision};
use toolcrib::core::suspension::{Answer, MemorySuspensions, Waiting};
use toolcrib::manifests::Manifests;
use toolcrib::runners::RunnerHost;
use toolcrib::{
    ErrorKind, Executor, Registration, Registry, RegistryBuilder, ToolCall, ToolEntry, ToolResult,
    TurnOptions,
};

/// A workspace with one manifest in it. Every run of a command leaves a line in the file `runs`.
struct Crib {
    workspace: TempDir,
    entries: Vec<ToolEntry>,
}

impl Crib {
    fn new(tools: &str) -> Self {
        let workspace = tempfile::tempdir().expect("a directory");
        let file = workspace.path().join("tools.yaml");
        fs::write(&file, format!("toolcrib: 1\ntools:\n{tools}")).expect("a file");
        let manifests = Manifests::load(&[file], RunnerHost::new(workspace.path()));
        let problems: Vec<_> = manifests.files().problems().map(|(_, problem)| problem).collect();
        assert!(problems.is_empty(), "{problems:#?}");
        Self { entries: manifests.entries().collect(), workspace }
    }

    /// An executor of its own, which has kept no answers and counted no calls.
    fn builder(&self) -> ExecutorBuilder {
        let mut registry = RegistryBuilder::new();
        for entry in &self.entries {
            assert!(matches!(registry.register(entry.clone()), Registration::Registered));
        }
        Executor::builder(Registry::new(registry.build()))
    }

    fn executor(&self) -> Executor {
        self.builder().build()
    }

    fn runs(&self) -> usize {
        let runs = fs::read_to_string(self.workspace.path().join("runs")).unwrap_or_default();
        runs.lines().count()
    }
}

async fn call(executor: &Executor, tool: &str, arguments: &str) -> ToolResult {
    executor.turn(TurnOptions::default()).call(ToolCall::new("call", tool, arguments)).await
}

fn kind(result: &ToolResult) -> Option<ErrorKind> {
    result.error().map(toolcrib::ToolError::kind)
}

#[tokio::test]
async fn a_cached_tool_answers_the_same_call_once_until_a_writer_has_run() {
    let crib = Crib::new(
        r#"
  - name: count
    description: Count the runs.
    annotations: {read_only: true, idempotent: true}
    input: {properties: {of: {type: string}}}
    run: {argv: [sh, -c, 'echo "$1" >> runs; wc -l < runs', sh, "of=${args.of}"]}
    cache: {ttl: 10m}
    resources: {reads: [tally]}
  - name: change
    description: Change what is counted.
    run: {argv: ["true"]}
    resources: {writes: [tally]}
"#,
    );
    let executor = crib.executor();
    let first = call(&executor, "count", r#"{"of": "a"}"#).await;
    let again = call(&executor, "count", r#"{"of": "a"}"#).await;
    assert_eq!((first.text().trim(), again.text().trim()), ("1", "1"));
    assert!(!first.cached() && again.cached());
    assert_eq!(crib.runs(), 1);

    let other = call(&executor, "count", r#"{"of": "b"}"#).await;
    assert!(!other.cached());
    assert_eq!(crib.runs(), 2);

    assert_eq!(kind(&call(&executor, "change", "{}").await), None);
    assert!(!call(&executor, "count", r#"{"of": "a"}"#).await.cached());
    assert_eq!(crib.runs(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_one_at_once_lets_the_others_wait() {
    const ALONE: &str = "run: {argv: [sh, -c, 'mkdir held && sleep 0.3 && rmdir held']}";
    let crib = Crib::new(&format!(
        "
  - name: queued
    description: Fails beside itself.
    {ALONE}
    limits: {{concurrent: 1}}
  - name: crowded
    description: Fails beside itself, too.
    {ALONE}
"
    ));
    let executor = crib.executor();
    let batch = async |tool: &str| {
        let calls = (0..3).map(|id| ToolCall::new(id.to_string(), tool, "{}")).collect();
        let results = executor.turn(TurnOptions::default()).call_batch(calls).await;
        results.iter().filter(|result| kind(result).is_none()).count()
    };
    assert_eq!(batch("queued").await, 3);
    assert!(batch("crowded").await < 3, "three at once should be in each other's way");
}

#[tokio::test]
async fn a_rate_refuses_what_goes_beyond_it() {
    let crib = Crib::new(
        "
  - name: rare
    description: May be called twice an hour.
    run: {argv: [sh, -c, 'echo x >> runs']}
    limits: {rate: 2/h}
",
    );
    let executor = crib.executor();
    let mut kinds = Vec::new();
    for _ in 0..3 {
        kinds.push(kind(&call(&executor, "rare", "{}").await));
    }
    assert_eq!(kinds, [None, None, Some(ErrorKind::RateLimited)]);
    assert_eq!(crib.runs(), 2);
}

#[tokio::test]
async fn a_tool_that_needs_approval_runs_only_with_it() {
    let crib = Crib::new(
        "
  - name: restart
    description: Restart it.
    run: {argv: [sh, -c, 'echo x >> runs']}
    approval: always
  - name: look
    description: Look at it.
    annotations: {destructive: false}
    run: {argv: ['true']}
    approval: never
",
    );
    let nobody = crib.executor();
    assert_eq!(kind(&call(&nobody, "restart", "{}").await), Some(ErrorKind::Denied));
    assert_eq!(kind(&call(&nobody, "look", "{}").await), None);
    assert_eq!(crib.runs(), 0);

    let approver = |request: &ApprovalRequest| match request.tool.as_str() {
        "restart" => Decision::approve(),
        other => Decision::deny(format!("nobody needs to ask about {other}")),
    };
    let somebody = crib.builder().approver(Arc::new(approver)).build();
    assert_eq!(kind(&call(&somebody, "restart", "{}").await), None);
    assert_eq!(kind(&call(&somebody, "look", "{}").await), None);
    assert_eq!(crib.runs(), 1);
}

#[tokio::test]
async fn a_temporary_failure_is_tried_again_and_any_other_is_not() {
    let crib = Crib::new(
        "
  - name: flaky
    description: Succeeds the third time.
    annotations: {idempotent: true}
    run: {argv: [sh, -c, 'echo x >> runs; [ $(wc -l < runs) -ge 3 ] || exit 75']}
    retry: {max: 2, backoff: 1ms}
  - name: broken
    description: Never succeeds.
    annotations: {idempotent: true}
    run: {argv: [sh, -c, 'echo x >> runs; exit 1']}
    retry: {max: 2, backoff: 1ms}
  - name: busy
    description: Has another word for a temporary failure, and never succeeds.
    annotations: {idempotent: true}
    run: {argv: [sh, -c, 'echo x >> runs; exit 7'], retry_exit: [7]}
    retry: {max: 1, backoff: 1ms}
",
    );
    let executor = crib.executor();
    let flaky = call(&executor, "flaky", "{}").await;
    assert_eq!(kind(&flaky), None, "{}", flaky.text());
    assert_eq!(crib.runs(), 3);

    let broken = call(&executor, "broken", "{}").await;
    assert_eq!(broken.error().map(toolcrib::ToolError::retryable), Some(false));
    assert_eq!(crib.runs(), 4);

    let busy = call(&executor, "busy", "{}").await;
    assert_eq!(busy.error().map(toolcrib::ToolError::retryable), Some(true));
    assert_eq!(crib.runs(), 6);
}

#[tokio::test]
async fn the_same_call_twice_in_a_batch_runs_once_where_the_manifest_says_so() {
    let crib = Crib::new(
        "
  - name: note
    description: Leave a line.
    run: {argv: [sh, -c, 'echo x >> runs']}
    dedupe: batch
",
    );
    let calls = ["a", "b"].map(|id| ToolCall::new(id, "note", "{}"));
    let results = crib.executor().turn(TurnOptions::default()).call_batch(calls.into()).await;
    assert_eq!(results.iter().filter(|result| result.skipped()).count(), 1);
    assert_eq!(crib.runs(), 1);
}

#[tokio::test]
async fn a_client_tool_waits_for_its_client_with_its_arguments_checked() {
    let crib = Crib::new(
        "
  - name: pick_file
    description: Ask the user to choose a file.
    input: {properties: {filter: {type: string}}}
    output_schema: {properties: {path: {type: string}}, required: [path]}
    client: true
    limits: {timeout: 5m}
",
    );
    let waiting = crib.builder().suspensions(Arc::new(MemorySuspensions::new())).build();
    let turn = waiting.turn(TurnOptions::default());
    let answer = turn.start(ToolCall::new("call", "pick_file", r#"{"filter": "*.rs"}"#)).await;
    let Answer::Suspended(suspension) = answer else { panic!("it was answered: {answer:?}") };
    assert!(matches!(suspension.waiting(), Waiting::Client));
    let arguments: serde_json::Value =
        serde_json::from_str(suspension.arguments()).expect("arguments are JSON");
    assert_eq!(arguments, serde_json::json!({"filter": "*.rs"}));
    let expected = suspension.created_at().after(Duration::from_secs(300));
    assert_eq!(suspension.expires_at(), expected);

    let wrong = call(&waiting, "pick_file", r#"{"filtre": "x"}"#).await;
    assert_eq!(kind(&wrong), Some(ErrorKind::InvalidArgs));
    let nobody = call(&crib.executor(), "pick_file", "{}").await;
    assert_eq!(kind(&nobody), Some(ErrorKind::Unavailable));
}
