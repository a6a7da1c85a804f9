//! Instructions per call, counted by valgrind: the one number that does not change with the load
//! of the machine.
//!
//! `cargo bench -p toolcrib-benches --bench instructions`
//!
//! Each contender runs twice under callgrind, once with more calls than the other; the difference
//! is the calls alone, without their set-up.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::process::ExitCode;

use toolcrib_benches::call;
use toolcrib_testkit::search_tool::Schemas;

/// Tools in the registry: instructions hardly depend on it.
const TOOLS: usize = 10;

/// Calls of the shorter run; the longer one has twice as many.
const CALLS: u64 = 2_000;

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if let [name, calls] = arguments.as_slice() {
        return run(name, calls);
    }
    println!("| validated call, {TOOLS} tools | instructions per call |");
    println!("|---|---:|");
    for contender in call::contenders(TOOLS, Schemas::Shared) {
        let name = contender.name();
        // Its preparation runs off the clock, but not unseen by valgrind.
        if name == "rmcp/router-only" {
            continue;
        }
        match (collected(name, CALLS), collected(name, 2 * CALLS)) {
            (Ok(short), Ok(long)) => println!("| {name} | {} |", (long - short) / CALLS),
            (Err(problem), _) | (_, Err(problem)) => {
                println!("| {name} | not counted: {problem} |");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// What runs under valgrind: one contender, so many calls.
fn run(name: &str, calls: &str) -> ExitCode {
    let contender = call::contenders(TOOLS, Schemas::Shared)
        .into_iter()
        .find(|contender| contender.name() == name)
        .zip(calls.parse().ok());
    match contender {
        Some((mut contender, calls)) => {
            contender.run(calls);
            ExitCode::SUCCESS
        }
        None => ExitCode::FAILURE,
    }
}

/// Instructions of a whole run.
#[expect(clippy::disallowed_methods, reason = "valgrind is no tool of anybody's: nothing to guard")]
fn collected(name: &str, calls: u64) -> Result<u64, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = std::process::Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(this)
        .args([name, &calls.to_string()])
        .output()
        .map_err(|error| format!("valgrind does not start: {error}"))?;
    let report = String::from_utf8_lossy(&output.stderr);
    report
        .lines()
        .find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
        .ok_or_else(|| format!("valgrind counted nothing: {report}"))
}
