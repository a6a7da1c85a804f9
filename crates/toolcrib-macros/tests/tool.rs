//! The promises of `#[tool]`: the tool is found, has its settings, and runs.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolcrib_macros::tool;
use toolcrib_tool::{
    Approval, Arguments, BoxFuture, CachePolicy, CallContext, CallHost, CommandPlan, ContextValues,
    Dedupe, ErrorKind, Json, NativeTool, Plan, RetryPolicy, Services, TaskMode, ToolDefinition,
    ToolError, ToolOutcome, ToolOutput, native_tools,
};

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    total: i64,
}

/// Add two whole
/// numbers.
///
/// Exactly.
#[tool(
    read_only,
    idempotent,
    destructive = false,
    open_world = false,
    title = "Adder",
    category = "math",
    tags("sum", "plus"),
    version = "1.2",
    timeout = "1500ms",
    output_chars = 100,
    examples(r#"{"a": 1, "b": 2}"#),
    blocking = false,
    parallel = false,
    hidden,
    final_output,
    terminal
)]
fn add(args: Add) -> Result<Json<Sum>, ToolError> {
    let total = args.a.checked_add(args.b).ok_or_else(|| ToolError::execution("too large"))?;
    Ok(Json(Sum { total }))
}

#[derive(Deserialize, JsonSchema)]
struct Borrowed<'a> {
    word: &'a str,
}

/// Repeats a word after a moment; the context comes first.
#[tool(name = "echo-word", inject(tenant = "tenant_id", user? = "user"), empty_as_absent("word"))]
async fn echo(cx: &CallContext, args: Borrowed<'_>) -> String {
    std::future::ready(()).await;
    format!("{} for {}", args.word, cx.injected("tenant").unwrap_or(&Value::Null))
}

const NOTHING_LINE: u32 = line!() + 3;
/// Takes nothing.
#[tool]
fn nothing() -> &'static str {
    "here"
}

/// Takes the context only.
#[tool(tags = ["id"])]
fn which_call(cx: &toolcrib_tool::CallContext) -> Value {
    json!(cx.call_id().as_str())
}

#[doc = "Described by a macro: "]
#[doc = concat!("v", "1")]
#[tool]
async fn r#match(_cx: &CallContext) -> ToolOutput {
    std::future::ready(()).await;
    ToolOutput::from("raw")
}

/// Is not there.
#[cfg(any())]
#[tool]
fn configured_out() -> String {
    String::new()
}

/// Is not there either, whatever the order of its attributes.
#[tool]
#[cfg(any())]
fn configured_out_below() -> String {
    String::new()
}

struct Ledger(&'static str);

fn even(args: &Add, cx: &CallContext) -> Result<(), ToolError> {
    let even = (args.a + args.b) % 2 == 0;
    let refuse = || ToolError::new(ErrorKind::Constraint, format!("{} is odd", cx.call_id()));
    even.then_some(()).ok_or_else(refuse)
}

fn planned(args: &Add, cx: &CallContext) -> Result<Plan, ToolError> {
    even(args, cx)?;
    let words = ["add".to_owned(), args.a.to_string(), args.b.to_string()];
    Ok(Plan::Command(CommandPlan { argv: words.into(), ..CommandPlan::default() }))
}

fn needs_a_tape_drive() -> Result<(), String> {
    Err("needs a tape drive".to_owned())
}

#[expect(clippy::unused_async, reason = "a refresh is async")]
async fn described_anew(current: &ToolDefinition) -> Result<Option<ToolDefinition>, ToolError> {
    let description = format!("{} Twice.", current.description());
    Ok(Some(current.to_builder().description(description).build()?))
}

/// Has every policy and every kind of parameter.
#[tool(
    read_only,
    idempotent,
    max_concurrent = 3,
    rate = "30/min",
    cache(ttl = "90s", shared),
    dedupe = "session",
    retry = 2,
    reads("tickets", "users"),
    writes("log"),
    approval = "destructive",
    task = "required",
    refresh_every = "5m",
    refresh = described_anew,
    wind_down = "700ms",
    validate = even,
    plan = planned,
    available = needs_a_tape_drive
)]
async fn everything(
    #[state] calls: &AtomicUsize,
    #[service] ledger: Arc<Ledger>,
    #[service("archive")] archive: Option<Arc<Ledger>>,
    args: Add,
    #[context("user")] user: String,
    cx: &CallContext,
    #[context("limit")] limit: Option<u32>,
) -> Value {
    std::future::ready(()).await;
    let calls = calls.fetch_add(1, Ordering::Relaxed) + 1;
    json!([calls, ledger.0, archive.map(|a| a.0), args.a, user, cx.call_id().as_str(), limit])
}

fn find(name: &str) -> &'static NativeTool {
    let tool = native_tools().into_iter().find(|tool| tool.name == name);
    tool.unwrap_or_else(|| panic!("{name} is not linked in"))
}

fn definition(name: &str) -> ToolDefinition {
    (find(name).definition)().unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Runs a tool through its link-time entry.
fn call(name: &str, arguments: &str, values: ContextValues) -> Result<ToolOutput, ToolError> {
    let cx = CallContext::builder("call_7", definition(name)).values(values).build();
    let body = (find(name).body)();
    let future = std::pin::pin!(body.call(Arguments::from_validated(arguments.to_owned()), &cx));
    match poll_once(future)? {
        ToolOutcome::Done(output) => Ok(output),
        other => panic!("not done: {other:?}"),
    }
}

/// None of these tools waits for anything.
fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> F::Output {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the tool waits"),
    }
}

#[test]
fn every_tool_is_found_with_crate_file_and_line() {
    let names: Vec<_> = native_tools().iter().map(|tool| tool.name).collect();
    assert_eq!(
        names,
        [
            "add",
            "echo-word",
            "everything",
            "greet_early",
            "greet_late",
            "match",
            "nothing",
            "which_call"
        ]
    );

    let found = find("nothing");
    assert_eq!(found.krate, "toolcrib-macros");
    assert!(found.file.ends_with("tests/tool.rs"), "{}", found.file);
    assert_eq!(found.line, NOTHING_LINE);
    let entry = found.entry().expect("the entry is right");
    assert_eq!(
        entry.source.to_string(),
        format!("native toolcrib-macros ({}:{NOTHING_LINE})", found.file)
    );
}

#[test]
fn an_unavailable_tool_has_a_reason() {
    let entry = find("everything").entry().expect("the entry is right");
    assert_eq!(entry.unavailable_reason(), Some("needs a tape drive"));
    assert_eq!(find("add").entry().expect("it is right").unavailable_reason(), None);
}

#[test]
fn a_tool_may_take_a_while_to_end() {
    let wind_down = |name| (find(name).body)().wind_down();
    assert_eq!(wind_down("everything"), Duration::from_millis(700));
    assert_eq!(wind_down("add"), Duration::ZERO);
}

#[test]
fn a_definition_has_the_settings() {
    let add = definition("add");
    assert_eq!(add.description(), "Add two whole numbers.\n\nExactly.");
    assert_eq!((add.title(), add.category(), add.version()), (Some("Adder"), "math", Some("1.2")));
    assert_eq!(add.tags(), ["sum", "plus"]);
    assert_eq!(add.timeout(), Some(Duration::from_millis(1500)));
    assert_eq!(add.output_chars(), Some(100));
    assert_eq!(add.input_examples(), [json!({"a": 1, "b": 2})]);
    let hints = add.annotations();
    assert!(hints.read_only && hints.idempotent && !hints.destructive && !hints.open_world);
    assert!(!add.blocking() && !add.parallel());
    assert!(add.hidden() && add.final_output() && add.terminal());
}

#[test]
fn unset_settings_keep_the_contracts_defaults() {
    let nothing = definition("nothing");
    let contract = ToolDefinition::builder("nothing")
        .description("Takes nothing.")
        .blocking(true)
        .build()
        .expect("the definition is right");
    assert_eq!(nothing, contract);
    assert!(!definition("match").blocking(), "an async fn stays off the blocking pool");
}

#[test]
fn schemas_come_from_the_types() {
    let add = definition("add");
    assert_eq!(add.input_schema()["required"], json!(["a", "b"]));
    assert_eq!(add.input_schema()["properties"]["a"]["description"], "The first number.");
    assert_eq!(add.input_schema()["additionalProperties"], json!(false));
    let output = add.output_schema().expect("`Json<Sum>` has a schema");
    assert_eq!(output["properties"]["total"]["type"], "integer");
    assert_eq!(definition("nothing").input_schema()["properties"], json!({}));
    assert_eq!(definition("echo-word").output_schema(), None);
}

#[test]
fn injections_are_declared_as_written() {
    let echo = definition("echo-word");
    let injections: Vec<_> = echo
        .injections()
        .iter()
        .map(|known| (known.parameter(), known.context_key(), known.required()))
        .collect();
    assert_eq!(injections, [("tenant", "tenant_id", true), ("user", "user", false)]);
    assert_eq!(echo.empty_as_absent(), ["word"]);
}

#[test]
fn a_doc_attribute_with_a_macro_is_a_description() {
    assert_eq!(definition("match").description(), "Described by a macro: \nv1");
}

#[test]
fn tools_run_with_arguments_and_context_in_either_order() {
    let values = ContextValues::new().with("tenant_id", "acme");
    let sum = call("add", r#"{"a":2,"b":3}"#, ContextValues::new()).expect("2 + 3");
    assert_eq!(sum.data(), Some(&json!({"total": 5})));
    let echo = call("echo-word", r#"{"word":"hi"}"#, values).expect("an echo");
    assert_eq!(echo.text(), r#"hi for "acme""#);
    assert_eq!(call("nothing", "{}", ContextValues::new()).expect("text").text(), "here");
    let id = call("which_call", "{}", ContextValues::new()).expect("an id");
    assert_eq!(id.data(), Some(&json!("call_7")));
}

#[test]
fn errors_reach_the_caller_with_their_kind() {
    let call =
        |arguments: &str| call("add", arguments, ContextValues::new()).expect_err("an error");
    let too_large = call(r#"{"a":9223372036854775807,"b":1}"#);
    assert_eq!((too_large.kind(), too_large.message()), (ErrorKind::Execution, "too large"));
    assert_eq!(call(r#"{"a":"x","b":1}"#).kind(), ErrorKind::Internal);
}

#[test]
fn the_fn_stays_callable_as_written() {
    let Ok(Json(sum)) = add(Add { a: 1, b: 2 }) else { panic!("1 + 2") };
    assert_eq!(sum.total, 3);
    assert_eq!(nothing(), "here");
}

/// Lends services and nothing else.
struct Lender(Services);

impl CallHost for Lender {
    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn is_cancelled(&self) -> bool {
        false
    }

    fn services(&self) -> Option<&Services> {
        Some(&self.0)
    }
}

#[test]
fn a_refresh_function_gives_the_definition() {
    let current = definition("everything");
    let body = (find("everything").body)();
    let refreshed =
        poll_once(std::pin::pin!(body.refresh(&current))).unwrap().expect("a new definition");
    assert_eq!(refreshed.description(), "Has every policy and every kind of parameter. Twice.");
    assert_eq!(refreshed.input_schema(), current.input_schema());
    assert_eq!(refreshed.rate(), current.rate());
}

#[test]
fn policies_are_in_the_definition() {
    let definition = definition("everything");
    assert_eq!(definition.max_concurrent(), Some(3));
    assert_eq!(definition.rate().map(|rate| rate.to_string()).as_deref(), Some("30/min"));
    assert_eq!(definition.cache().and_then(CachePolicy::ttl), Some(Duration::from_secs(90)));
    assert_eq!(definition.cache().map(CachePolicy::is_shared), Some(true));
    assert_eq!(definition.dedupe(), Dedupe::Session);
    assert_eq!(definition.retry().map(RetryPolicy::max), Some(2));
    assert_eq!(definition.resources().read(), ["tickets", "users"]);
    assert_eq!(definition.resources().written(), ["log"]);
    assert_eq!(definition.approval(), Approval::Destructive);
    assert_eq!(definition.task(), TaskMode::Required);
    assert_eq!(definition.refresh_every(), Some(Duration::from_secs(300)));
    let injected: Vec<_> = definition
        .injections()
        .iter()
        .map(|i| (i.parameter(), i.context_key(), i.required()))
        .collect();
    assert_eq!(injected, [("user", "user", true), ("limit", "limit", false)]);
}

#[test]
fn parameters_come_from_the_host_and_state_persists_between_calls() {
    let body = (find("everything").body)();
    let ask = |services: Services, user: Value| {
        let cx = CallContext::builder("call_7", definition("everything"))
            .values(ContextValues::new().with("user", user))
            .host(Arc::new(Lender(services)))
            .build();
        let arguments = Arguments::from_validated(r#"{"a": 1, "b": 2}"#.to_owned());
        let future = std::pin::pin!(body.call(arguments, &cx));
        match poll_once(future) {
            Ok(ToolOutcome::Done(output)) => Ok(output),
            Ok(other) => panic!("not done: {other:?}"),
            Err(error) => Err(error),
        }
    };
    let lent = || Services::new().with(Arc::new(Ledger("main")));
    let first = ask(lent(), json!("ada")).unwrap();
    assert_eq!(first.data(), Some(&json!([1, "main", null, 1, "ada", "call_7", null])));
    let named = lent().with_named("archive", Arc::new(Ledger("old")));
    let second = ask(named, json!("bob")).unwrap();
    assert_eq!(second.data(), Some(&json!([2, "main", "old", 1, "bob", "call_7", null])));

    let absent = ask(Services::new(), json!("ada")).unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::Unavailable);
    assert!(absent.message().contains("Ledger"), "{absent}");
    let wrong = ask(lent(), json!(7)).unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::MissingContext);
    assert!(wrong.message().contains("`user`"), "{wrong}");
}

#[test]
fn a_validating_fn_runs_before_the_call() {
    let body = (find("everything").body)();
    let cx = CallContext::builder("call_7", definition("everything")).build();
    let check = |text: &str| {
        let arguments = Arguments::from_validated(text.to_owned());
        poll_once(std::pin::pin!(body.validate(&arguments, &cx)))
    };
    assert!(check(r#"{"a": 1, "b": 3}"#).is_ok());
    let refused = check(r#"{"a": 1, "b": 2}"#).unwrap_err();
    assert_eq!((refused.kind(), refused.message()), (ErrorKind::Constraint, "call_7 is odd"));
}

#[test]
fn a_planning_fn_describes_the_call() {
    let cx = CallContext::builder("call_7", definition("everything")).build();
    let planned = |name: &str, text: &str| {
        (find(name).body)().plan(&Arguments::from_validated(text.to_owned()), &cx)
    };
    let plan = planned("everything", r#"{"a": 1, "b": 3}"#).unwrap();
    assert!(matches!(plan, Some(Plan::Command(plan)) if plan.argv == ["add", "1", "3"]));
    assert!(planned("everything", r#"{"a": 1, "b": 2}"#).is_err());
    assert_eq!(planned("add", r#"{"a": 1, "b": 2}"#).unwrap(), None);
}

/// Two tools of one text: a macro of the caller's writes the fns.
macro_rules! greetings {
    ($($(#[doc = $doc:tt])* $name:ident says $word:literal;)*) => {$(
        $(#[doc = $doc])*
        #[tool(read_only)]
        fn $name(args: Greeted, #[context("user")] user: Option<String>) -> String {
            format!("{}, {}{}", $word, args.name, user.unwrap_or_default())
        }
    )*};
}

#[derive(Deserialize, JsonSchema)]
struct Greeted {
    /// Who is greeted.
    name: String,
}

greetings! {
    /// Greet somebody in the morning.
    greet_early says "Good morning";
    /// Greet somebody at night.
    greet_late says "Good night";
}

#[test]
fn a_fn_generated_by_a_macro_can_be_a_tool() {
    let descriptions: Vec<_> = native_tools()
        .iter()
        .filter(|tool| tool.name.starts_with("greet_"))
        .map(|tool| (tool.definition)().unwrap().description().to_owned())
        .collect();
    assert_eq!(descriptions, ["Greet somebody in the morning.", "Greet somebody at night."]);
    assert_eq!(greet_late(Greeted { name: "Ada".to_owned() }, None), "Good night, Ada");
}
