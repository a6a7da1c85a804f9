//! How long the first delta of an answer takes through `toolcrib serve`, and what a delta costs its processors with 32 streams at
//! once, beside a bare relay that passes the model's stream on.
//!
//! `TOOLCRIB_PROGRAM=PATH cargo run --release -p toolcrib-benches-relay`; `benches/first-delta` builds the program first.
//!
//! Both servers are processes of their own, and get the same stream of the same model: this process. Ours reads it, keeps it where the
//! request says so, and writes its own events.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

mod client;
mod model;
mod relay;
mod server;

use std::process::ExitCode;
use std::time::Duration;

use client::Connection;
use server::Server;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Rounds; their median is shown. The servers take turns.
const ROUNDS: usize = 7;
/// Answers in a round, one after the other, of which the first deltas are awaited.
const ANSWERS: usize = 60;
/// Streams at once.
const STREAMS: usize = 32;
/// How many times the relay's delay and processor time ours may take.
const FIRST: f64 = 2.0;
const DELTAS: f64 = 3.0;

/// A server, and what it is asked.
struct Contender {
    name: &'static str,
    server: Server,
    body: &'static str,
}

/// What the rounds of a server took, in microseconds.
type Times = Vec<f64>;

fn main() -> Result<ExitCode, Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, model] = arguments.as_slice()
        && word == relay::WORD
    {
        relay::serve(model)?;
        return Ok(ExitCode::SUCCESS);
    }
    let program =
        std::env::var_os("TOOLCRIB_PROGRAM").ok_or("TOOLCRIB_PROGRAM names no program")?;
    let model = model::start()?;
    let ours = |name, body| {
        Ok::<_, Failure>(Contender { name, server: Server::ours(&program, model)?, body })
    };
    let contenders = [
        Contender {
            name: "relay",
            server: Server::relay(model)?,
            body: r#"{"model":"scripted","input":"Go.","stream":true}"#,
        },
        ours(
            "a model, not stored",
            r#"{"model":"script/scripted","input":"Go.","stream":true,"store":false}"#,
        )?,
        ours("a model, stored", r#"{"model":"script/scripted","input":"Go.","stream":true}"#)?,
        ours("an agent, stored", r#"{"model":"default","input":"Go.","stream":true}"#)?,
    ];
    println!("Medians of {ROUNDS} rounds, taking turns; only the ratios inside one run count.");
    let first = rounds(&contenders, |contender| {
        let mut connection = Connection::open(contender.server.port)?;
        let mut delays = Vec::new();
        for _ in 0..ANSWERS {
            delays.push(micros(connection.ask(contender.body, model::SHORT)?));
        }
        Ok(median(delays))
    })?;
    let holds =
        table("The first delta of an answer", "µs until it is there", &contenders, &first, FIRST);
    let costs = rounds(&contenders, |contender| {
        let before = contender.server.processors()?;
        std::thread::scope(|scope| {
            let ask = || {
                let mut connection = Connection::open(contender.server.port)?;
                connection.ask(&contender.body.replace("Go.", model::LONG_INPUT), model::LONG)
            };
            let threads: Vec<_> = (0..STREAMS).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().try_for_each(|thread| match thread.join() {
                Ok(ended) => ended.map(drop),
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })?;
        let spent = contender.server.processors()?.saturating_sub(before);
        Ok(micros(spent) / f64::from(u32::try_from(STREAMS * model::LONG)?))
    })?;
    let title = format!("A delta of {STREAMS} streams at once");
    let holds =
        table(&title, "µs of the server's processors", &contenders, &costs, DELTAS) && holds;
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs all in turn, after a round that does not count.
fn rounds(
    contenders: &[Contender],
    run: impl Fn(&Contender) -> Result<f64, Failure>,
) -> Result<Vec<Times>, Failure> {
    let mut times = vec![Times::new(); contenders.len()];
    for round in 0..=ROUNDS {
        for (contender, times) in contenders.iter().zip(&mut times) {
            let time = run(contender).map_err(|error| format!("{}: {error}", contender.name))?;
            if round > 0 {
                times.push(time);
            }
        }
    }
    Ok(times)
}

/// Prints the rows, the first of which is the relay; returns whether the limit holds.
fn table(title: &str, unit: &str, contenders: &[Contender], times: &[Times], limit: f64) -> bool {
    println!("\n{title}\n\n| | {unit} | ÷ relay | limit | holds |\n|---|---:|---:|---:|---|");
    let mut relay = None;
    let mut all = true;
    for (contender, times) in contenders.iter().zip(times) {
        let (name, time) = (contender.name, median(times.clone()));
        let Some(relay) = relay else {
            println!("| {name} | {time:.1} | | | |");
            relay = Some(time);
            continue;
        };
        let ratio = time / relay;
        let verdict = if ratio <= limit { "yes" } else { "**no**" };
        println!("| {name} | {time:.1} | {ratio:.2} | ≤ {limit} | {verdict} |");
        all &= ratio <= limit;
    }
    all
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
