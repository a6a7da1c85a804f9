//! Constraints of entries: rules that every call must satisfy before the tool runs or anybody is
//! asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use toolcrib_core::approval::{ApprovalRequest, Approver, Decision};
use toolcrib_core::{Executor, TurnOptions};
use toolcrib_tool::{
    Approval, Arguments, BoxFuture, Constraint, ContextValues, ErrorKind, Injection, ToolCall,
    ToolEntry, ToolError, tool_fn,
};

use crate::harness::{call, define, entry, registry, source, turn};

/// Limits the number of lines, with a default if the host sets no limit.
#[derive(Debug)]
struct AtMost(i64);

impl Constraint for AtMost {
    fn check(&self, arguments: &Arguments, values: &ContextValues) -> Result<(), ToolError> {
        let most = values.get("most").and_then(Value::as_i64).unwrap_or(self.0);
        match arguments.value()["lines"].as_i64() {
            Some(lines) if lines <= most => Ok(()),
            // The pipeline sets the kind of the error.
            _ => Err(ToolError::new(ErrorKind::Internal, format!("At most {most} lines."))),
        }
    }
}

fn schema() -> Value {
    json!({"properties": {"lines": {"type": "integer", "default": 20}}})
}

fn counted(runs: &Arc<AtomicUsize>, approval: Approval) -> ToolEntry {
    let runs = Arc::clone(runs);
    let body = tool_fn(move |args: Value, _| {
        runs.fetch_add(1, Ordering::SeqCst);
        async move { args["lines"].to_string() }
    });
    let definition = define("tail").input_schema(schema()).approval(approval);
    entry(definition, body).with_constraint(Arc::new(AtMost(100)))
}

#[tokio::test]
async fn a_call_that_breaks_a_rule_is_refused_with_the_rules_words_and_nothing_runs() {
    let runs = Arc::new(AtomicUsize::new(0));
    let turn = turn([counted(&runs, Approval::Never)]);
    let refused = call(&turn, "tail", json!({"lines": 101})).await;
    assert_eq!(refused.error_kind(), Some(ErrorKind::Constraint));
    assert!(refused.text().contains("At most 100 lines."), "{}", refused.text());
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    assert_eq!(call(&turn, "tail", json!({})).await.text(), "20", "defaults come first");
    assert_eq!(call(&turn, "tail", json!({"lines": "7"})).await.text(), "7", "and coercion");
    let wrong = call(&turn, "tail", json!({"lines": "x"})).await;
    assert_eq!(wrong.error_kind(), Some(ErrorKind::InvalidArgs), "the schema speaks first");
}

#[tokio::test]
async fn a_rule_sees_what_the_host_says_once_all_of_it_is_there() {
    let runs = Arc::new(AtomicUsize::new(0));
    let mut tool = counted(&runs, Approval::Never);
    let definition =
        define("tail").input_schema(schema()).injections(vec![Injection::new("p", "p")]);
    tool.definition = Arc::new(definition.build().expect("valid"));
    let executor = Executor::new(registry([tool]), toolcrib_core::ExecutorConfig::default());
    let with = |values: ContextValues| executor.turn(TurnOptions::default().values(values));
    let missing = call(&with(ContextValues::new()), "tail", json!({"lines": 900})).await;
    assert_eq!(missing.error_kind(), Some(ErrorKind::MissingContext));
    let values = ContextValues::new().with("p", 1).with("most", 1_000);
    assert_eq!(call(&with(values), "tail", json!({"lines": 900})).await.text(), "900");
}

#[tokio::test]
async fn a_rule_holds_before_anybody_is_asked_and_for_what_they_put_in_its_place() {
    struct Greedy(Arc<AtomicUsize>);
    impl Approver for Greedy {
        fn decide<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Decision> {
            self.0.fetch_add(1, Ordering::SeqCst);
            let arguments = r#"{"lines": 5000}"#.to_owned();
            Box::pin(async { Decision::ApproveChanged { arguments } })
        }
    }
    let (runs, asked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let executor = Executor::builder(registry([counted(&runs, Approval::Always)]))
        .approver(Arc::new(Greedy(Arc::clone(&asked))))
        .build();
    let turn = executor.turn(TurnOptions::default());
    let refused = call(&turn, "tail", json!({"lines": 101})).await;
    assert_eq!(refused.error_kind(), Some(ErrorKind::Constraint));
    assert_eq!(asked.load(Ordering::SeqCst), 0, "nobody is asked about what cannot be");
    let refused = call(&turn, "tail", json!({"lines": 5})).await;
    assert_eq!(refused.error_kind(), Some(ErrorKind::Constraint), "{}", refused.text());
    assert_eq!((asked.load(Ordering::SeqCst), runs.load(Ordering::SeqCst)), (1, 0));
}

#[tokio::test]
async fn rules_hold_for_tools_of_the_client_and_in_a_dry_run() {
    let definition = define("pick").input_schema(schema()).build().expect("valid");
    let client = ToolEntry::client(definition, source()).with_constraint(Arc::new(AtMost(3)));
    let turn = turn([client]);
    let refused = call(&turn, "pick", json!({"lines": 4})).await;
    assert_eq!(refused.error_kind(), Some(ErrorKind::Constraint));
    let dry = turn.dry_run(ToolCall::new("1", "pick", r#"{"lines": 4}"#));
    assert_eq!(dry.await.expect_err("it breaks the rule").kind(), ErrorKind::Constraint);
}

#[tokio::test]
async fn a_rule_that_fails_has_not_held() {
    #[derive(Debug)]
    struct Broken;
    impl Constraint for Broken {
        fn check(&self, _: &Arguments, _: &ContextValues) -> Result<(), ToolError> {
            panic!("out of order")
        }
    }
    let runs = Arc::new(AtomicUsize::new(0));
    let turn = turn([counted(&runs, Approval::Never).with_constraint(Arc::new(Broken))]);
    let refused = call(&turn, "tail", json!({"lines": 1})).await;
    assert_eq!(refused.error_kind(), Some(ErrorKind::Constraint));
    assert!(!refused.text().contains("out of order"), "that is the operator's");
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}
