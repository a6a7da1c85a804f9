//! Arguments from any text: compares the parser with `serde_json`, preparation with a model, and whole calls with a
//! validator that reads a `serde_json::Value`.

use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use tokio::runtime::Runtime;
use toolcrib_core::arguments::prepare::Preparation;
use toolcrib_core::{Executor, ExecutorConfig, Registry, RegistryBuilder, Turn, TurnOptions};
use toolcrib_json::{Cursor, Kind, MAX_DEPTH, Number, Tape, parse};
use toolcrib_tool::{ErrorKind, Layer, Source, ToolCall, ToolDefinition, ToolEntry, tool_fn};

use super::ambiguity;
use super::preparation_model::{definition, prepared, with_whole_numbers};

/// The tested definition, and everything that is made from it once.
struct FuzzedDefinition {
    preparation: Preparation,
    validator: Validator,
    turn: Turn,
}

static SUBJECT: LazyLock<FuzzedDefinition> = LazyLock::new(|| {
    let definition = definition();
    let validator = jsonschema::options()
        .with_pattern_options(PatternOptions::regex())
        .offline()
        .build(definition.input_schema())
        .expect("a valid schema");
    FuzzedDefinition {
        preparation: Preparation::of(&definition),
        validator,
        turn: turn(definition),
    }
});

thread_local! {
    static RUNTIME: RefCell<Runtime> = RefCell::new(
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime"),
    );
}

fn turn(definition: ToolDefinition) -> Turn {
    let echo = tool_fn(|args: Value, _| async move { args });
    let mut builder = RegistryBuilder::new();
    let _ = builder.register(ToolEntry::new(
        definition,
        Arc::new(echo),
        Source::new(Layer::Host, "fuzzing"),
    ));
    let mut config = ExecutorConfig::default();
    // The echo may be as long as the input.
    config.data_bytes = usize::MAX;
    Executor::new(Registry::new(builder.build()), config).turn(TurnOptions::default())
}

/// Any bytes as the arguments of a call. Promises:
///
/// - The parser accepts exactly the JSON texts that `serde_json` accepts, except duplicate keys and more than
///   [`MAX_DEPTH`] levels, and its tape contains what `serde_json` reads.
/// - A rewritten text parses, is not rewritten again, and has the model's meaning.
/// - A call succeeds unchanged exactly if the model's value fits the schema by a validator that reads it as a `Value`,
///   and the tool then sees that value. Otherwise it is refused, or corrected to arguments that fit, and the result
///   says so.
pub fn parse_arguments(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let theirs = ambiguity::read(text);
    let tape = match parse(text) {
        Ok(tape) => tape,
        Err(error) => {
            assert!(error.offset <= text.len(), "{error:?} lies outside of the text");
            assert!(!error.problem.is_empty());
            if let Ok(value) = &theirs {
                let depth = ambiguity::depth(value);
                assert!(depth > MAX_DEPTH, "{text:?} is JSON, and refused: {error}");
            }
            if !text.trim().is_empty() {
                assert_refused_or_mended(text, call(text));
            }
            return;
        }
    };
    let value = theirs.unwrap_or_else(|error| panic!("{text:?} is accepted, and it is {error}"));
    let depth = ambiguity::depth(&value);
    assert!(depth <= MAX_DEPTH, "{depth} levels are accepted");
    assert_same(tape.root(), &value);

    let expected = prepared(&value);
    assert_rewriting(&tape, &value, &expected);
    assert_call(text, &expected);
}

/// The tape under a cursor contains what `serde_json` reads.
fn assert_same(cursor: Cursor<'_>, value: &Value) {
    let same = match (cursor.kind(), value) {
        (Kind::Null, Value::Null)
        | (Kind::True, Value::Bool(true))
        | (Kind::False, Value::Bool(false)) => true,
        (kind, Value::Number(number)) => {
            let whole = number.as_f64().is_some_and(|double| double.fract() == 0.0);
            let fits = match kind {
                Kind::Float => number.is_f64(),
                _ => whole && (kind.is_integer() || kind == Kind::IntegralFloat),
            };
            fits && match cursor.number() {
                Some(Number::Unsigned(value)) => number.as_u64() == Some(value),
                Some(Number::Negative(value)) => number.as_i64() == Some(value),
                Some(Number::Float(value)) => number.is_f64() && number.as_f64() == Some(value),
                None => false,
            }
        }
        (Kind::String | Kind::EscapedString, Value::String(text)) => {
            cursor.as_str().as_deref() == Some(text) && cursor.equals(text)
        }
        (Kind::Array, Value::Array(items)) => {
            let children: Vec<_> = cursor.items().collect();
            assert_eq!((children.len(), cursor.len()), (items.len(), items.len()));
            children.into_iter().zip(items).for_each(|(child, item)| assert_same(child, item));
            true
        }
        (Kind::Object, Value::Object(members)) => {
            assert_eq!((cursor.members().count(), cursor.len()), (members.len(), members.len()));
            for (name, child) in cursor.members() {
                let name = name.as_str().expect("a key is a string");
                let member = members.get(name.as_ref()).expect("a key of the object");
                assert_same(child, member);
                assert!(cursor.get(&name).is_some_and(|found| found.span() == child.span()));
            }
            true
        }
        _ => false,
    };
    assert!(same, "{:?} {} stands for {value}", cursor.kind(), cursor.source());
}

fn assert_rewriting(tape: &Tape<'_>, value: &Value, expected: &Value) {
    let preparation = &SUBJECT.preparation;
    let Some(once) = preparation.rewrite(tape) else {
        if value.is_object() {
            assert_eq!(&with_whole_numbers(value.clone()), expected, "nothing was rewritten");
        }
        return;
    };
    let again = parse(&once).unwrap_or_else(|error| panic!("rewritten to {once:?}: {error}"));
    assert_eq!(preparation.rewrite(&again), None, "{once:?} is rewritten once more");
    let rewritten = ambiguity::read(&once).expect("JSON");
    assert_eq!(&with_whole_numbers(rewritten), expected, "rewritten to {once:?}");
}

fn assert_call(text: &str, expected: &Value) {
    let outcome = call(text);
    if SUBJECT.validator.is_valid(expected) {
        let seen = outcome.expect("arguments that fit");
        assert!(!seen.mended, "{text:?} needed no mending");
        assert_eq!(&seen.arguments, expected, "what the tool saw of {text:?}");
    } else {
        assert_refused_or_mended(text, outcome);
    }
}

/// The outcome of a call whose arguments do not fit unchanged: refused, or corrected and reported.
fn assert_refused_or_mended(text: &str, outcome: Result<EchoedCall, ErrorKind>) {
    match outcome {
        Ok(seen) => {
            assert!(seen.mended, "{text:?} was accepted without a word");
            assert!(
                SUBJECT.validator.is_valid(&seen.arguments),
                "the tool saw {} of {text:?}",
                seen.arguments
            );
            let again = call(&seen.arguments.to_string()).expect("what was mended fits");
            assert!(!again.mended, "{text:?} mended is mended once more");
            assert_eq!(again.arguments, seen.arguments, "{text:?} mended changes once more");
        }
        Err(kind) => assert!(
            matches!(kind, ErrorKind::InvalidArgs | ErrorKind::InvalidJson),
            "{text:?} is {kind}"
        ),
    }
}

/// What the echo received, and whether the result says that the text was corrected.
#[derive(Debug)]
struct EchoedCall {
    arguments: Value,
    mended: bool,
}

fn call(text: &str) -> Result<EchoedCall, ErrorKind> {
    let call = ToolCall::new("fuzz", "fuzzed", text);
    let result = RUNTIME.with_borrow(|runtime| runtime.block_on(SUBJECT.turn.call(call)));
    if let Some(error) = result.error() {
        assert!(!result.text().is_empty(), "a failure says why");
        return Err(error.kind());
    }
    let output = result.output().expect("a success has output");
    Ok(EchoedCall {
        arguments: with_whole_numbers(output.data().cloned().expect("the echo answers with data")),
        mended: ["repaired", "coerced"].iter().any(|note| output.meta().contains_key(*note)),
    })
}
