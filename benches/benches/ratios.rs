//! Ours beside the peer and the limits, turn by turn in one run, as a Markdown table.
//!
//! `cargo bench -p toolcrib-benches --bench ratios [-- lookup|call|process …]`

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::time::Duration;

use toolcrib_benches::{Contender, Rounds, SIZES, call, interleaved, lookup, process};
use toolcrib_testkit::search_tool::Schemas;

/// Rounds of each comparison; their median is shown.
const ROUNDS: usize = 9;

fn main() {
    // cargo itself passes `--bench`.
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |part: &str| asked.is_empty() || asked.iter().any(|asked| asked == part);
    println!("Medians of {ROUNDS} interleaved rounds; only the ratios inside one run count.");
    // First: starting a process is dearer in a process that has grown.
    if wanted("process") {
        // Before anything else has run: memory once held is reused unseen.
        let drained = |contender: &mut Contender| process::peak_growth(|| contender.run(1));
        println!("\nMemory that draining 100 MB adds to the process's peak (VmHWM):\n");
        for mut contender in process::drain_contenders() {
            let name = contender.name();
            println!("- {name}: {}", growth(drained(&mut contender)));
        }
        header("Processes", "ms", "ours");
        let rounds = interleaved(&mut process::spawn_contenders(), ROUNDS, 50);
        rows("one spawn of `true`", &rounds, "ours", 1e6);
        let rounds = interleaved(&mut process::drain_contenders(), ROUNDS, 1);
        rows("100 MB of output drained", &rounds, "ours", 1e6);
    }
    if wanted("lookup") {
        header("Lookup by name", "ns", "ours/turn");
        for size in SIZES {
            let rounds = interleaved(&mut lookup::contenders(size), ROUNDS, 200_000);
            rows(&format!("{size} tools"), &rounds, "ours/turn", 1.0);
        }
    }
    if wanted("call") {
        header("Validated call", "ns", "ours");
        for schemas in [Schemas::Shared, Schemas::Distinct] {
            for size in SIZES {
                let rounds = interleaved(&mut call::contenders(size, schemas), ROUNDS, 20_000);
                rows(&format!("{size} tools, {} schemas", schemas.as_str()), &rounds, "ours", 1.0);
            }
        }
    }
}

fn header(title: &str, unit: &str, ours: &str) {
    println!("\n## {title}\n");
    println!("| work | contender | {unit} | `{ours}` ÷ this |");
    println!("|---|---|---:|---:|");
}

fn rows(work: &str, rounds: &Rounds, ours: &str, unit: f64) {
    let digits = if unit > 1.0 { 2 } else { 0 };
    for name in rounds.names() {
        let time = rounds.median(name) / unit;
        let ratio = rounds.ratio(ours, name);
        println!("| {work} | {name} | {time:.digits$} | {ratio:.2} |");
    }
}

fn growth((growth, elapsed): (Option<u64>, Duration)) -> String {
    match growth {
        Some(kib) => format!("{kib} KiB in {elapsed:.1?}"),
        None => "not known on this system".to_owned(),
    }
}
