//! What a call costs the server's processors over HTTP and over pipes, and a list of 1,000 tools,
//! beside bare servers of the peer's, the bare HTTP library and bare reads and writes.
//!
//! `cargo bench -p toolcrib-benches --bench server [-- http|stdio|list]`
//!
//! Each server is a process of its own, this program started again, with the same tools. What is
//! counted is the processor time of that process, so that the client's own work, and what else the
//! machine does, fall out as far as they can.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

mod client;
mod limits;
mod place;
mod program;

use std::time::Duration;

use client::{Http, Process, Stdio};
use place::OneProcessor;
use program::{Failure, Program};
use toolcrib_testkit::search_tool::{self, ARGUMENTS};

/// Rounds; their median is shown. The contenders take turns.
const ROUNDS: usize = 7;
/// Calls in a round.
const CALLS: usize = 4_000;
/// Lists in a round.
const LISTS: usize = 40;
/// Of so many calls a contender makes one that waits tens of milliseconds for each.
const PER_SLOW: usize = 200;
/// Tools of a server whose calls are measured.
const FEW: usize = 10;
/// Tools of a server whose list is measured.
const MANY: usize = 1_000;
/// How many times a server's processor time ours may take.
const OVER_HTTP: [(Program, f64); 2] = [(Program::Best, 0.6), (Program::Axum, 2.0)];
const OVER_STDIO: [(Program, f64); 1] = [(Program::Best, 0.6)];
const OF_LISTS: [(Program, f64); 1] = [(Program::Best, 0.15)];

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, program, tools] = arguments.as_slice()
        && word == program::WORD
    {
        return program::run(program, tools.parse()?);
    }
    let asked: Vec<_> = arguments.iter().filter(|one| !one.starts_with('-')).collect();
    let wants = |part: &str| asked.is_empty() || asked.iter().any(|asked| *asked == part);
    println!("Medians of {ROUNDS} rounds, taking turns; only the ratios inside one run count.\n");
    println!(
        "| work | server | µs of its processors | µs until answered | `ours` ÷ this | target |"
    );
    println!("|---|---|---:|---:|---:|---|");
    if wants("http") {
        for in_flight in [1, 32] {
            // As it comes, the peer did not answer all of many connections in one session.
            let servers: &[Program] = match in_flight {
                1 => {
                    &[Program::Ours, Program::Best, Program::Default, Program::Axum, Program::Limit]
                }
                _ => &[Program::Ours, Program::Best, Program::Axum, Program::Limit],
            };
            let open = |program| Http::open(program, FEW, in_flight);
            let work = format!("call over HTTP, {in_flight} in flight");
            compare(&work, in_flight, servers, &OVER_HTTP, open, |http, program| {
                let calls = if program == Program::Default { CALLS / PER_SLOW } else { CALLS };
                http.calls(calls, &call_body())
            })?;
        }
        let servers = [Program::OursInSession, Program::InSession];
        let open = |program| Http::open(program, FEW, 1);
        compare("call over HTTP in a session", 1, &servers, &[], open, |http, _| {
            http.calls(CALLS, &call_body())
        })?;
    }
    if wants("stdio") {
        for in_flight in [1, 32] {
            let servers = [Program::Ours, Program::Best, Program::Default, Program::Limit];
            let open = |program| Stdio::open(program, FEW, in_flight);
            let work = format!("call over stdio, {in_flight} in flight");
            compare(&work, in_flight, &servers, &OVER_STDIO, open, |stdio, _| {
                stdio.calls(CALLS, &call_body())
            })?;
        }
    }
    if wants("list") {
        let servers = [Program::Ours, Program::Best];
        let open = |program| Http::open(program, MANY, 1);
        let work = format!("list of {MANY} tools over HTTP");
        compare(&work, 1, &servers, &OF_LISTS, open, |http, _| http.lists(LISTS, MANY))?;
    }
    Ok(())
}

/// A call of a tool, with a place for its id.
fn call_body() -> String {
    let name = search_tool::name(3);
    format!(
        r#"{{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{{"name":"{name}","arguments":{ARGUMENTS}}}}}"#
    )
}

/// What one piece of work took.
#[derive(Debug, Clone, Copy)]
struct Cost {
    processors: Duration,
    answered: Duration,
}

/// One row for each server. A limit is how many times a peer's processor time ours may take.
fn compare<C: AsRef<Process>>(
    work: &str,
    in_flight: usize,
    programs: &[Program],
    limits: &[(Program, f64)],
    open: impl Fn(Program) -> Result<C, Failure>,
    run: impl Fn(&mut C, Program) -> Result<(Duration, usize), Failure>,
) -> Result<(), Failure> {
    let mut clients = Vec::new();
    for program in programs {
        let mut client = open(*program)?;
        // The first calls compile schemas and fill pools.
        run(&mut client, *program)?;
        clients.push((*program, client, Vec::new()));
    }
    let together = if in_flight == 1 { Some(OneProcessor::share()?) } else { None };
    for (_, client, _) in &clients {
        together.iter().try_for_each(|together| together.keep(client.as_ref()))?;
    }
    for _ in 0..ROUNDS {
        for (program, client, costs) in &mut clients {
            let before = client.as_ref().processors()?;
            let (elapsed, done) = run(client, *program)?;
            let spent = client.as_ref().processors()?.saturating_sub(before);
            let done = u32::try_from(done)?;
            costs.push(Cost { processors: spent / done, answered: elapsed / done });
        }
    }
    let median = |costs: &[Cost], of: fn(&Cost) -> Duration| {
        let mut all: Vec<_> = costs.iter().map(of).collect();
        all.sort();
        all[all.len() / 2].as_secs_f64() * 1e6
    };
    let ours = clients.first().map_or(0.0, |(_, _, costs)| median(costs, |cost| cost.processors));
    for (program, _, costs) in &clients {
        let spent = median(costs, |cost| cost.processors);
        let answered = median(costs, |cost| cost.answered);
        let ratio = ours / spent;
        let met = |is_met| if is_met { "met" } else { "missed" };
        let limit = limits.iter().find(|(beside, _)| beside == program);
        let verdict = limit
            .map_or_else(String::new, |(_, limit)| format!("≤ {limit}: {}", met(ratio <= *limit)));
        let name = program.as_str();
        println!("| {work} | {name} | {spent:.1} | {answered:.1} | {ratio:.2} | {verdict} |");
    }
    Ok(())
}
