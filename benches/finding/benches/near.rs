//! Near names beside rapidfuzz, as Markdown tables: times, and instructions counted by valgrind.
//!
//! `cargo bench -p toolcrib-benches-finding --bench near [-- times|instructions]`

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::process::ExitCode;

use toolcrib_benches_finding::names::contenders;
use toolcrib_rounds::target::{Target, verdicts};
use toolcrib_rounds::{asked_to_run, instructions, interleaved};

/// Rounds of each comparison; their median is shown.
const ROUNDS: usize = 15;

/// Names, and what is wanted with so many, in nanoseconds.
const SIZES: [(usize, f64); 2] = [(10_000, 20e3), (100_000, 1e6)];

fn main() -> ExitCode {
    if let Some(done) = asked_to_run(|names| names.parse().map_or_else(|_| Vec::new(), contenders))
    {
        return done;
    }
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |part: &str| asked.is_empty() || asked.iter().any(|asked| asked == part);
    if wanted("times") {
        println!("| names | ours, µs | ÷ rapidfuzz | without fingerprints, µs | target |");
        println!("|---:|---:|---:|---:|---|");
        for (names, limit) in SIZES {
            let rounds = interleaved(&mut contenders(names), ROUNDS, 64);
            println!(
                "| {names} | {:.1} | {:.4} | {:.1} | {} |",
                rounds.median("ours") / 1e3,
                rounds.ratio("ours", "rapidfuzz"),
                rounds.median("ours, no fingerprints") / 1e3,
                verdicts(&[Target::Nanoseconds(limit)], &rounds, "ours"),
            );
        }
    }
    if wanted("instructions") {
        println!("\n| names | contender | instructions |");
        println!("|---:|---|---:|");
        for (names, _) in SIZES {
            for contender in contenders(names) {
                let name = contender.name();
                match instructions(&names.to_string(), name, 64) {
                    Ok(count) => println!("| {names} | {name} | {count} |"),
                    Err(problem) => {
                        println!("| {names} | {name} | not counted: {problem} |");
                        return ExitCode::FAILURE;
                    }
                }
            }
        }
    }
    ExitCode::SUCCESS
}
