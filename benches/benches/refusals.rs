//! Processor time of wrong arguments beside right ones, for every way in which arguments are refused.
//!
//! `cargo bench -p toolcrib-benches --bench refusals [-- PART OF A NAME …]`
//!
//! Limits: 4 MiB of wrong arguments take at most 3 times as long as 4 MiB of right ones, and twice as
//! many at most 2.3 times as long. The program fails if a limit is missed.
//!
//! glibc gives every allocation above 32 MiB fresh pages from the system and keeps smaller ones: the time
//! of the system would be counted for 8 MiB of arguments and not for 4. The program starts itself anew
//! with settings under which memory is kept whatever its size.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]
#![expect(clippy::expect_used, reason = "a bench that cannot be set up fails")]
#![expect(clippy::disallowed_methods, reason = "it starts itself, with other settings")]

use std::fmt::Write as _;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use toolcrib_core::{Executor, ExecutorConfig, Registry, RegistryBuilder, Turn, TurnOptions};
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, Constraint, ContextValues, Layer, Source, Tool, ToolCall,
    ToolDefinition, ToolEntry, ToolError, ToolOutcome,
};

const SIZE: usize = 4 << 20;
/// Rounds of each measurement; the fastest counts.
const ROUNDS: usize = 8;
/// How long a round takes at least: the system counts a thread's time in steps of 4 ms.
const ROUND: Duration = Duration::from_millis(120);
/// How memory is kept: the settings of glibc, and their values.
const KEEPING: [(&str, &str); 2] =
    [("MALLOC_MMAP_MAX_", "0"), ("MALLOC_TRIM_THRESHOLD_", "68719476736")];
const MOST_TO_RIGHT: f64 = 3.0;
const MOST_TO_HALF: f64 = 2.3;

/// A way to be wrong, and the same work for arguments that are right.
struct Case {
    name: &'static str,
    right: Value,
    wrong: Value,
    /// The arguments of about so many bytes that are right, and those that are wrong.
    texts: fn(usize) -> (String, String),
    constrained: bool,
}

/// Refuses everything.
#[derive(Debug)]
struct Never;

impl Constraint for Never {
    fn check(&self, _: &Arguments, _: &ContextValues) -> Result<(), ToolError> {
        Err(ToolError::invalid_args("never"))
    }
}

/// Does nothing with its arguments.
#[derive(Debug)]
struct Done;

impl Tool for Done {
    fn call<'a>(
        &'a self,
        _: Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async { Ok(ToolOutcome::Done("done".into())) })
    }
}

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    if let Some(ended) = started_anew() {
        return ended;
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    println!("| refused for | right | wrong | ratio | twice as much | growth | |");
    println!("|---|---:|---:|---:|---:|---:|---|");
    let mut missed = 0;
    for case in cases() {
        if asked.is_empty() || asked.iter().any(|part| case.name.contains(part.as_str())) {
            missed += usize::from(!shown(&runtime, &case));
        }
    }
    println!("\n{missed} missed");
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the program with the settings under which memory is kept; `None` if it has them.
fn started_anew() -> Option<ExitCode> {
    if std::env::var_os(KEEPING[0].0).is_some() {
        return None;
    }
    let mut anew = Command::new(std::env::current_exe().expect("a program has a path"));
    let ended = anew.args(std::env::args_os().skip(1)).envs(KEEPING).status();
    Some(if ended.expect("it starts").success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints one row; whether it is within the limits.
fn shown(runtime: &Runtime, case: &Case) -> bool {
    let (accepting, refusing) = (turn(&case.right, false), turn(&case.wrong, case.constrained));
    let (right, wrong) = (case.texts)(SIZE);
    let (_, twice) = (case.texts)(2 * SIZE);
    let right = fastest(runtime, &accepting, &right, true);
    let wrong = fastest(runtime, &refusing, &wrong, false);
    let twice = fastest(runtime, &refusing, &twice, false);
    let ratio = wrong.as_secs_f64() / right.as_secs_f64();
    let growth = twice.as_secs_f64() / wrong.as_secs_f64();
    let holds = ratio <= MOST_TO_RIGHT && growth <= MOST_TO_HALF;
    let verdict = if holds { "" } else { "missed" };
    println!(
        "| {} | {right:.1?} | {wrong:.1?} | {ratio:.2} | {twice:.1?} | {growth:.2} | {verdict} |",
        case.name
    );
    holds
}

fn turn(schema: &Value, constrained: bool) -> Turn {
    let definition = ToolDefinition::builder("echo")
        .description("A tool for a bench.")
        .input_schema(schema.clone())
        .build()
        .expect("a definition");
    let entry = ToolEntry::new(definition, Arc::new(Done), Source::new(Layer::Host, "bench"));
    let entry = if constrained { entry.with_constraint(Arc::new(Never)) } else { entry };
    let mut builder = RegistryBuilder::new();
    let _ = builder.register(entry);
    let executor = Executor::new(Registry::new(builder.build()), ExecutorConfig::default());
    executor.turn(TurnOptions::default())
}

fn fastest(runtime: &Runtime, turn: &Turn, text: &str, succeeds: bool) -> Duration {
    let once = || {
        let call = ToolCall::new("1", "echo", text.to_owned());
        let result = runtime.block_on(turn.call(call));
        assert_eq!(result.is_success(), succeeds, "{:.300}", result.text());
    };
    let round = || {
        let (before, mut calls) = (processor_time(), 0);
        loop {
            once();
            calls += 1;
            let spent = processor_time().saturating_sub(before);
            if spent >= ROUND {
                return spent / calls;
            }
        }
    };
    once();
    (0..ROUNDS).map(|_| round()).min().unwrap_or_default()
}

/// What this thread has had of its processor.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    let nanoseconds = text.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanoseconds.expect("a number"))
}

fn list(item: &str, bytes: usize) -> String {
    let count = bytes / (item.len() + 1);
    format!(r#"{{"n":[{}]}}"#, vec![item; count].join(","))
}

fn members(bytes: usize) -> String {
    let mut text = String::from("{");
    while text.len() < bytes {
        let separator = if text.len() == 1 { "" } else { "," };
        let _ = write!(text, r#"{separator}"k{:07}":1"#, text.len());
    }
    text + "}"
}

fn nested(bytes: usize) -> String {
    let depth = 120;
    format!(r#"{{"n":{}{}1{}}}"#, "[".repeat(depth), "1,".repeat(bytes / 2), "]".repeat(depth))
}

fn same(text: String) -> (String, String) {
    (text.clone(), text)
}

#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn cases() -> Vec<Case> {
    let case = |name, right, wrong, texts| Case { name, right, wrong, texts, constrained: false };
    let n = |schema: Value| json!({"properties": {"n": schema}});
    let items = |schema: Value| json!({"properties": {"n": {"items": schema}}});
    let words: Vec<_> = (0..100).map(|number| format!("word{number}")).collect();
    let more_words: Vec<_> = words.iter().cloned().chain(["word1x".to_owned()]).collect();
    let list_of = |leaf: Value| {
        json!({
            "$defs": {"list": {"anyOf": [
                leaf,
                {"type": "array", "items": {"$ref": "#/$defs/list"}},
            ]}},
            "properties": {"n": {"$ref": "#/$defs/list"}},
        })
    };
    let either = |last: Value| {
        items(json!({"anyOf": [
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"]},
            {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a", "c"]},
            last,
        ]}))
    };
    let mut cases = vec![
        case(
            "unknown properties",
            json!({"properties": {"path": {}}, "additionalProperties": {"type": "integer"}}),
            json!({"properties": {"path": {}}, "additionalProperties": false}),
            |bytes| same(members(bytes)),
        ),
        case(
            "unevaluated properties",
            json!({"unevaluatedProperties": {"type": "integer"}}),
            json!({"unevaluatedProperties": false}),
            |bytes| same(members(bytes)),
        ),
        case(
            "names of properties",
            json!({"propertyNames": {"pattern": "^[a-k0-9]+$"}}),
            json!({"propertyNames": {"pattern": "^[a-j]+$"}}),
            |bytes| same(members(bytes)),
        ),
        case(
            "wrong types",
            items(json!({"type": "integer"})),
            items(json!({"type": "object"})),
            |bytes| same(list("1", bytes)),
        ),
        case(
            "texts that could be integers",
            items(json!({"type": "string"})),
            items(json!({"type": "integer"})),
            |bytes| same(list(r#""1""#, bytes)),
        ),
        case(
            "a few texts that could be integers, and one that could not",
            items(json!({})),
            items(json!({"type": ["integer", "null"]})),
            |bytes| {
                let text = list("1", bytes);
                let texts = r#""1","#.repeat(5_000);
                same(text.replacen("[1,", &format!(r#"["x",{texts}"#), 1))
            },
        ),
        case(
            "numbers that could be texts",
            items(json!({"type": "integer"})),
            items(json!({"type": "string"})),
            |bytes| same(list("1", bytes)),
        ),
        case(
            "null in place of texts",
            items(json!({"type": "null"})),
            items(json!({"type": "string"})),
            |bytes| same(list("null", bytes)),
        ),
        case(
            "missing properties",
            items(json!({"type": "object"})),
            items(json!({"required": ["a", "b", "c"]})),
            |bytes| same(list("{}", bytes)),
        ),
        case(
            "words that are not listed",
            items(json!({"enum": more_words})),
            items(json!({"enum": words})),
            |bytes| same(list(r#""word1x""#, bytes)),
        ),
        case(
            "a large value in place of a word",
            n(json!({"items": {"type": "object"}})),
            n(json!({"enum": ["a", {"a": 1}, [1]]})),
            |bytes| same(list(r#"{"a":1}"#, bytes)),
        ),
        case(
            "patterns",
            items(json!({"pattern": "^(a+)+!$"})),
            items(json!({"pattern": "^(a+)+$"})),
            |bytes| same(list(r#""aaaaaaaaaaaa!""#, bytes)),
        ),
        case(
            "a long text",
            n(json!({"pattern": "^(x+x+)+$", "minLength": 1})),
            n(json!({"pattern": "^(x+x+)+y$", "minLength": 1})),
            |bytes| same(format!(r#"{{"n":"{}"}}"#, "x".repeat(bytes))),
        ),
        case(
            "equal items",
            n(json!({"items": {"items": {"type": "array"}}})),
            n(json!({"items": {"items": {"type": "array"}}, "uniqueItems": true})),
            |bytes| same(list("[[],[[]]]", bytes)),
        ),
        case(
            "alternatives",
            either(json!({"properties": {"a": {"type": "boolean"}}})),
            either(json!({"type": "string"})),
            |bytes| same(list(r#"{"a":true}"#, bytes)),
        ),
        case(
            "alternatives in alternatives",
            list_of(json!({"type": "integer"})),
            list_of(json!({"type": "string"})),
            |bytes| same(nested(bytes)),
        ),
        case("deep values", n(json!({"type": "array"})), n(json!({"type": "string"})), |bytes| {
            same(nested(bytes))
        }),
        case("keys given twice", json!({}), json!({}), |bytes| {
            let text = members(bytes);
            let twice = format!(r#"{},"k0000001":1}}"#, text.trim_end_matches('}'));
            (text, twice)
        }),
        case(
            "a long name over many values",
            json!({"additionalProperties": {"items": {"type": "integer"}}}),
            json!({"additionalProperties": {"items": {"type": "string"}}}),
            |bytes| {
                let (name, values) = ("x".repeat(bytes / 2), "1,".repeat(bytes / 4));
                same(format!(r#"{{"{name}":[{values}1]}}"#))
            },
        ),
        case("cut off", json!({}), json!({}), |bytes| {
            let text = list("1", bytes);
            let cut = text[..text.len() - 2].to_owned();
            (text, cut)
        }),
        case("illegal escapes", json!({}), json!({"maxProperties": 0}), |bytes| {
            let right = format!(r#"{{"a":"{}"}}"#, r"\\d".repeat(bytes / 3));
            (right, format!(r#"{{"a":"{}"}}"#, r"\d".repeat(bytes / 2)))
        }),
        case("trailing commas", json!({}), json!({"maxProperties": 0}), |bytes| {
            let right = format!(r#"{{"a":[{}1]}}"#, "[1, 1],".repeat(bytes / 7));
            (right, format!(r#"{{"a":[{}1]}}"#, "[1,  ],".repeat(bytes / 7)))
        }),
        case("too deep", json!({}), json!({}), |bytes| (nested(bytes), "[".repeat(bytes))),
    ];
    cases.push(Case {
        constrained: true,
        ..case("a constraint", json!({}), json!({}), |bytes| same(list("1", bytes)))
    });
    cases
}
