//! Instructions per piece of work, counted by valgrind: the one number that does not change with
//! the load of the machine.
//!
//! `cargo bench -p toolcrib-benches --bench instructions [-- lookup|call|cached|batch …]`
//!
//! Each contender runs twice under callgrind, once with more work than the other; the difference
//! is the work alone, without its set-up.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::process::ExitCode;

use toolcrib_benches::{Contender, batch, cached, call, lookup};
use toolcrib_rounds::{asked_to_run, instructions};
use toolcrib_testkit::search_tool::Schemas;

/// Tools in the registry: instructions hardly depend on it.
const TOOLS: usize = 10;

/// A comparison: its name, pieces of work of the shorter run (the longer one has twice as many),
/// and who takes part.
type Part = (&'static str, u64, fn() -> Vec<Contender>);

const PARTS: [Part; 4] = [
    ("lookup", 20_000, || lookup::contenders(TOOLS)),
    ("call", 2_000, || call::contenders(TOOLS, Schemas::Shared)),
    ("cached", 2_000, || cached::contenders(TOOLS)),
    ("batch", 100, || batch::contenders(TOOLS)),
];

/// Contenders whose numbers would mean nothing here: what one prepares off the clock is not unseen
/// by valgrind, which also runs one thread at a time.
const LEFT_OUT: [&str; 2] = ["rmcp/router-only", "ours/spawned-2-threads"];

fn main() -> ExitCode {
    let contenders = |part: &str| {
        let known = PARTS.into_iter().find(|(known, ..)| *known == part);
        known.map(|(.., contenders)| contenders()).unwrap_or_default()
    };
    if let Some(done) = asked_to_run(contenders) {
        return done;
    }
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    println!("| work, {TOOLS} tools | contender | instructions |");
    println!("|---|---|---:|");
    for (part, times, contenders) in PARTS {
        if !asked.is_empty() && !asked.iter().any(|asked| asked == part) {
            continue;
        }
        for contender in contenders() {
            let name = contender.name();
            if LEFT_OUT.contains(&name) {
                continue;
            }
            match instructions(part, name, times) {
                Ok(count) => println!("| {part} | {name} | {count} |"),
                Err(problem) => {
                    println!("| {part} | {name} | not counted: {problem} |");
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    ExitCode::SUCCESS
}
