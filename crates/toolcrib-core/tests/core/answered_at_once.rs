//! A call that is answered at once is answered as the whole way would have answered it.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use serde_json::json;
use toolcrib_core::{CacheStats, Executor, ExecutorConfig, ToolStatistics, Turn, TurnOptions};
use toolcrib_tool::{
    Arguments, BoxFuture, CachePolicy, CallContext, ContextValues, Dedupe, ErrorKind, Injection,
    IntoOutcome, Resources, Tool, ToolCall, ToolError, ToolOutcome, ToolResult,
};

use crate::harness::{define, entry, registry};

/// Says how often it has run, with what.
struct Look {
    runs: AtomicUsize,
    /// Whether it asks for the whole way: its own check, which it leaves as it is, passes.
    validates: bool,
}

impl Tool for Look {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        let project = cx.injected("project").map(ToString::to_string);
        Box::pin(async move { format!("{run}: {} {project:?}", arguments.as_str()).into_outcome() })
    }

    fn validates(&self) -> bool {
        self.validates
    }
}

const TOOLS: [&str; 4] = ["look", "look_once_a_batch", "look_once_a_session", "look_into"];

fn host(validates: bool) -> Executor {
    let schema = json!({"properties": {
        "path": {"type": "string"},
        "deep": {"type": "boolean", "default": false},
    }});
    let tools = TOOLS.into_iter().enumerate().map(|(number, name)| {
        let dedupe = [Dedupe::None, Dedupe::Batch, Dedupe::Session, Dedupe::None][number];
        let injections = match name {
            "look_into" => vec![Injection::new("project", "project")],
            _ => Vec::new(),
        };
        let definition = define(name)
            .read_only(true)
            .idempotent(true)
            .input_schema(schema.clone())
            .cache(CachePolicy::new())
            .dedupe(dedupe)
            .injections(injections)
            .resources(Resources::new().reads(["files", "names"][number % 2]));
        entry(definition, Look { runs: AtomicUsize::new(0), validates })
    });
    let mut config = ExecutorConfig::default();
    // So few that answers have to go.
    config.cache_entries = 6;
    Executor::new(registry(tools), config)
}

/// The first three come to the same call, the second after a text of its own.
const TEXTS: [&str; 6] = [
    r#"{"path":"a","deep":false}"#,
    r#"{"path":"a"}"#,
    r#"{"path":"a",}"#,
    r#"{"path":"b"}"#,
    r#"{"path":1e400}"#,
    r#"{"deep":"no"}"#,
];

#[derive(Debug, Clone)]
enum Step {
    /// Tool and text, for whom.
    Call(usize, usize, usize),
    Batch(Vec<(usize, usize)>, usize),
    Write(&'static str),
    Forget,
    CancelTurn(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let who = 0..4_usize;
    let what = (0..TOOLS.len(), 0..TEXTS.len());
    let step = prop_oneof![
        12 => (what.clone(), who.clone()).prop_map(|((tool, text), who)| Step::Call(tool, text, who)),
        3 => (prop::collection::vec(what, 1..4), who.clone())
            .prop_map(|(calls, who)| Step::Batch(calls, who)),
        1 => prop_oneof![Just("files"), Just("names")].prop_map(Step::Write),
        1 => Just(Step::Forget),
        1 => who.prop_map(Step::CancelTurn),
    ];
    prop::collection::vec(step, 1..60)
}

fn turns(executor: &Executor) -> Vec<Turn> {
    let values = ContextValues::new();
    let ada = values.clone().with("user", "ada").with("project", "p");
    [
        TurnOptions::default(),
        TurnOptions::default().session("s"),
        TurnOptions::default().values(ada.clone()),
        TurnOptions::default().values(ada).session("t"),
    ]
    .into_iter()
    .map(|options| executor.turn(options))
    .collect()
}

/// What anybody can see of a result: its text or its failure, and where it comes from.
type Seen = (Result<String, ErrorKind>, bool, bool);

/// But for the time it took, which the text of a withdrawn call says.
fn seen(result: &ToolResult) -> Seen {
    let said = result.error_kind().map_or_else(|| Ok(result.text().into_owned()), Err);
    (said, result.cached(), result.skipped())
}

fn asked((tool, text): (usize, usize)) -> ToolCall {
    ToolCall::new("1", TOOLS[tool], TEXTS[text])
}

type Counted = (CacheStats, Vec<(String, u64, u64, u64, u64, u64)>);

fn counted(executor: &Executor) -> Counted {
    let of = |tool: ToolStatistics| {
        let ToolStatistics { executions, successes, failures, cache_hits, in_flight, .. } = tool;
        (tool.tool, executions, successes, failures, cache_hits, in_flight)
    };
    (executor.cache_stats(), executor.statistics().snapshot().into_iter().map(of).collect())
}

/// All that is seen of a schedule.
async fn lived(validates: bool, steps: &[Step]) -> Vec<(Vec<Seen>, Counted)> {
    let executor = host(validates);
    let turns = turns(&executor);
    let mut all = Vec::new();
    for step in steps {
        let results = match step {
            Step::Call(tool, text, who) => vec![turns[*who].call(asked((*tool, *text))).await],
            Step::Batch(calls, who) => {
                turns[*who].call_batch(calls.iter().copied().map(asked).collect()).await
            }
            Step::Write(name) => {
                executor.invalidate_resource(name);
                Vec::new()
            }
            Step::Forget => {
                executor.forget_answers();
                Vec::new()
            }
            Step::CancelTurn(who) => {
                turns[*who].cancel();
                Vec::new()
            }
        };
        all.push((results.iter().map(seen).collect(), counted(&executor)));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn nothing_that_can_be_seen_tells_the_short_way_from_the_whole(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (short, whole) =
            runtime.block_on(async { (lived(false, &steps).await, lived(true, &steps).await) });
        for (at, (short, whole)) in short.iter().zip(&whole).enumerate() {
            prop_assert_eq!(short, whole, "step {}: {:?}", at, steps[at]);
        }
    }
}

#[tokio::test]
async fn nothing_is_answered_at_once_by_an_executor_that_was_shut_down() {
    let executor = host(false);
    let turn = executor.turn(TurnOptions::default());
    let ask = || turn.call(asked((0, 0)));
    ask().await;
    assert!(ask().await.cached());
    executor.shutdown(std::time::Duration::ZERO).await;
    assert_eq!(ask().await.error_kind(), Some(ErrorKind::Unavailable));
}

/// Refuses to be asked at all.
struct NeverAsked;

impl Tool for NeverAsked {
    fn call<'a>(
        &'a self,
        _: Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async { "done".into_outcome() })
    }

    fn validate<'a>(
        &'a self,
        _: &'a Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async { Err(ToolError::execution("it was asked")) })
    }

    fn validates(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn a_tool_that_says_it_checks_nothing_is_not_asked() {
    let executor =
        Executor::new(registry([entry(define("do"), NeverAsked)]), ExecutorConfig::default());
    let turn = executor.turn(TurnOptions::default());
    assert_eq!(turn.call(ToolCall::new("1", "do", "{}")).await.text(), "done");
    assert!(turn.dry_run(ToolCall::new("1", "do", "{}")).await.is_ok());
}
