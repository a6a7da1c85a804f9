//! A text whose answer is kept is not read twice; all that is checked behind the reading is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};
use toolcrib_core::approval::{ApprovalRequest, Approver, Decision, Remember};
use toolcrib_core::policy::{ArgumentPattern, Policy, PolicyMode, PolicyRule};
use toolcrib_core::{Executor, TurnOptions};
use toolcrib_tool::{
    Arguments, BoxFuture, CachePolicy, CallContext, Constraint, ContextValues, Injection,
    IntoOutcome, Tool, ToolCall, ToolDefinitionBuilder, ToolError, ToolOutcome,
};

use crate::harness::{define, entry, executor, registry};

/// What the host thinks of it now.
#[derive(Debug, Clone, Default)]
struct Mood(Arc<AtomicBool>);

impl Mood {
    fn is_bad(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn set_bad(&self, bad: bool) {
        self.0.store(bad, Ordering::SeqCst);
    }

    fn refuse(&self, words: &str) -> Result<(), ToolError> {
        if self.is_bad() { Err(ToolError::execution(words)) } else { Ok(()) }
    }
}

impl Constraint for Mood {
    fn check(&self, arguments: &Arguments, _: &ContextValues) -> Result<(), ToolError> {
        assert_eq!(arguments.value()["path"], "a.txt");
        self.refuse("not now")
    }
}

/// Answers with what it was given and how often it ran.
#[derive(Default)]
struct Look {
    runs: AtomicUsize,
    mood: Mood,
}

impl Tool for Look {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        Box::pin(async move { format!("{run}: {}", arguments.as_str()).into_outcome() })
    }

    fn validate<'a>(
        &'a self,
        arguments: &'a Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        assert_eq!(arguments.value()["path"], "a.txt");
        Box::pin(async { self.mood.refuse("its own check") })
    }
}

fn look(schema: Value) -> ToolDefinitionBuilder {
    define("look").read_only(true).idempotent(true).cache(CachePolicy::new()).input_schema(schema)
}

fn schema() -> Value {
    json!({"properties": {
        "path": {"type": "string"},
        "deep": {"type": "boolean", "default": false},
    }})
}

const TEXT: &str = r#"{"path":"a.txt"}"#;

async fn ask(executor: &Executor, values: ContextValues, text: &str) -> (String, bool) {
    let turn = executor.turn(TurnOptions::default().values(values));
    let result = turn.call(ToolCall::new("1", "look", text)).await;
    let text =
        result.error_kind().map_or_else(|| result.text().into_owned(), |kind| kind.to_string());
    (text, result.cached())
}

fn nobody() -> ContextValues {
    ContextValues::new()
}

#[tokio::test]
async fn rules_and_own_checks_are_asked_anew_for_a_text_that_is_known() {
    let (rule, own) = (Mood::default(), Mood::default());
    let body = Look { mood: own.clone(), ..Look::default() };
    let entry = entry(look(schema()), body).with_constraint(Arc::new(rule.clone()));
    let executor = executor([entry]);
    // Defaults are filled in once, and are there every time.
    let answer = r#"1: {"path":"a.txt","deep":false}"#;
    assert_eq!(ask(&executor, nobody(), TEXT).await, (answer.to_owned(), false));
    assert_eq!(ask(&executor, nobody(), TEXT).await, (answer.to_owned(), true));
    for mood in [rule, own] {
        mood.set_bad(true);
        assert_eq!(ask(&executor, nobody(), TEXT).await, ("constraint".to_owned(), false));
        mood.set_bad(false);
        assert_eq!(ask(&executor, nobody(), TEXT).await, (answer.to_owned(), true));
    }
}

impl Approver for Mood {
    fn decide<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Decision> {
        let decision = if self.is_bad() {
            Decision::deny("no")
        } else {
            Decision::Approve { remember: Remember::Nothing }
        };
        Box::pin(std::future::ready(decision))
    }
}

#[tokio::test]
async fn who_approves_is_asked_anew_for_a_text_that_is_known() {
    let asked = PolicyRule::ask().argument("path", ArgumentPattern::equals("a.txt"));
    let mood = Mood::default();
    let executor = Executor::builder(registry([entry(look(schema()), Look::default())]))
        .policy(Policy::new(PolicyMode::Guarded, [asked]).expect("a policy"))
        .approver(Arc::new(mood.clone()))
        .build();
    let answer = r#"1: {"path":"a.txt","deep":false}"#;
    assert_eq!(ask(&executor, nobody(), TEXT).await, (answer.to_owned(), false));
    mood.set_bad(true);
    assert_eq!(ask(&executor, nobody(), TEXT).await, ("denied".to_owned(), false));
    mood.set_bad(false);
    assert_eq!(ask(&executor, nobody(), TEXT).await, (answer.to_owned(), true));
}

#[tokio::test]
async fn a_known_text_is_another_call_for_another_person_or_project() {
    let injected = look(schema()).injections(vec![Injection::new("project", "project").optional()]);
    let executor = executor([entry(injected, Look::default())]);
    let ada = || ContextValues::new().with("user", "ada");
    for (run, values) in
        [nobody(), ada(), ContextValues::new().with("user", "bob"), ada().with("project", "p")]
            .into_iter()
            .enumerate()
    {
        let answer = format!(r#"{}: {{"path":"a.txt","deep":false}}"#, run + 1);
        assert_eq!(ask(&executor, values.clone(), TEXT).await, (answer.clone(), false));
        assert_eq!(ask(&executor, values, TEXT).await, (answer, true));
    }
}

#[tokio::test]
async fn a_text_that_has_to_be_mended_is_mended_and_said_every_time() {
    let executor = executor([entry(look(schema()), Look::default())]);
    for (text, said) in
        [(r#"{"path":"a.txt",}"#, "repaired"), (r#"{"path":"a.txt","deep":"true"}"#, "coerced")]
    {
        for cached in [false, true, true] {
            let turn = executor.turn(TurnOptions::default());
            let result = turn.call(ToolCall::new("1", "look", text)).await;
            assert_eq!(result.cached(), cached, "{}", result.text());
            let meta = result.output().map(|output| output.meta().contains_key(said));
            assert_eq!(meta, Some(true), "{text}");
        }
    }
}

#[tokio::test]
async fn a_tool_that_takes_less_now_refuses_the_text_it_took_before() {
    let executor = executor([entry(look(schema()), Look::default())]);
    ask(&executor, nobody(), TEXT).await;
    assert!(ask(&executor, nobody(), TEXT).await.1);
    let narrower = json!({"properties": {"path": {"type": "string", "maxLength": 3}}});
    let mut next = toolcrib_core::RegistryBuilder::new();
    let _ = next.register(entry(look(narrower), Look::default()));
    executor.registry().publish(next.build());
    assert_eq!(ask(&executor, nobody(), TEXT).await, ("invalid_args".to_owned(), false));
}

#[tokio::test]
async fn an_answer_that_is_forgotten_is_asked_for_again_with_the_same_arguments() {
    let executor = executor([entry(look(schema()), Look::default())]);
    for run in 1..4 {
        let answer = format!(r#"{run}: {{"path":"a.txt","deep":false}}"#);
        assert_eq!(ask(&executor, nobody(), TEXT).await, (answer.clone(), false));
        assert_eq!(ask(&executor, nobody(), TEXT).await, (answer, true));
        executor.forget_answers();
    }
}
