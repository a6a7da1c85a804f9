//! Dry runs: they report what a call would do, and do nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use toolcrib_core::TurnOptions;
use toolcrib_core::policy::{DecidedBy, Verdict};
use toolcrib_tool::{
    Annotations, Arguments, BoxFuture, CachePolicy, CallContext, CommandPlan, ErrorKind, Plan,
    Tool, ToolCall, ToolError, ToolOutcome, tool_fn,
};

use crate::harness::{define, entry, executor, turn};

#[tokio::test]
async fn a_dry_run_shows_what_the_tool_would_get_and_runs_nothing() {
    let ran = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ran);
    let schema = json!({"properties": {"n": {"type": "integer", "default": 3}}, "additionalProperties": false});
    let turn = turn([entry(
        define("count").input_schema(schema),
        tool_fn(move |_: Value, _| {
            seen.store(true, Ordering::SeqCst);
            async { "ran" }
        }),
    )]);
    let dry = turn.dry_run(ToolCall::new("1", "count", "{}")).await.expect("passes");
    assert_eq!(
        (dry.arguments.value(), dry.context.definition().name()),
        (&json!({"n": 3}), "count")
    );
    let wrong = ToolCall::new("1", "count", r#"{"n": "x"}"#);
    let refused = turn.dry_run(wrong).await.expect_err("refused");
    assert_eq!(refused.kind(), ErrorKind::InvalidArgs);
    assert!(!ran.load(Ordering::SeqCst));
}

/// A tool that counts its calls and describes what each would do.
struct Planned(Arc<AtomicBool>);

impl Tool for Planned {
    fn call<'a>(
        &'a self,
        _: Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        self.0.store(true, Ordering::SeqCst);
        Box::pin(async { Ok("done".into()) })
    }

    fn validate<'a>(
        &'a self,
        arguments: &'a Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        let fits = arguments.value()["user"] != "nobody";
        let refused = || ToolError::new(ErrorKind::Constraint, "nobody cannot log in");
        Box::pin(std::future::ready(fits.then_some(()).ok_or_else(refused)))
    }

    fn plan(&self, arguments: &Arguments, _: &CallContext) -> Result<Option<Plan>, ToolError> {
        let text = |name: &str| arguments.value()[name].as_str().unwrap_or_default().to_owned();
        let argv =
            vec!["login".to_owned(), text("user"), format!("--password={}", text("password"))];
        Ok(Some(Plan::Command(CommandPlan { argv, ..CommandPlan::default() })))
    }
}

#[tokio::test]
async fn a_dry_run_says_what_policy_would_whether_an_answer_is_there_and_what_the_tool_would_do() {
    let ran = Arc::new(AtomicBool::new(false));
    let schema = json!({"properties": {
        "user": {"type": "string"},
        "password": {"type": "string", "writeOnly": true},
    }});
    let definition = define("login")
        .input_schema(schema)
        .annotations(Annotations { read_only: true, idempotent: true, ..Annotations::default() })
        .cache(CachePolicy::new());
    let login_entry = entry(definition, Planned(Arc::clone(&ran)));
    let executor = executor([login_entry]);
    let turn = executor.turn(TurnOptions::default());
    let login = |user: &str| {
        ToolCall::new("1", "login", json!({"user": user, "password": "hunter22"}).to_string())
    };

    let dry = turn.dry_run(login("ada")).await.expect("passes");
    assert!(matches!(dry.verdict, Verdict::Allow { by: DecidedBy::Definition }));
    let answer = dry.answer.expect("it is cached");
    assert!(!answer.is_there);
    let shown = dry.to_value();
    assert_eq!(shown["plan"]["argv"], json!(["login", "ada", "--password=[redacted]"]));
    assert_eq!(shown["arguments"]["password"], "[redacted]");
    let Some(Plan::Command(plan)) = &dry.plan else { panic!("a command") };
    assert_eq!(plan.argv[2], "--password=hunter22", "the host itself has all of it");
    assert!(!ran.load(Ordering::SeqCst));

    let refused = turn.dry_run(login("nobody")).await.expect_err("its own check");
    assert_eq!(refused.kind(), ErrorKind::Constraint);

    assert!(turn.call(login("ada")).await.is_success());
    let again = turn.dry_run(login("ada")).await.expect("passes").answer.expect("it is cached");
    assert!(again.is_there);
    assert_eq!(again.key, answer.key);
    let other = turn.dry_run(login("eve")).await.expect("passes").answer.expect("it is cached");
    assert!(!other.is_there && other.key != answer.key);
    assert_eq!(executor.cache_stats().hits, 0, "looking is no use of an answer");
}
