//! Processor time of wrong arguments beside right ones, for every way in which arguments are refused.
//!
//! `cargo bench -p toolcrib-benches --bench refusals [-- PART OF A NAME …]`
//!
//! Limits: 4 MiB of wrong arguments take at most 3 times as long as 4 MiB of right ones, and twice as
//! many at most 2.3 times as long. The program fails if a limit is missed.
//!
//! They are called in turn, so that whatever else the machine does affects all of them, and the
//! fastest call of each counts. Four times as many are measured too, without a limit: if a row misses its limit
//! from one size to the next and not from that to the one after, a cache was full at that size. An
//! algorithm that is worse than linear grows more with each size.
//!
//! What the system takes to hand out pages is not part of it. glibc keeps what was freed up to some
//! size and returns more than that, so that one size would pay for its pages at each call, and half of
//! it would not. Each case runs in a process of its own, with settings under which memory is kept
//! whatever its size. The bench is for Linux with glibc.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]
#![expect(clippy::expect_used, reason = "a bench that cannot be set up fails")]
#![expect(clippy::disallowed_methods, reason = "it starts itself, with other settings")]

use std::fmt::Write as _;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use toolcrib_core::{Executor, ExecutorConfig, Registry, RegistryBuilder, Turn, TurnOptions};
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, Constraint, ContextValues, Layer, Source, Tool, ToolCall,
    ToolDefinition, ToolEntry, ToolError, ToolOutcome,
};

const SIZE: usize = 4 << 20;
/// How often each is called at least.
const ROUNDS: usize = 25;
/// How often each is called at most. On a machine that has other work, it can take long until each has
/// had a call that nothing disturbed.
const MOST_ROUNDS: usize = 100;
/// How memory is kept: the settings of glibc, and their values.
const KEEPING: [(&str, &str); 2] =
    [("MALLOC_MMAP_MAX_", "0"), ("MALLOC_TRIM_THRESHOLD_", "68719476736")];
/// The variable that names the case of a process of its own.
const CASE: &str = "REFUSALS_CASE";
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
    if let Some(name) = std::env::var_os(CASE) {
        let case = cases().into_iter().find(|case| name.as_os_str() == case.name);
        return if shown(&case.expect("a case of this program")) {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    }
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    println!(
        "| refused for | right | wrong | ratio | twice as much | growth | four times | growth | |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---|");
    let mut missed = 0;
    for case in cases() {
        if asked.is_empty() || asked.iter().any(|part| case.name.contains(part.as_str())) {
            missed += usize::from(!shown_alone(&case));
        }
    }
    println!("\n{missed} missed");
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints one row from a process of its own, whose memory nothing else has used; whether it is within the limits.
fn shown_alone(case: &Case) -> bool {
    let mut alone = Command::new(std::env::current_exe().expect("a program has a path"));
    alone.envs(KEEPING).env(CASE, case.name).status().expect("it starts").success()
}

/// The fastest calls: with right arguments, with wrong ones, with twice as many, and with four times as
/// many.
#[derive(Clone, Copy)]
struct Fastest {
    right: Duration,
    wrong: Duration,
    twice: Duration,
    four_times: Duration,
}

impl Fastest {
    fn ratio(self) -> f64 {
        self.wrong.as_secs_f64() / self.right.as_secs_f64()
    }

    fn growth(self) -> f64 {
        self.twice.as_secs_f64() / self.wrong.as_secs_f64()
    }

    /// From twice as many to four times as many.
    fn further_growth(self) -> f64 {
        self.four_times.as_secs_f64() / self.twice.as_secs_f64()
    }

    fn holds(self) -> bool {
        self.ratio() <= MOST_TO_RIGHT && self.growth() <= MOST_TO_HALF
    }
}

/// Prints one row; whether it is within the limits.
fn shown(case: &Case) -> bool {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let runtime = &runtime;
    let (accepting, refusing) = (turn(&case.right, false), turn(&case.wrong, case.constrained));
    let (right, wrong) = (case.texts)(SIZE);
    let (_, twice) = (case.texts)(2 * SIZE);
    let (_, four_times) = (case.texts)(4 * SIZE);
    let most = Duration::MAX;
    let mut fastest = Fastest { right: most, wrong: most, twice: most, four_times: most };
    for round in 0..MOST_ROUNDS {
        if round >= ROUNDS && fastest.holds() {
            break;
        }
        fastest.right = fastest.right.min(time_of(runtime, &accepting, &right, true));
        fastest.wrong = fastest.wrong.min(time_of(runtime, &refusing, &wrong, false));
        fastest.twice = fastest.twice.min(time_of(runtime, &refusing, &twice, false));
        // Not judged, so a few calls are enough.
        if round % 5 == 0 {
            let time = time_of(runtime, &refusing, &four_times, false);
            fastest.four_times = fastest.four_times.min(time);
        }
    }
    let Fastest { right, wrong, twice, four_times } = fastest;
    println!(
        "| {} | {right:.1?} | {wrong:.1?} | {:.2} | {twice:.1?} | {:.2} | {four_times:.1?} | {:.2} | {} |",
        case.name,
        fastest.ratio(),
        fastest.growth(),
        fastest.further_growth(),
        if fastest.holds() { "" } else { "missed" },
    );
    fastest.holds()
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

/// The processor time of one call.
fn time_of(runtime: &Runtime, turn: &Turn, text: &str, succeeds: bool) -> Duration {
    let call = ToolCall::new("1", "echo", text.to_owned());
    let before = processor_time();
    let result = runtime.block_on(turn.call(call));
    let spent = processor_time().saturating_sub(before);
    assert_eq!(result.is_success(), succeeds, "{:.300}", result.text());
    spent
}

/// What this thread has had of its processor.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("time has passed")
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
