//! Refusals: their messages, and that their cost is linear in the size of the arguments.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_core::Turn;
use toolcrib_core::meta::meta_entries;
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, Constraint, ContextValues, ErrorKind, Tool, ToolCall,
    ToolError, ToolOutcome, ToolResult, tool_fn,
};

use crate::harness::{call, define, entry, turn};

fn echo(schema: Value) -> Turn {
    turn([entry(define("echo").input_schema(schema), tool_fn(|args: Value, _| async { args }))])
}

async fn send(turn: &Turn, text: impl Into<String>) -> ToolResult {
    turn.call(ToolCall::new("1", "echo", text.into())).await
}

/// The lines that list problems.
fn listed(result: &ToolResult) -> Vec<&str> {
    let hints = result.error().map(ToolError::hints).unwrap_or_default();
    hints.iter().filter_map(|hint| hint.strip_prefix("- ")).collect()
}

fn note<'r>(result: &'r ToolResult, key: &str) -> &'r Value {
    result.output().and_then(|output| output.meta().get(key)).unwrap_or(&Value::Null)
}

#[tokio::test]
async fn twenty_problems_are_shown_and_the_rest_counted() {
    let unknown = |count: usize| {
        let members: Vec<_> = (0..count).map(|n| format!(r#""k{n:06}":1"#)).collect();
        format!("{{{}}}", members.join(","))
    };
    let turn = echo(json!({"properties": {"path": {}}, "additionalProperties": false}));
    let result = send(&turn, unknown(400)).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::InvalidArgs));
    assert_eq!(listed(&result).len(), 21);
    assert_eq!(listed(&result)[20], "and 380 more");
    assert!(result.text().contains("in 400 places"), "{}", result.text());
    let result = send(&turn, unknown(20)).await;
    assert_eq!(listed(&result).len(), 20);

    // Beyond the maximum, problems are not even counted.
    let turn = echo(json!({"properties": {"n": {"items": {"type": "object"}}}}));
    let result = send(&turn, format!(r#"{{"n":[{}1]}}"#, "1,".repeat(29_999))).await;
    assert_eq!(listed(&result)[20], "and at least 9980 more");
}

#[tokio::test]
async fn a_value_outside_a_pattern_is_told_what_the_argument_is_before_the_pattern() {
    let path = json!({"type": "string", "pattern": "^logs/", "description": "A log file."});
    let turn = echo(json!({"properties": {"path": path, "bare": {"pattern": "^x"}}}));
    let result = send(&turn, r#"{"path": "a", "bare": "b"}"#).await;
    let said = listed(&result);
    assert!(said[0].contains("expected text that matches the pattern ^x"), "{said:?}");
    let told = "expected text as described (\"A log file.\") that matches the pattern ^logs/";
    assert!(said[1].contains(told), "{said:?}");
}

#[tokio::test]
async fn a_long_name_or_value_is_shortened_in_a_refusal() {
    let turn =
        echo(json!({"properties": {"n": {"type": "integer"}}, "additionalProperties": false}));
    let long = "x".repeat(100_000);
    for text in [
        format!(r#"{{"{long}": 1}}"#),
        format!(r#"{{"n": "{long}"}}"#),
        format!(r#"{{"n": ["{long}"]}}"#),
        format!(r#"{{"{long}": 1, "{long}": 2}}"#),
    ] {
        let result = send(&turn, text).await;
        assert!(!result.is_success());
        assert!(result.text().len() < 1_000, "{} bytes", result.text().len());
    }
}

#[tokio::test]
async fn a_refusal_lists_only_what_could_not_be_coerced() {
    let turn = echo(json!({"properties": {"o": {"type": "object", "properties": {
        "flag": {"type": "boolean"},
        "deep": {"type": "array", "items": {
            "type": "object", "properties": {"t": {"type": "boolean"}},
        }},
    }}}}));
    let arguments = json!({"o": {"flag": "false", "deep": [{"t": "true"}, {"t": "no"}]}});
    let result = call(&turn, "echo", arguments).await;
    assert_eq!(listed(&result), [r#"/o/deep/1/t: expected a boolean, got "no""#]);
    assert_eq!(
        *note(&result, "coerced"),
        json!(["/o/deep/0/t became boolean", "/o/flag became boolean"])
    );
}

#[tokio::test]
async fn a_coercion_that_does_not_help_is_not_what_the_refusal_is_about() {
    let turn = echo(json!({"properties": {
        "files": {"type": "array", "items": {"type": "object"}},
        "n": {"type": "integer"},
        "name": {"type": "string"},
    }, "required": ["name"]}));
    let result = call(&turn, "echo", json!({"files": "a.txt", "n": "5", "name": null})).await;
    assert_eq!(
        listed(&result),
        [r#"/files: expected an array, got "a.txt""#, "/name: expected a string, got null"]
    );
    assert_eq!(*note(&result, "coerced"), json!(["/n became integer"]));
}

#[tokio::test]
async fn what_was_mended_is_told_of_failed_calls_too() {
    let schema = json!({"properties": {"b": {"type": "boolean"}}, "additionalProperties": false});
    let body = tool_fn(|_: Value, _| async {
        Err::<&str, _>(ToolError::execution("the disk is full").with_partial("half of it"))
    });
    let turn = turn([entry(define("failing").input_schema(schema), body)]);
    let text = r#"{"b": "true", "_meta": {}, }"#;
    let result = turn.call(ToolCall::new("1", "failing", text.to_owned())).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Execution));
    assert_eq!(*note(&result, "coerced"), json!(["/b became boolean"]));
    assert_eq!(*note(&result, "repaired"), json!(["removed a trailing comma"]));
    assert_eq!(*note(&result, "stripped"), json!(["_meta"]));
    assert!(result.text().ends_with("half of it"));

    // The result of a failure without output contains only the notes.
    let result = turn.call(ToolCall::new("1", "failing", r#"{"c": 1, }"#.to_owned())).await;
    assert_eq!(*note(&result, "repaired"), json!(["removed a trailing comma"]));
    assert!(!result.text().contains("Output before"), "{}", result.text());
}

#[tokio::test]
async fn names_that_were_taken_out_are_told() {
    let turn = echo(json!({"properties": {"_own": {}, "a": {}}}));
    let result = call(&turn, "echo", json!({"a": 1, "_own": 2, "_x": 3, "_y": 4})).await;
    assert_eq!(result.data(), Some(&json!({"a": 1, "_own": 2})));
    assert_eq!(*note(&result, "stripped"), json!(["_x", "_y"]));
}

#[tokio::test]
async fn thousands_of_texts_are_coerced_and_more_are_refused() {
    let turn = echo(json!({"properties": {"n": {"items": {"type": "integer"}}}}));
    let texts = |count: usize| format!(r#"{{"n":[{}"1"]}}"#, r#""1","#.repeat(count - 1));
    let result = send(&turn, texts(5_000)).await;
    assert!(result.is_success(), "{}", result.text());
    let notes = note(&result, "coerced").as_array().expect("notes");
    assert_eq!((notes.len(), &notes[20]), (21, &json!("and 4980 more")));
    assert!(!send(&turn, texts(50_000)).await.is_success());
}

/// Refuses everything, and names the arguments.
#[derive(Debug)]
struct Never;

impl Constraint for Never {
    fn check(&self, _: &Arguments, _: &ContextValues) -> Result<(), ToolError> {
        Err(ToolError::invalid_args("not on Sundays"))
    }
}

fn list(item: &str, bytes: usize) -> String {
    let count = bytes / (item.len() + 1);
    let mut text = String::with_capacity(bytes + 16);
    text.push_str(r#"{"n":["#);
    for position in 0..count {
        if position > 0 {
            text.push(',');
        }
        text.push_str(item);
    }
    text.push_str("]}");
    text
}

fn members(value: &str, bytes: usize) -> String {
    let mut text = String::from("{");
    let mut number = 0;
    while text.len() < bytes {
        let separator = if number == 0 { "" } else { "," };
        let _ = write!(text, r#"{separator}"k{number:06}":{value}"#);
        number += 1;
    }
    text.push('}');
    text
}

/// Wrong arguments of every kind, about this many bytes long.
fn wrong(bytes: usize) -> Vec<(&'static str, Value, String)> {
    let items = |schema: Value| json!({"properties": {"n": {"items": schema}}});
    let word = json!({"type": "string"});
    let nested = {
        let depth = 120;
        let inner = "1,".repeat(bytes / 2);
        format!(r#"{{"n":{}{inner}1{}}}"#, "[".repeat(depth), "]".repeat(depth))
    };
    let either = json!({"anyOf": [
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"]},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a", "c"]},
        {"type": "string"},
    ]});
    let recursive = json!({
        "$defs": {"list": {"anyOf": [
            {"type": "string"},
            {"type": "array", "items": {"$ref": "#/$defs/list"}},
        ]}},
        "properties": {"n": {"$ref": "#/$defs/list"}},
    });
    let words: Vec<_> = (0..100).map(|n| format!("word{n}")).collect();
    let long = "x".repeat(bytes / 2);
    vec![
        (
            "unknown properties",
            json!({"properties": {"path": {}}, "additionalProperties": false}),
            members("1", bytes),
        ),
        ("unevaluated properties", json!({"unevaluatedProperties": false}), members("1", bytes)),
        ("values of properties", json!({"additionalProperties": word}), members("1", bytes)),
        (
            "names of properties",
            json!({"propertyNames": {"pattern": "^[a-j]+$"}}),
            members("1", bytes),
        ),
        ("wrong types", items(json!({"type": "object"})), list("1", bytes)),
        ("texts for integers", items(json!({"type": "integer"})), list(r#""1""#, bytes)),
        ("truths for integers", items(json!({"type": "integer"})), list("true", bytes)),
        ("integers for texts", items(json!({"type": "string", "maxLength": 0})), list("1", bytes)),
        ("nothing for texts", items(json!({"type": "string"})), list("null", bytes)),
        ("missing properties", items(json!({"required": ["a", "b", "c"]})), list("{}", bytes)),
        ("words", items(json!({"enum": words})), list(r#""word1x""#, bytes)),
        ("constants", items(json!({"const": {"a": [1]}})), list(r#"{"a":[2]}"#, bytes)),
        (
            "a large value for a word",
            json!({"properties": {"n": {"enum": ["a", {"a": 1}, [1]]}}}),
            list(r#"{"a":1}"#, bytes),
        ),
        ("patterns", items(json!({"pattern": "^(a+)+$"})), list(r#""aaaaaaaaaaaa!""#, bytes)),
        ("a long text", json!({"properties": {"n": {"pattern": "^(x+x+)+y$"}}}), {
            format!(r#"{{"n":"{long}{long}"}}"#)
        }),
        (
            "equal items",
            json!({"properties": {"n": {"uniqueItems": true, "maxItems": 1}}}),
            list("[[],[[]]]", bytes),
        ),
        ("alternatives", items(either), list(r#"{"a":true}"#, bytes)),
        ("nested alternatives", recursive, nested.clone()),
        ("deep values", json!({"properties": {"n": {"type": "string"}}}), nested),
        ("too deep", json!({}), "[".repeat(bytes)),
        ("keys given twice", json!({}), {
            let unique = members("1", bytes);
            format!("{},\"k000000\":1}}", unique.trim_end_matches('}'))
        }),
        (
            "a long name over many values",
            json!({"additionalProperties": {"items": {"type": "string"}}}),
            format!(r#"{{"{long}":[{}1]}}"#, "1,".repeat(bytes / 4)),
        ),
        ("no JSON", json!({}), format!(r#"{{"a": {}"#, "\\d".repeat(bytes / 2))),
        ("open brackets", json!({}), format!(r#"{{"a": {}"#, "[ ] , ".repeat(bytes / 6))),
        ("trailing commas", json!({}), { format!(r#"{{"a": {}"#, "[1,   ],".repeat(bytes / 8)) }),
    ]
}

/// The limit is a hundred times the cost of a linear refusal in an unoptimized build on a busy
/// machine. A quadratic refusal takes minutes.
#[tokio::test]
async fn half_a_mebibyte_of_wrong_arguments_is_refused_in_no_time() {
    for (what, schema, text) in wrong(512 * 1024) {
        let turn = echo(schema);
        let started = Instant::now();
        let result = send(&turn, text).await;
        let took = started.elapsed();
        assert!(!result.is_success(), "{what}");
        assert!(listed(&result).len() <= 21, "{what}");
        assert!(result.text().len() < 10_000, "{what}: {} bytes", result.text().len());
        assert!(took < Duration::from_secs(20), "{what}: {took:?}");
    }
}

#[tokio::test]
async fn a_failing_constraint_repeats_nothing_of_the_arguments() {
    let tool =
        entry(define("echo").input_schema(json!({})), tool_fn(|args: Value, _| async { args }));
    let turn = turn([tool.with_constraint(Arc::new(Never))]);
    let result = send(&turn, list("1", 512 * 1024)).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Constraint));
    assert_eq!(result.text(), "Error executing echo: not on Sundays");
}

#[tokio::test]
async fn a_failure_is_held_to_the_output_budget() {
    let body = tool_fn(|_: Value, _| async {
        Err::<&str, _>(ToolError::execution("x".repeat(1_000_000)).with_hint("y".repeat(1_000_000)))
    });
    let turn = turn([entry(define("failing"), body)]);
    let result = call(&turn, "failing", json!({})).await;
    assert!(result.truncated());
    let length = result.text().chars().count();
    assert!(length < 25_000, "{length} characters");
}

#[tokio::test]
async fn an_unknown_name_is_shortened_in_its_refusal() {
    let turn = turn([entry(define("echo"), tool_fn(|args: Value, _| async { args }))]);
    let result = call(&turn, &"n".repeat(1_000_000), json!({})).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::NotFound));
    assert!(result.text().len() < 1_000, "{} bytes", result.text().len());
}

/// Returns the text of its arguments.
#[derive(Debug)]
struct Written;

impl Tool for Written {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async move { Ok(ToolOutcome::Done(arguments.as_str().into())) })
    }
}

#[tokio::test]
async fn a_nested_call_gets_its_arguments_as_they_were_written() {
    let entries = meta_entries().into_iter();
    let written = entry(define("written").input_schema(json!({})), Written);
    let turn = turn(entries.chain([written]));
    let arguments = r#"{"id": 123456789012345678901, "price": 0.10000000000000000001}"#;
    let text = format!(r#"{{"name": "written", "arguments": {arguments}}}"#);
    let result = turn.call(ToolCall::new("1", "tool_call", text)).await;
    assert_eq!(result.text(), arguments);
    let result = turn.call(ToolCall::new("1", "tool_call", r#"{"name": "written"}"#)).await;
    assert_eq!(result.text(), "{}");
}
