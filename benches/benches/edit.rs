//! Edits by quoted text beside one substring search and a scan of lines, as Markdown tables.
//!
//! `cargo bench -p toolcrib-benches --bench edit [-- drifts|large|pathological|memory|growth …]`
//!
//! `growth` counts instructions with valgrind, which must be installed, and takes minutes.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use toolcrib_benches::edit::{DRIFTS, Work, contenders, drift, drifts, pathological};
use toolcrib_benches::target::{Target, verdicts};
use toolcrib_benches::{instructions_of_run, interleaved, process};
use toolcrib_edit::Edit;

/// Rounds of each comparison; their median is shown.
const ROUNDS: usize = 9;

/// Lines of the usual file.
const LINES: usize = 100_000;

/// Lines of a file of 100 MB.
const LARGE: usize = 1_750_000;

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    if let [under, name, lines, block, edits] = asked.as_slice()
        && under == "run"
    {
        return run(name, lines, block, edits);
    }
    let parts: [(&str, fn()); 5] = [
        ("memory", memory),
        ("drifts", || table("100,000 lines", &drifts(LINES))),
        ("large", || table("100 MB", &drifts(LARGE))),
        ("pathological", || table("100,000 lines that repeat", &pathological(LINES))),
        ("growth", growth),
    ];
    for (name, print) in parts {
        if asked.is_empty() || asked.iter().any(|asked| asked == name) {
            print();
        }
    }
    ExitCode::SUCCESS
}

fn table(title: &str, works: &[Work]) {
    println!("\n## {title}\n");
    println!("| drift | MB | ours, ms | ÷ memmem | ÷ line scan | target |");
    println!("|---|---:|---:|---:|---:|---|");
    for work in works {
        let mut contenders = contenders(work);
        // A scan of lines that repeat, or of many, takes minutes and says nothing more.
        let scanned = title.starts_with("100,000 lines") && !title.contains("repeat");
        if !scanned {
            contenders.pop();
        }
        let rounds = interleaved(&mut contenders, ROUNDS, 1);
        let target = match work.name {
            "exact" => 1e6,
            "a miss" | "a miss, and quotes" | "nothing alike" => 16e6,
            _ => 8e6,
        };
        let target = if scanned {
            verdicts(&[Target::Nanoseconds(target)], &rounds, "ours")
        } else {
            String::new()
        };
        let scan = if scanned {
            format!("{:.2}", rounds.ratio("ours", "line scan"))
        } else {
            "–".into()
        };
        println!(
            "| {} | {:.1} | {:.2} | {:.1} | {scan} | {target} |",
            work.name,
            megabytes(work.file.len()),
            rounds.median("ours") / 1e6,
            rounds.ratio("ours", "limit/memmem"),
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes far below 2^53")]
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

/// What finding and applying add to the process's peak, as times the file's size.
fn memory() {
    println!("\n## Peak memory, 100 MB\n");
    println!("| drift | finding ÷ file | finding and applying ÷ file |");
    println!("|---|---:|---:|");
    for work in drifts(LARGE) {
        let target = work.source.clone() + "    // new\n";
        let peak = |apply: bool| {
            let (growth, _) = process::peak_growth(|| {
                let start = Instant::now();
                let change = Edit::new(&work.source, &target).find(&work.file);
                if apply && let Ok(change) = &change {
                    black_box(change.apply(&work.file));
                }
                black_box(&change);
                start.elapsed()
            });
            growth.map_or("not known".to_owned(), |kib| {
                let bytes = usize::try_from(kib * 1024).unwrap_or(usize::MAX);
                format!("{:.3}", megabytes(bytes) / megabytes(work.file.len()))
            })
        };
        println!("| {} | {} | {} |", work.name, peak(false), peak(true));
    }
}

/// Instructions per line: the same for every size, if the cost is linear.
fn growth() {
    println!("\n## Instructions per line of the file, and of the source\n");
    println!("| drift | lines of the file | of the source | instructions per line of both |");
    println!("|---|---:|---:|---:|");
    let sizes: [(u64, u64); 9] = [
        (1_000, 12),
        (10_000, 12),
        (100_000, 12),
        (1_000_000, 12),
        (10_000_000, 12),
        (100_000, 1),
        (100_000, 100),
        (100_000, 1_000),
        (100_000, 5_000),
    ];
    for name in ["exact", "indentation", "quotes", "a miss"] {
        for (lines, block) in sizes {
            // The file is made under valgrind as well: that is taken away.
            let (many, of) = (lines.to_string(), block.to_string());
            let run = |edits| instructions_of_run(&["run", name, &many, &of, edits]);
            let counted = run("1").and_then(|whole| Ok(whole.saturating_sub(run("0")?)));
            let shown = match counted {
                Ok(count) => (count / (lines + block)).to_string(),
                Err(problem) => problem,
            };
            println!("| {name} | {lines} | {block} | {shown} |");
        }
    }
}

/// What runs under valgrind: one edit, or none.
fn run(name: &str, lines: &str, block: &str, edits: &str) -> ExitCode {
    let known = DRIFTS.into_iter().find(|known| *known == name);
    let (Some(name), Ok(lines), Ok(block)) = (known, lines.parse(), block.parse()) else {
        return ExitCode::FAILURE;
    };
    let work = drift(name, lines, block);
    if edits == "1" {
        let target = work.source.clone() + "    // new\n";
        let _ = black_box(Edit::new(&work.source, &target).find(&work.file));
    }
    ExitCode::SUCCESS
}
