//! What `#[tool]` promises: the tool is found, says what it was told to say, and runs.

use std::future::Future;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolcrib_macros::tool;
use toolcrib_tool::{
    Arguments, CallContext, ContextValues, ErrorKind, Json, NativeTool, ToolDefinition, ToolError,
    ToolOutcome, ToolOutput, native_tools,
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
    assert_eq!(names, ["add", "echo-word", "match", "nothing", "which_call"]);

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
fn a_definition_says_what_the_settings_say() {
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
fn what_is_not_set_keeps_the_contracts_defaults() {
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
fn a_doc_attribute_that_only_the_compiler_knows_is_a_description() {
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
