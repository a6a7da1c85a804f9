//! Numbers that no machine type can hold stay as written in calls and answers.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use toolcrib_core::masking::Mask;
use toolcrib_core::meta::meta_entries;
use toolcrib_core::policy::{ArgumentPattern, OnAsk, Policy, PolicyRule};
use toolcrib_core::spill::{MemorySpill, SpillLimits, read_output_entry};
use toolcrib_core::{Executor, ExecutorConfig, Registry, TurnOptions};
use toolcrib_testkit::recording::{Recorder, Recording, Replay};
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, Data, Tool, ToolCall, ToolError, ToolOutcome, ToolOutput,
    ToolResult,
};

use crate::harness::{define, entry, registry};

const AWKWARD: &str = r#"{"a":[18446744073709551616,-9223372036854775809,0.1000000000000000055,
    123456789012345678901234567890,0.80000000000000004,4.9e-324,1.00000000000000000001,1e-400],"b":{"c":[-0.0,1E5,3,-12.5]}}"#;

/// Answers with its arguments as data.
#[derive(Debug)]
struct Echo;

impl Tool for Echo {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async move {
            let data = Data::from_json(arguments.as_str())?;
            Ok(ToolOutcome::Done(ToolOutput::from(data)))
        })
    }
}

fn echo() -> Registry {
    let definition = define("echo").input_schema(json!({})).output_schema(json!({}));
    registry(meta_entries().into_iter().chain([entry(definition, Echo)]))
}

fn data(text: &str) -> Data {
    Data::from_json(text).expect("it is JSON")
}

/// The values of the numbers in a JSON text: the sign, the digits, and the power of ten of the last digit. `100`,
/// `100.0` and `1e2` are the same number, and so are all zeros.
fn meaning(text: &str) -> Vec<(bool, String, i64)> {
    let is_number =
        |word: &&str| word.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    let words = text.split(|char: char| "[]{},: \n".contains(char)).filter(is_number);
    let number = |number: &str| {
        let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{}{fraction}", whole.trim_start_matches('-'));
        let shown = digits.trim_start_matches('0').trim_end_matches('0').to_owned();
        let zeros = digits.len() - digits.trim_end_matches('0').len();
        let places = |count: usize| i64::try_from(count).expect("a short number");
        let moved = places(zeros) - places(fraction.len());
        match shown.as_str() {
            "" => (false, shown, 0),
            _ => {
                (number.starts_with('-'), shown, exponent.parse::<i64>().expect("a power") + moved)
            }
        }
    };
    words.map(number).collect()
}

#[track_caller]
fn is_kept(result: &ToolResult, written: &str) {
    let exact = result.exact_data().expect("data");
    assert_eq!(meaning(&exact.to_json()), meaning(written));
    assert_eq!(result.text(), exact.to_json());
    let record = result.to_json();
    assert!(record.contains(&format!(r#""data":{}"#, exact.to_json())), "{record}");
    let kept = serde_json::to_string(result).expect("it is plain data");
    assert_eq!(&serde_json::from_str::<ToolResult>(&kept).expect("it is read"), result);
}

async fn goes_everywhere(written: &str) {
    let registry = echo();
    let executor = Executor::new(echo(), ExecutorConfig::default());
    let turn = executor.turn(TurnOptions::default());
    is_kept(&turn.call(ToolCall::new("1", "echo", written)).await, written);
    let nested = format!(r#"{{"name":"echo","arguments":{written}}}"#);
    let nested = turn.call(ToolCall::new("2", "tool_call", nested)).await;
    assert_eq!(meaning(&nested.text()), meaning(written));

    let recorder = Recorder::new();
    let wrapped = Registry::new(recorder.wrap(&registry.snapshot()));
    let wrapped = Executor::new(wrapped, ExecutorConfig::default());
    wrapped.turn(TurnOptions::default()).call(ToolCall::new("3", "echo", written)).await;
    let text = recorder.recording().to_jsonl();
    let read = Recording::from_jsonl(&text).expect("it was recorded");
    assert_eq!(read, recorder.recording());
    assert_eq!(read.to_jsonl(), text);
    let replayed = Registry::new(Replay::new(read).wrap(&registry.snapshot()));
    let replayed = Executor::new(replayed, ExecutorConfig::default());
    let turn = replayed.turn(TurnOptions::default());
    is_kept(&turn.call(ToolCall::new("4", "echo", written)).await, written);
}

#[tokio::test]
async fn awkward_numbers_stay_as_they_were_written() {
    goes_everywhere(AWKWARD).await;
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?",
        "-?[1-9][0-9]{15,22}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_number_stays_as_it_was_written(numbers in proptest::collection::vec(number(), 1..20)) {
        let written = format!(r#"{{"numbers":[{}]}}"#, numbers.join(","));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(goes_everywhere(&written));
    }
}

#[tokio::test]
async fn numbers_out_of_range_are_refused() {
    let executor = Executor::new(echo(), ExecutorConfig::default());
    let turn = executor.turn(TurnOptions::default());
    let refused = turn.call(ToolCall::new("1", "echo", r#"{"n":1e400}"#)).await;
    assert!(refused.text().contains("not valid JSON"), "{}", refused.text());
}

#[tokio::test]
async fn a_spilled_output_has_its_numbers() {
    let store = Arc::new(MemorySpill::new(SpillLimits::default()));
    let registry = registry([
        read_output_entry(store.clone()),
        entry(define("echo").input_schema(json!({})), Echo),
    ]);
    let mut config = ExecutorConfig::default();
    config.output_chars = 100;
    let turn = Executor::builder(registry).config(config).spill(store).build();
    let turn = turn.turn(TurnOptions::default());
    let written = format!(r#"{{"numbers":[{}1]}}"#, "123456789012345678901,".repeat(50));
    let cut = turn.call(ToolCall::new("1", "echo", written.as_str())).await;
    let text = cut.text();
    let handle = text.split("\"handle\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let page = json!({"handle": handle.expect("a handle"), "limit": 2_000}).to_string();
    let page = turn.call(ToolCall::new("2", "read_output", page)).await;
    assert!(page.text().starts_with(&written[..90]), "{}", page.text());
}

#[tokio::test]
async fn a_masked_number_is_a_string_and_the_others_stay() {
    let mask = Mask::new(["567890123456".to_owned()]).expect("a mask");
    let output =
        ToolOutput::from(data(r#"{"a":[123456789012345678901],"b":99999999999999999999}"#));
    let masked = mask.output(output);
    let shown = masked.exact_data().expect("data").to_json();
    assert!(
        shown.contains("\"b\":99999999999999999999") && !shown.contains("567890123456"),
        "{shown}"
    );
    assert!(shown.starts_with("{\"a\":[\"1234"), "{shown}");
    assert_eq!(masked.data().expect("data")["a"][0], data(&shown).value()["a"][0]);
}

#[tokio::test]
async fn a_rule_about_the_text_of_a_number_sees_its_digits() {
    let digits = ArgumentPattern::regex("^123456789012345678901$");
    let rule = PolicyRule::deny().argument("id", digits);
    let policy = Policy::new(OnAsk::default(), [rule]).expect("a policy");
    let executor = Executor::new(echo(), ExecutorConfig::default());
    let turn = executor.turn(TurnOptions::default().scope(policy));
    let call = |id: &str| turn.call(ToolCall::new("1", "echo", format!(r#"{{"id":{id}}}"#)));
    assert!(!call("123456789012345678901").await.is_success());
    assert!(call("123456789012345678902").await.is_success());
}

/// The verdict of a schema on a number in the argument `n`: the text that the tool got, or why the call was refused.
async fn judged(schema: serde_json::Value, number: &str) -> Result<String, String> {
    let input = json!({"properties": {"n": schema}, "required": ["n"]});
    let definition = define("echo").input_schema(input).output_schema(json!({}));
    let executor = Executor::new(registry([entry(definition, Echo)]), ExecutorConfig::default());
    let turn = executor.turn(TurnOptions::default());
    let result = turn.call(ToolCall::new("1", "echo", format!(r#"{{"n":{number}}}"#))).await;
    if result.is_success() {
        let text = result.text();
        let number = text.trim_start_matches(r#"{"n":"#).trim_end_matches('}');
        return Ok(number.to_owned());
    }
    let error = result.to_json();
    assert!(error.contains("/n"), "the refusal names the place: {error}");
    Err(result.text().into_owned())
}

#[tokio::test]
async fn a_number_is_compared_by_its_exact_value() {
    let big = 9_007_199_254_740_993_u64;
    for (schema, refused) in [
        (json!({"type": "integer"}), "9007199254740993.5"),
        (json!({"type": "integer"}), "1.00000000000000000001"),
        (json!({"type": "integer"}), "1e-400"),
        (json!({"type": "integer"}), "4503599627370496.00000001"),
        (json!({"maximum": 100}), "100.00000000000000001"),
        (json!({"maximum": 0.1}), "0.10000000000000000001"),
        (json!({"exclusiveMaximum": 100}), "100.000"),
        (json!({"maximum": big - 1}), "9007199254740992.9"),
        (json!({"maximum": u64::MAX}), "18446744073709551616"),
        (json!({"minimum": big}), "9007199254740992.9"),
        (json!({"minimum": 0}), "-1e-400"),
        (json!({"minimum": 0}), "-1e-99999999999999999999"),
        (json!({"exclusiveMinimum": 0}), "-0.0"),
        (json!({"enum": [1]}), "1.00000000000000000001"),
        (json!({"enum": [1, 2, 3]}), "0.99999999999999999999"),
        (json!({"enum": [-5]}), "-5.00000000000000000001"),
        (json!({"enum": [1.5]}), r#""1.50000000000000000001""#),
        (json!({"const": 5}), "5.00000000000000000001"),
        (json!({"const": big}), "9007199254740992.0"),
        (json!({"const": [[1], {"a": 2}]}), r#"[[1],{"a":2.00000000000000000001}]"#),
        (json!({"anyOf": [{"maximum": 100}, {"minimum": 101}]}), "100.00000000000000001"),
        (json!({"not": {"exclusiveMinimum": 100}}), "100.00000000000000001"),
        (
            json!({"$ref": "#/properties/n/$defs/few", "$defs": {"few": {"maximum": 1}}}),
            "1.00000000000000000001",
        ),
    ] {
        let verdict = judged(schema.clone(), refused).await;
        assert!(verdict.is_err(), "{schema} takes {refused}: {verdict:?}");
    }
    for (schema, taken) in [
        (json!({"type": "integer"}), "123456789012345678901234567890"),
        (json!({"type": "integer"}), "9007199254740993.0"),
        (json!({"type": "integer", "minimum": 0}), "123456789012345678901234567890"),
        (json!({"type": "number", "minimum": 0, "maximum": 1}), "0.1000000000000000055"),
        (json!({"maximum": 100}), "99.99999999999999999999"),
        (json!({"exclusiveMaximum": 100}), "99.99999999999999999999"),
        (json!({"exclusiveMinimum": 100}), "100.00000000000000001"),
        (json!({"exclusiveMinimum": 0}), "1e-400"),
        (json!({"minimum": big}), "9007199254740993"),
        (json!({"minimum": u64::MAX}), "18446744073709551615.5"),
        (json!({"const": big}), "9007199254740993"),
        (json!({"not": {"const": 5}}), "5.00000000000000000001"),
        (json!({"const": [[1], {"a": 2}]}), r#"[[1],{"a":2}]"#),
        (json!({"multipleOf": 0.1}), "0.3"),
        (json!({"multipleOf": 10}), "100000000000000000000"),
    ] {
        assert_eq!(judged(schema.clone(), taken).await.as_deref(), Ok(taken), "{schema}");
    }
}

#[tokio::test]
async fn a_number_that_cannot_be_compared_exactly_is_refused() {
    // No double lies between the two bounds, but the number does.
    let adjacent = json!({"anyOf": [{"maximum": 1.0}, {"minimum": 1.000_000_000_000_000_2}]});
    for (schema, number) in [
        // A bound written as a fraction is compared as a double, and no double equals this one.
        (json!({"minimum": 9_007_199_254_740_993_u64}), "9007199254740993.0"),
        (json!({"multipleOf": 10}), "10.00000000000000000001"),
        (json!({"multipleOf": 0.5}), "9007199254740993"),
        (json!({"not": {"multipleOf": 10}}), "10.00000000000000000001"),
        (adjacent, "1.0000000000000001"),
    ] {
        let refused = judged(schema.clone(), number).await.expect_err("it is refused");
        assert!(refused.contains("too many digits"), "{schema}: {refused}");
    }
}

proptest! {
    #[test]
    fn bounds_hold_to_the_last_digit(number in number(), limit in prop_oneof![-200.0..200.0_f64, Just(0.0), Just(100.0)]) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let order = toolcrib_json::exact::compare(&number, &limit.to_string()).expect("two numbers");
        for (keyword, fits) in [
            ("minimum", order.is_ge()),
            ("maximum", order.is_le()),
            ("exclusiveMinimum", order.is_gt()),
            ("exclusiveMaximum", order.is_lt()),
            ("const", order.is_eq()),
        ] {
            let taken = runtime.block_on(judged(json!({keyword: limit}), &number));
            prop_assert_eq!(taken.is_ok(), fits, "{} {}: {:?}", keyword, limit, taken);
        }
    }
}
