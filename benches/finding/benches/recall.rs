//! How often the search for tools finds what was meant, beside plain BM25, as Markdown tables.
//!
//! `cargo bench -p toolcrib-benches-finding --bench recall -- TOOLS QUESTIONS [validate]`
//!
//! The files, named by absolute paths, are described in `src/recall.rs`. `validate` chooses weights without each pool and tries them on it.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::path::Path;
use std::process::ExitCode;

use toolcrib_benches_finding::recall::{self, AT_FIVE, CUTS, Missed, Pool};
use toolcrib_benches_finding::validation;
use toolcrib_search::Weights;

/// A pool, what ours misses of each question, and what plain BM25 misses.
type Measured<'p> = (&'p Pool, Vec<Missed>, Vec<Missed>);

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let [tools, questions, rest @ ..] = asked.as_slice() else {
        println!("Give a file of tools and a file of questions; src/recall.rs describes them.");
        return ExitCode::SUCCESS;
    };
    let pools = match recall::read(Path::new(tools), Path::new(questions)) {
        Ok(pools) => pools,
        Err(problem) => {
            println!("{problem}");
            return ExitCode::FAILURE;
        }
    };
    let plain: Vec<Vec<Missed>> = pools.iter().map(Pool::plain).collect();
    let both = |weights: &dyn Fn(usize) -> Weights| -> Vec<Measured<'_>> {
        let measure = |(at, pool): (usize, &'_ Pool)| pool.ours(weights(at));
        let ours = pools.iter().enumerate().map(measure);
        let both = ours.zip(&plain).zip(&pools);
        both.map(|((ours, plain), pool)| (pool, ours, plain.clone())).collect()
    };
    println!("\n## With the weights as they are\n");
    table(&both(&|_| Weights::default()));
    if rest.iter().any(|part| part == "validate") {
        println!("\n## With weights chosen without the pool\n");
        // Few questions decide little, so the choice also sees them among more tools.
        let among_all = recall::among_all(&pools);
        let harder: Vec<Vec<Missed>> = among_all.iter().map(Pool::plain).collect();
        table(&both(&|at| {
            let others = [without(at, &pools, &plain), without(at, &among_all, &harder)].concat();
            validation::chosen(&others)
        }));
    }
    ExitCode::SUCCESS
}

/// All pools but one, each with what plain BM25 misses.
fn without<'p>(
    at: usize,
    pools: &'p [Pool],
    plain: &'p [Vec<Missed>],
) -> Vec<(&'p Pool, &'p Vec<Missed>)> {
    let others = pools.iter().zip(plain).enumerate();
    others.filter(|(other, _)| *other != at).map(|(_, both)| both).collect()
}

/// A kind of question: its name, and whether a question for so many tools is of it.
type Kind = (&'static str, fn(usize) -> bool);

const KINDS: [Kind; 3] =
    [("all", |_| true), ("one tool", |wanted| wanted == 1), ("several tools", |wanted| wanted > 1)];

fn table(measured: &[Measured<'_>]) {
    println!(
        "| pool | tools | questions for | number | missed at 5 | plain BM25 | | recall at 1 / 5 / 10 | plain BM25 |"
    );
    println!("|---|---:|---|---:|---:|---:|---:|---|---|");
    for (name, taken) in KINDS {
        let mut all = Counts::default();
        for pool in measured {
            let counts = Counts::of(pool, taken);
            counts.print(&pool.0.name, &pool.0.tools().to_string(), name);
            all.add(&counts);
        }
        all.print("together", "", name);
    }
}

/// What some questions want and miss.
#[derive(Default)]
struct Counts {
    questions: usize,
    wanted: usize,
    ours: Missed,
    plain: Missed,
}

impl Counts {
    fn of((pool, ours, plain): &Measured<'_>, taken: fn(usize) -> bool) -> Self {
        let mut counts = Self::default();
        for (question, (ours, plain)) in pool.questions.iter().zip(ours.iter().zip(plain)) {
            if taken(question.names.len()) {
                let wanted = question.names.len();
                counts.add(&Self { questions: 1, wanted, ours: *ours, plain: *plain });
            }
        }
        counts
    }

    fn add(&mut self, more: &Self) {
        self.questions += more.questions;
        self.wanted += more.wanted;
        for cut in 0..CUTS.len() {
            self.ours[cut] += more.ours[cut];
            self.plain[cut] += more.plain[cut];
        }
    }

    /// Recall here is the share of all wanted tools, so that a question for several counts as several.
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
    fn print(&self, pool: &str, tools: &str, kind: &str) {
        let recall = |missed: &Missed| {
            let share = |missed: &usize| 1.0 - *missed as f64 / self.wanted.max(1) as f64;
            missed
                .iter()
                .map(|missed| format!("{:.3}", share(missed)))
                .collect::<Vec<_>>()
                .join(" / ")
        };
        let (ours, plain) = (self.ours[AT_FIVE], self.plain[AT_FIVE]);
        let fewer = match plain {
            0 => String::new(),
            _ => format!("{:+.0} %", 100.0 * (ours as f64 / plain as f64 - 1.0)),
        };
        println!(
            "| {pool} | {tools} | {kind} | {} | {ours} of {} | {plain} | {fewer} | {} | {} |",
            self.questions,
            self.wanted,
            recall(&self.ours),
            recall(&self.plain)
        );
    }
}
