//! How long the search for tools takes, as Markdown tables.
//!
//! `cargo bench -p toolcrib-benches-finding --bench search [-- times|indexing|instructions …]`

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::process::ExitCode;

use toolcrib_benches_finding::ranked::{indexing, searches};
use toolcrib_rounds::target::{Target, verdicts};
use toolcrib_rounds::{Rounds, asked_to_run, instructions, interleaved};

/// Tools, and what is wanted of a search of so many, in nanoseconds.
const SIZES: [(usize, f64); 2] = [(10_000, 200e3), (100_000, 1e6)];

/// A table: its name, and what prints it or says why it cannot.
type Part = (&'static str, fn() -> Result<(), String>);

const PARTS: [Part; 3] = [
    ("times", || {
        times();
        Ok(())
    }),
    ("indexing", || {
        index();
        Ok(())
    }),
    ("instructions", count),
];

fn main() -> ExitCode {
    let part = |part: &str| match part.split_once('/').map(|(a, b)| (a.parse(), b.parse())) {
        Some((Ok(tools), Ok(sentences))) => searches(tools, sentences),
        _ => Vec::new(),
    };
    if let Some(done) = asked_to_run(part) {
        return done;
    }
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let mut done = ExitCode::SUCCESS;
    for (name, print) in PARTS {
        if asked.is_empty() || asked.iter().any(|asked| asked == name) {
            println!("\n## {name}\n");
            if let Err(problem) = print() {
                println!("{problem}");
                done = ExitCode::FAILURE;
            }
        }
    }
    done
}

fn row(rounds: &Rounds, limit: Option<f64>) {
    let verdict = limit.map(|limit| verdicts(&[Target::Nanoseconds(limit)], rounds, "ours"));
    for name in rounds.names() {
        let target = verdict.as_deref().filter(|_| *name == "ours").unwrap_or_default();
        let micros = rounds.median(name) / 1e3;
        println!("| {name} | {micros:.1} | {:.2} | {target} |", rounds.ratio("ours", name));
    }
}

fn times() {
    for (tools, limit) in SIZES {
        for sentences in [1, 3] {
            println!("\n{tools} tools, questions of {sentences} sentences, the first 10:\n");
            println!("| who | µs | ours ÷ it | target |\n|---|---:|---:|---|");
            row(&interleaved(&mut searches(tools, sentences), 9, 64), Some(limit));
        }
    }
}

fn index() {
    for (tools, _) in SIZES {
        println!("\nAn index of {tools} tools:\n");
        println!("| who | µs | ours ÷ it | |\n|---|---:|---:|---|");
        row(&interleaved(&mut indexing(tools), 3, 1), None);
    }
}

fn count() -> Result<(), String> {
    println!("| tools | sentences | instructions of ours |\n|---:|---:|---:|");
    for (tools, _) in SIZES {
        for sentences in [1, 3] {
            let count = instructions(&format!("{tools}/{sentences}"), "ours", 64)?;
            println!("| {tools} | {sentences} | {count} |");
        }
    }
    Ok(())
}
