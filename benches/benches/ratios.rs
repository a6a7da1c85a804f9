//! Ours beside the peers and the limits, turn by turn in one run, as a Markdown table.
//!
//! `cargo bench -p toolcrib-benches --bench ratios [-- process|lookup|call|cached|batch|concurrency …]`

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::time::Duration;

use toolcrib_benches::concurrency::Work;
use toolcrib_benches::target::{Target, verdicts};
use toolcrib_benches::{
    Contender, Rounds, SIZES, batch, cached, call, concurrency, interleaved, lookup, process,
    settle,
};
use toolcrib_testkit::search_tool::Schemas;

/// Rounds of each comparison; their median is shown.
const ROUNDS: usize = 9;

fn main() {
    // cargo itself passes `--bench`.
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    println!("Medians of {ROUNDS} interleaved rounds; only the ratios inside one run count.");
    // Processes first: starting one is dearer in a process that has grown, and memory once held is
    // reused unseen.
    let parts: [(&str, fn()); 6] = [
        ("process", processes),
        ("lookup", lookups),
        ("call", calls),
        ("cached", cached_calls),
        ("batch", batches),
        ("concurrency", concurrencies),
    ];
    for (name, print) in parts {
        if asked.is_empty() || asked.iter().any(|asked| asked == name) {
            print();
        }
    }
}

/// Medians of the contenders, each of whose rounds does its work so often.
fn measured(mut contenders: Vec<Contender>, times: u64) -> Rounds {
    settle();
    interleaved(&mut contenders, ROUNDS, times)
}

fn processes() {
    let drained = |contender: &mut Contender| process::peak_growth(|| contender.run(1));
    println!("\nMemory that draining 100 MB adds to the process's peak (VmHWM):\n");
    for mut contender in process::drain_contenders() {
        let name = contender.name();
        println!("- {name}: {}", growth(drained(&mut contender)));
    }
    let table = Table::begin("Processes", MILLISECONDS, "ours");
    let rounds = measured(process::spawn_contenders(), 50);
    table.rows("one spawn of `true`", &rounds, &[Target::Times(1.5, "std")]);
    let rounds = measured(process::drain_contenders(), 1);
    table.rows("100 MB of output drained", &rounds, &[Target::Times(1.25, "limit")]);
}

fn lookups() {
    let table = Table::begin("Lookup by name", NANOSECONDS, "ours/turn");
    for size in SIZES {
        let rounds = measured(lookup::contenders(size), 200_000);
        table.rows(&format!("{size} tools"), &rounds, &[Target::Below("rmcp")]);
    }
}

fn calls() {
    let table = Table::begin("Validated call", NANOSECONDS, "ours");
    for schemas in [Schemas::Shared, Schemas::Distinct] {
        for &size in call::sizes(schemas) {
            let rounds = measured(call::contenders(size, schemas), 20_000);
            let work = format!("{size} tools, {} schemas", schemas.as_str());
            // Validators are kept for 1,000 different schemas.
            let has_target = size <= 1_000 || (schemas == Schemas::Shared && size <= 10_000);
            let target = has_target.then_some(Target::Times(1.3, "rmcp"));
            table.rows(&work, &rounds, target.as_slice());
        }
    }
}

fn cached_calls() {
    let table = Table::begin("Call answered from the cache", NANOSECONDS, "ours/hit");
    for size in SIZES {
        let rounds = measured(cached::contenders(size), 20_000);
        table.rows(&format!("{size} tools"), &rounds, &[Target::Below("ours/run")]);
    }
}

fn batches() {
    let title = format!("Batch of {} ready calls", batch::CALLS);
    let table = Table::begin(&title, MICROSECONDS, "ours/batch");
    let targets = [Target::Below("ours/spawned"), Target::Below("rmcp/joined")];
    for size in SIZES {
        let rounds = measured(batch::contenders(size), 500);
        table.rows(&format!("{size} tools"), &rounds, &targets);
    }
}

fn concurrencies() {
    let title = format!("Batch of {} calls, so many at once (0: all)", concurrency::CALLS);
    let table = Table::begin(&title, MILLISECONDS, "4");
    for work in Work::ALL {
        let rounds = measured(concurrency::contenders(work), 20);
        table.rows(work.as_str(), &rounds, &[]);
    }
}

/// A unit of time: its sign, its nanoseconds, and how many digits are shown of it.
type Unit = (&'static str, f64, usize);

const NANOSECONDS: Unit = ("ns", 1.0, 0);
const MICROSECONDS: Unit = ("µs", 1e3, 1);
const MILLISECONDS: Unit = ("ms", 1e6, 2);

/// A table whose header is printed; the targets are those of `ours`.
struct Table<'a> {
    unit: Unit,
    ours: &'a str,
}

impl<'a> Table<'a> {
    fn begin(title: &str, unit: Unit, ours: &'a str) -> Self {
        println!("\n## {title}\n");
        println!("| work | contender | {} | `{ours}` ÷ this | target |", unit.0);
        println!("|---|---|---:|---:|---|");
        Self { unit, ours }
    }

    fn rows(&self, work: &str, rounds: &Rounds, targets: &[Target]) {
        let (_, nanoseconds, digits) = self.unit;
        for name in rounds.names() {
            let time = rounds.median(name) / nanoseconds;
            let ratio = rounds.ratio(self.ours, name);
            let is_held = [self.ours, "ours/in-place"].contains(name);
            let verdicts = if is_held { verdicts(targets, rounds, name) } else { String::new() };
            println!("| {work} | {name} | {time:.digits$} | {ratio:.2} | {verdicts} |");
        }
    }
}

fn growth((growth, elapsed): (Option<u64>, Duration)) -> String {
    match growth {
        Some(kib) => format!("{kib} KiB in {elapsed:.1?}"),
        None => "not known on this system".to_owned(),
    }
}
