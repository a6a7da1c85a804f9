//! What the agent loop adds to its calls: a turn of a long run beside one of a short run and beside the bare call, and
//! arguments that stream in pieces of one byte, with and without previews.
//!
//! `cargo bench -p toolcrib-benches --bench agent [-- turns|arguments]`

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]
#![expect(clippy::expect_used, reason = "a bench that cannot be set up fails")]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use toolcrib_agent::Agent;
use toolcrib_agent::budget::Budget;
use toolcrib_agent::model::{AttemptError, ModelClient};
use toolcrib_core::{Executor, Registry, RegistryBuilder, TurnOptions};
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, Layer, PartialArguments, Source, StatusUpdate, Tool,
    ToolCall, ToolDefinition, ToolEntry, ToolError, ToolOutcome,
};
use toolcrib_wire::model::{Answer, DecoderSettings, ModelEvent, RequestHead, StreamDecoder, Wire};

/// Rounds of each comparison; their median is shown.
const ROUNDS: usize = 5;
/// Turns of the short and of the long run.
const TURNS: [u32; 2] = [10, 200];
/// Bytes of the short and of the long arguments.
const BYTES: [usize; 2] = [1 << 20, 2 << 20];

/// A part of the bench; whether its limits hold.
type Part = fn(&Runtime) -> bool;

/// A tool that answers at once and previews what is written if it `previews`.
struct Note {
    previews: bool,
}

impl Tool for Note {
    fn call<'a>(
        &'a self,
        _: Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async { Ok(ToolOutcome::Done("noted".into())) })
    }

    fn validates(&self) -> bool {
        false
    }

    fn preview(&self, partial: &PartialArguments<'_>) -> Option<StatusUpdate> {
        Some(StatusUpdate::wait().with_param("lines", partial.lines("text")))
    }

    fn previews(&self) -> bool {
        self.previews
    }
}

fn executor(previews: bool) -> Executor {
    let definition = ToolDefinition::builder("note")
        .description("Notes a text.")
        .input_schema(json!({"properties": {"text": {"type": "string"}}, "required": ["text"]}))
        .build()
        .expect("it is right");
    let source = Source::new(Layer::Host, "bench");
    let mut builder = RegistryBuilder::new();
    let _ = builder.register(ToolEntry::new(definition, Arc::new(Note { previews }), source));
    Executor::builder(Registry::new(builder.build())).build()
}

/// A model in this process: so many calls, and then an answer.
struct Model {
    calls: u32,
    asked: AtomicU32,
    /// Bytes of each call's text, in pieces of one byte; `None` for a short text in one piece.
    bytes: Option<usize>,
}

impl Model {
    fn new(calls: u32, bytes: Option<usize>) -> Arc<Self> {
        Arc::new(Self { calls, asked: AtomicU32::new(0), bytes })
    }

    fn stream(
        &self,
        settings: DecoderSettings,
        events: &mut (dyn FnMut(ModelEvent) + Send),
    ) -> Result<Answer, AttemptError> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let mut decoder = StreamDecoder::new(Wire::Chat, settings);
        let mut found = Vec::new();
        let mut push = |text: &str| {
            let pushed = decoder.push(text.as_bytes(), &mut found);
            found.drain(..).for_each(&mut *events);
            pushed.map_err(|error| AttemptError::of_answer(&error))
        };
        let piece = |arguments: &str| {
            let call = json!({"index": 0, "function": {"arguments": arguments}});
            format!("data: {}\n\n", json!({"choices": [{"delta": {"tool_calls": [call]}}]}))
        };
        let end = if number % (self.calls + 1) < self.calls {
            let call = json!({"index": 0, "id": format!("c{number}"), "type": "function",
                "function": {"name": "note", "arguments": ""}});
            push(&format!(
                "data: {}\n\n",
                json!({"choices": [{"delta": {"tool_calls": [call]}}]})
            ))?;
            match self.bytes {
                None => push(&piece(&json!({"text": format!("number {number}")}).to_string()))?,
                Some(bytes) => {
                    push(&piece("{\"text\":\""))?;
                    // A read of a socket has many events.
                    let read = piece("x").repeat(1_024);
                    for _ in 0..bytes / 1_024 {
                        push(&read)?;
                    }
                    push(&piece("\"}"))?;
                }
            }
            "tool_calls"
        } else {
            push(&format!("data: {}\n\n", json!({"choices": [{"delta": {"content": "Done."}}]})))?;
            "stop"
        };
        push(&format!("data: {}\n\n", json!({"choices": [{"delta": {}, "finish_reason": end}]})))?;
        decoder.finish(&mut found).map_err(|error| AttemptError::of_answer(&error))
    }
}

impl ModelClient for Model {
    fn wire(&self) -> Wire {
        Wire::Chat
    }

    fn head(&self) -> RequestHead {
        RequestHead::new("bench", "bench")
    }

    fn ask<'a>(
        &'a self,
        _: String,
        settings: DecoderSettings,
        events: &'a mut (dyn FnMut(ModelEvent) + Send),
    ) -> BoxFuture<'a, Result<Answer, AttemptError>> {
        Box::pin(async move { self.stream(settings, events) })
    }
}

/// The time of one run with so many calls.
fn run(runtime: &Runtime, executor: &Executor, calls: u32, bytes: Option<usize>) -> Duration {
    let agent = Agent::builder(executor.clone(), Model::new(calls, bytes))
        .budget(Budget::default().with_max_turns(calls + 10))
        .on_event(|event| {
            std::hint::black_box(event);
        })
        .build();
    let begun = Instant::now();
    let report = runtime.block_on(agent.run("Note.")).expect("it runs");
    assert_eq!(report.text(), "Done.", "{:?}", report.outcome());
    begun.elapsed()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Prints a row; returns whether the limit holds.
fn row(what: &str, ratio: f64, limit: f64) -> bool {
    let verdict = if ratio <= limit { "yes" } else { "**no**" };
    println!("| {what} | {ratio:.2} | ≤ {limit} | {verdict} |");
    ratio <= limit
}

fn head(title: &str) {
    println!("\n{title}\n\n| | ratio | limit | holds |\n|---|---:|---:|---|");
}

fn turns(runtime: &Runtime) -> bool {
    let executor = executor(false);
    let (mut short, mut long, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let runs = TURNS[1] / TURNS[0];
        let many: Duration = (0..runs).map(|_| run(runtime, &executor, TURNS[0], None)).sum();
        short.push(many.as_secs_f64() / f64::from(TURNS[1]));
        long.push(run(runtime, &executor, TURNS[1], None).as_secs_f64() / f64::from(TURNS[1]));
        let turn = executor.turn(TurnOptions::default());
        let begun = Instant::now();
        for number in 0..TURNS[1] {
            let call = ToolCall::new(number.to_string(), "note", json!({"text": "number"}));
            assert!(runtime.block_on(turn.call(call)).is_success());
        }
        bare.push(begun.elapsed().as_secs_f64() / f64::from(TURNS[1]));
    }
    let (short, long, bare) = (median(short), median(long), median(bare));
    head("Turns");
    let holds = row("a turn of a 200-turn run beside one of a 10-turn run", long / short, 1.3);
    println!("| a turn of a 10-turn run beside the bare call | {:.1} | | |", short / bare);
    println!("| a turn of a 10-turn run, in µs | {:.0} | | |", short * 1e6);
    holds
}

fn arguments(runtime: &Runtime) -> bool {
    let (plain, previewed) = (executor(false), executor(true));
    let (mut short, mut long, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let seconds = |executor, bytes| run(runtime, executor, 1, Some(bytes)).as_secs_f64();
        short.push(seconds(&plain, BYTES[0]));
        long.push(seconds(&plain, BYTES[1]));
        shown.push(seconds(&previewed, BYTES[1]));
    }
    let (short, long, shown) = (median(short), median(long), median(shown));
    head("Arguments in pieces of one byte");
    let is_linear = row("2 MiB beside 1 MiB", long / short, 2.2);
    let are_cheap = row("2 MiB with previews beside without", shown / long, 2.0);
    println!("| a piece, in ns | {:.0} | | |", short * 1e9 / f64::from(1 << 20));
    is_linear && are_cheap
}

fn main() -> ExitCode {
    // cargo itself passes `--bench`.
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    println!("Medians of {ROUNDS} interleaved rounds; only the ratios inside one run count.");
    let parts: [(&str, Part); 2] = [("turns", turns), ("arguments", arguments)];
    let mut holds = true;
    for (name, part) in parts {
        if asked.is_empty() || asked.iter().any(|asked| asked == name) {
            holds &= part(&runtime);
        }
    }
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
