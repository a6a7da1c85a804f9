//! What the agent loop adds to its calls: a turn of a long run beside one of a short run, beside the bare call and beside
//! rig-agent's; arguments that stream in pieces of one byte, with and without previews; and the time between a model's answer and
//! the next request, beside codex's.
//!
//! `cargo bench -p toolcrib-benches --features rig --bench agent [-- turns|arguments]`; `benches/turn-gap` for the
//! last.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]
#![expect(clippy::expect_used, reason = "a bench that cannot be set up fails")]

mod arguments;
mod gap;
mod scripted;
mod turns;

use std::process::ExitCode;

use tokio::runtime::{Builder, Runtime};

/// Rounds of each comparison; their median is shown.
const ROUNDS: usize = 5;

/// A part of the bench; whether its limits hold.
type Part = fn(&Runtime) -> bool;

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

fn main() -> ExitCode {
    // cargo itself passes `--bench`.
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    println!("Medians of {ROUNDS} interleaved rounds; only the ratios inside one run count.");
    let parts: [(&str, Part); 3] =
        [("turns", turns::turns), ("arguments", arguments::arguments), ("gap", gap::gap)];
    let mut holds = true;
    for (name, part) in parts {
        if asked.is_empty() || asked.iter().any(|asked| asked == name) {
            holds &= part(&runtime);
        }
    }
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
