//! Valid arguments are passed on unchanged, even if correction could change them.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_core::Turn;
use toolcrib_tool::{ToolCall, tool_fn};

use crate::harness::{define, entry, turn};

/// Values that look like others: texts that look like numbers, lists and booleans, and these.
fn echo() -> Turn {
    let schema = json!({
        "properties": {
            "text": {"type": "string"},
            "number": {"type": "number"},
            "whole": {"type": "integer"},
            "truth": {"type": "boolean"},
            "texts": {"type": "array", "items": {"type": "string"}},
            "any": {},
            "either": {"type": ["string", "integer", "null"]},
            "inner": {"type": "object", "properties": {"text": {"type": "string"}}},
        },
        "additionalProperties": false,
    });
    turn([entry(define("echo").input_schema(schema), tool_fn(|args: Value, _| async { args }))])
}

fn misleading() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "true",
        "false",
        "null",
        "5",
        "-1.5",
        "1e3",
        "[]",
        "[\"a\"]",
        "{}",
        "{\"a\": 1}",
        "",
        " 7 ",
    ])
    .prop_map(str::to_owned)
}

fn fitting() -> impl Strategy<Value = Value> {
    let anything = prop_oneof![
        misleading().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        prop::collection::vec(misleading(), 0..3).prop_map(Value::from),
    ];
    let either = prop_oneof![
        misleading().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        Just(Value::Null),
    ];
    let scalars = (misleading(), any::<i32>(), any::<bool>());
    let others = (prop::collection::vec(misleading(), 0..3), anything, either, misleading());
    (scalars, others).prop_map(|((text, whole, truth), (texts, any, either, inner))| {
        json!({
            "text": text, "number": f64::from(whole) + 0.5, "whole": whole, "truth": truth,
            "texts": texts, "any": any, "either": either, "inner": {"text": inner},
        })
    })
}

proptest! {
    #[test]
    fn coercion_never_changes_what_fits(arguments in fitting()) {
        let turn = echo();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        let result = runtime.block_on(turn.call(ToolCall::new("1", "echo", arguments.clone())));
        prop_assert_eq!(result.data(), Some(&arguments), "{}", result.text());
        let notes = result.output().map(|output| output.meta().len());
        prop_assert_eq!(notes, Some(0), "nothing was mended");
    }
}
