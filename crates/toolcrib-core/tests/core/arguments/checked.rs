//! Arguments as the tool gets them: which are refused, with every problem, and which are changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use toolcrib_core::TurnOptions;
use toolcrib_tool::{
    CallContext, ContextValues, ErrorKind, Injection, ToolCall, ToolError, tool_fn,
};

use crate::harness::{call, define, echo, entry, executor, says, turn};

#[tokio::test]
async fn every_problem_of_the_arguments_is_named_at_once() {
    let schema = json!({
        "properties": {
            "path": {"type": "string"},
            "lines": {"type": "integer", "minimum": 1, "maximum": 2000},
            "mode": {"enum": ["head", "tail"]},
            "filter": {"type": "object", "properties": {"level": {"type": "string"}}, "additionalProperties": false},
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    let ran = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ran);
    let turn = turn([entry(
        define("read").input_schema(schema),
        tool_fn(move |_: Value, _| {
            seen.store(true, Ordering::SeqCst);
            async { "ran" }
        }),
    )]);
    let result = call(
        &turn,
        "read",
        json!({"pth": "a.txt", "lines": 5000, "mode": "tial", "filter": {"levle": 1}}),
    )
    .await;
    assert_eq!(result.error_kind(), Some(ErrorKind::InvalidArgs));
    let text = result.text();
    for expected in [
        "Error executing read: the arguments do not fit the tool's schema in 5 places",
        "- /path: required and missing (expected a string)",
        "- /pth: there is no such property, got \"a.txt\"; did you mean `path`?",
        "- /lines: expected at most 2000, got 5000",
        "- /mode: expected one of \"head\", \"tail\", got \"tial\"; did you mean `tail`?",
        "- /filter/levle: there is no such property, got 1; did you mean `level`?",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in:\n{text}");
    }
    assert!(!ran.load(Ordering::SeqCst), "a refused call runs nothing");
}

#[tokio::test]
async fn a_format_annotates_in_every_draft_unless_the_definition_says_assert() {
    for draft in
        ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]
    {
        // The pattern rules out the fast path.
        let when = json!({"type": "string", "format": "date", "pattern": "^t"});
        let schema = json!({"$schema": draft, "properties": {"when": when}});
        let lenient = define("lenient").input_schema(schema.clone());
        let strict = define("strict").input_schema(schema).assert_formats(true);
        let turn = turn([echo(lenient), echo(strict)]);
        let result = call(&turn, "lenient", json!({"when": "tomorrow"})).await;
        assert!(result.error().is_none(), "{draft}: {}", result.text());
        let result = call(&turn, "strict", json!({"when": "tomorrow"})).await;
        assert_eq!(result.error().map(ToolError::kind), Some(ErrorKind::InvalidArgs), "{draft}");
    }
}

#[tokio::test]
async fn broken_json_is_answered_with_the_place() {
    let turn = turn([echo(define("echo"))]);
    let result = turn.call(ToolCall::new("1", "echo", "{\"a\": tru}")).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::InvalidJson));
    assert!(
        result.text().contains("expected a JSON value, found `t` at character 7"),
        "{}",
        result.text()
    );
}

#[tokio::test]
async fn arguments_nested_as_deeply_as_allowed_reach_the_tool() {
    let turn = turn([echo(define("echo").input_schema(json!({})))]);
    let nested = |levels: usize| format!("{{\"x\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    let deepest = turn.call(ToolCall::new("1", "echo", nested(127))).await;
    assert!(deepest.is_success(), "{}", deepest.text());
    assert!(deepest.data().is_some_and(|data| data["x"].is_array()));
    let deeper = turn.call(ToolCall::new("2", "echo", nested(128))).await;
    assert_eq!(deeper.error_kind(), Some(ErrorKind::InvalidJson));
}

#[tokio::test]
async fn arguments_that_are_not_an_object_are_refused() {
    let turn = turn([echo(define("echo"))]);
    for arguments in ["[]", "1", "null", "\"text\""] {
        let result = turn.call(ToolCall::new("1", "echo", arguments)).await;
        assert_eq!(result.error_kind(), Some(ErrorKind::InvalidArgs), "{arguments}");
    }
    assert!(turn.call(ToolCall::new("1", "echo", "")).await.is_success(), "empty text is {{}}");
}

#[tokio::test]
async fn the_tool_sees_what_was_validated() {
    let schema = json!({"properties": {"n": {"type": "integer"}, "unit": {"default": "km"}}});
    let turn = turn([echo(define("echo").input_schema(schema))]);
    let result = call(&turn, "echo", json!({"n": 5.0, "_secret": true})).await;
    assert_eq!(result.data(), Some(&json!({"n": 5, "unit": "km"})));
}

#[tokio::test]
async fn injected_values_come_from_the_host_only() {
    let read = entry(
        define("read")
            .input_schema(json!({"properties": {"path": {}, "project_id": {}}, "additionalProperties": false}))
            .injections(vec![Injection::new("project_id", "project_id")]),
        tool_fn(|args: Value, cx: CallContext| async move {
            json!({"args": args, "project": cx.injected("project_id")})
        }),
    );
    let executor = executor([read]);
    let hostile = json!({"path": "a", "project_id": "other"});

    let missing = call(&executor.turn(TurnOptions::default()), "read", hostile.clone()).await;
    assert_eq!(missing.error_kind(), Some(ErrorKind::MissingContext));

    let values = ContextValues::new().with("project_id", "mine");
    let turn = executor.turn(TurnOptions::default().values(values));
    let result = call(&turn, "read", hostile).await;
    assert_eq!(result.data(), Some(&json!({"args": {"path": "a"}, "project": "mine"})));
}

#[tokio::test]
async fn a_schema_that_cannot_be_compiled_fails_its_own_calls_only() {
    let bad = json!({"properties": {"a": {"pattern": "("}}});
    let turn = turn([echo(define("bad").input_schema(bad)), says("fine", "ok")]);
    for _ in 0..2 {
        let result = call(&turn, "bad", json!({"a": "x"})).await;
        assert_eq!(result.error_kind(), Some(ErrorKind::Internal));
    }
    assert!(call(&turn, "fine", json!({})).await.is_success());
}

#[tokio::test]
async fn text_that_nearly_is_json_is_mended_and_the_result_says_so() {
    let schema = json!({"properties": {"path": {"type": "string"}}, "required": ["path"]});
    let writes = echo(define("writes").input_schema(schema.clone()));
    let reads = echo(define("reads").input_schema(schema).read_only(true));
    let turn = turn([writes, reads]);
    let mended = turn.call(ToolCall::new("1", "writes", "```json\n{\"path\": \"a\",}\n```")).await;
    assert_eq!(mended.data(), Some(&json!({"path": "a"})));
    let notes = &mended.output().expect("output").meta()["repaired"];
    assert_eq!(notes, &json!(["removed a code fence", "removed a trailing comma"]));

    let cut_off = r#"{"path": "src/ma"#;
    let refused = turn.call(ToolCall::new("2", "writes", cut_off)).await;
    assert_eq!(refused.error_kind(), Some(ErrorKind::InvalidJson));
    assert!(refused.text().contains("the arguments look cut off"), "{}", refused.text());
    assert!(turn.call(ToolCall::new("3", "reads", cut_off)).await.is_success());
}

#[tokio::test]
async fn a_value_of_the_wrong_type_is_coerced_where_the_schema_wants_it() {
    let schema = json!({
        "properties": {
            "flag": {"type": "boolean"},
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "name": {"type": "string"},
            "names": {"type": "array", "items": {"type": "integer"}},
            "filter": {"type": "object", "properties": {"deep": {"type": "boolean"}}},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
            "level": {"enum": [1, 2, "3"]},
            "unused": {"type": "string"},
        },
        "additionalProperties": false,
    });
    let turn = turn([echo(define("echo").input_schema(schema))]);
    for (given, expected) in [
        (
            json!({"flag": "true", "count": "5", "ratio": "0.5"}),
            json!({"flag": true, "count": 5, "ratio": 0.5}),
        ),
        (json!({"name": 12}), json!({"name": "12"})),
        (json!({"name": "true"}), json!({"name": "true"})),
        (json!({"names": "[1, \"2\"]"}), json!({"names": [1, 2]})),
        (json!({"names": 7}), json!({"names": [7]})),
        (json!({"filter": "{\"deep\": \"false\"}"}), json!({"filter": {"deep": false}})),
        (json!({"maybe": "4"}), json!({"maybe": 4})),
        (json!({"level": "2"}), json!({"level": 2})),
        (json!({"level": 3}), json!({"level": "3"})),
        (json!({"unused": null}), json!({})),
    ] {
        let result = call(&turn, "echo", given.clone()).await;
        assert_eq!(result.data(), Some(&expected), "{given}: {}", result.text());
    }
    // Some hosts encode arguments twice.
    let twice = turn.call(ToolCall::new("1", "echo", r#""{\"count\": 5}""#)).await;
    assert_eq!(twice.data(), Some(&json!({"count": 5})));
    let noted = call(&turn, "echo", json!({"flag": "true"})).await;
    assert_eq!(noted.output().expect("output").meta()["coerced"], json!(["/flag became boolean"]));
    for given in [
        json!({"flag": "yes"}),
        json!({"count": "5.5"}),
        json!({"count": true}),
        json!({"names": {"a": 1}}),
        json!({"flag": "true", "extra": 1}),
    ] {
        let result = call(&turn, "echo", given.clone()).await;
        assert_eq!(result.error_kind(), Some(ErrorKind::InvalidArgs), "{given}");
    }
}
