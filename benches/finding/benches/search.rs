//! The search for tools: how often it finds what was meant, and how long it takes, as Markdown tables.
//!
//! `cargo bench -p toolcrib-benches-finding --bench search [-- quality|times|indexing|instructions …]`
//!
//! `quality` needs a data set, whose folder `TOOLCRIB_SEARCH_DATA` names; what it holds is said in
//! `src/quality.rs`.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::path::Path;
use std::process::ExitCode;

use toolcrib_benches_finding::quality::{self, CUTS, Recall};
use toolcrib_benches_finding::ranked::{indexing, searches};
use toolcrib_rounds::target::{Target, verdicts};
use toolcrib_rounds::{Rounds, asked_to_run, instructions, interleaved};

/// The folder of the data set.
const DATA: &str = "TOOLCRIB_SEARCH_DATA";

/// Tools, and what is wanted of a search of so many, in nanoseconds.
const SIZES: [(usize, f64); 2] = [(10_000, 200e3), (100_000, 1e6)];

/// A table: its name, and what prints it or says why it cannot.
type Part = (&'static str, fn() -> Result<(), String>);

/// Some of the questions: their name, and whether those are of them that the ranking was tuned with,
/// or not.
type Half = (&'static str, fn(bool) -> bool);

const PARTS: [Part; 4] = [
    ("quality", quality),
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

fn quality() -> Result<(), String> {
    let folder = std::env::var_os(DATA).ok_or_else(|| {
        format!(
            "{DATA} is not set: it names a folder with tool_catalog.jsonl and tool_queries.jsonl, \
             rows of which are said in benches/finding/src/quality.rs"
        )
    })?;
    let pools = quality::read(Path::new(&folder))?;
    let measured: Vec<Vec<Recall>> = pools.iter().map(quality::measure).collect();
    println!("| questions | pool | number | ours @1 / @5 / @10 | plain BM25 |");
    println!("|---|---|---:|---|---|");
    let halves: [Half; 3] =
        [("reported half", |tuned| !tuned), ("tuned half", |tuned| tuned), ("all", |_| true)];
    let mut gains = Vec::new();
    for (half, taken) in halves {
        let of_half = pools.iter().zip(&measured).map(|(pool, recalls)| -> Vec<Recall> {
            let both = pool.questions.iter().zip(recalls);
            both.filter(|(question, _)| taken(question.tuned)).map(|(_, recall)| *recall).collect()
        });
        let of_half: Vec<Vec<Recall>> = of_half.collect();
        for (pool, recalls) in pools.iter().zip(&of_half) {
            let averages: Vec<_> =
                (0..CUTS.len()).map(|cut| quality::average(recalls.iter(), cut)).collect();
            let row = |of: fn(&(f64, f64)) -> f64| {
                let cells: Vec<_> =
                    averages.iter().map(|both| format!("{:.3}", of(both))).collect();
                cells.join(" / ")
            };
            let (ours, plain) = (row(|both| both.0), row(|both| both.1));
            println!("| {half} | {} | {} | {ours} | {plain} |", pool.name, recalls.len());
        }
        gains.push((half, quality::gain(&of_half, 1)));
    }
    println!("\n| questions | gain of the pools' average recall@5 | 95 of 100 drawings |");
    println!("|---|---:|---|");
    for (half, (gain, [least, most])) in gains {
        println!(
            "| {half} | {:+.1} % | {:+.1} to {:+.1} % |",
            100. * gain,
            100. * least,
            100. * most
        );
    }
    Ok(())
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
