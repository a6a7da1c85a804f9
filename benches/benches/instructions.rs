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
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if let [under, part, name, times] = arguments.as_slice()
        && under == "run"
    {
        return run(part, name, times);
    }
    println!("| work, {TOOLS} tools | contender | instructions |");
    println!("|---|---|---:|");
    for (part, times, contenders) in PARTS {
        if !arguments.is_empty() && !arguments.iter().any(|asked| asked == part) {
            continue;
        }
        for contender in contenders() {
            let name = contender.name();
            if LEFT_OUT.contains(&name) {
                continue;
            }
            match (collected(part, name, times), collected(part, name, 2 * times)) {
                (Ok(short), Ok(long)) => {
                    println!("| {part} | {name} | {} |", long.saturating_sub(short) / times);
                }
                (Err(problem), _) | (_, Err(problem)) => {
                    println!("| {part} | {name} | not counted: {problem} |");
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    ExitCode::SUCCESS
}

/// What runs under valgrind: one contender, so many times.
fn run(part: &str, name: &str, times: &str) -> ExitCode {
    let contender = PARTS
        .into_iter()
        .find(|(known, ..)| *known == part)
        .and_then(|(.., contenders)| {
            contenders().into_iter().find(|contender| contender.name() == name)
        })
        .zip(times.parse().ok());
    match contender {
        Some((mut contender, times)) => {
            contender.run(times);
            ExitCode::SUCCESS
        }
        None => ExitCode::FAILURE,
    }
}

/// Instructions of a whole run.
#[expect(clippy::disallowed_methods, reason = "valgrind is no tool of anybody's: nothing to guard")]
fn collected(part: &str, name: &str, times: u64) -> Result<u64, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = std::process::Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(this)
        .args(["run", part, name, &times.to_string()])
        .output()
        .map_err(|error| format!("valgrind does not start: {error}"))?;
    let report = String::from_utf8_lossy(&output.stderr);
    report
        .lines()
        .find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
        .ok_or_else(|| format!("valgrind counted nothing: {report}"))
}
