//! Near names as contenders: ours with fingerprints kept and without, rapidfuzz.

use std::hint::black_box;
use std::time::Instant;

use rapidfuzz::distance::osa;
use toolcrib_rounds::Contender;
use toolcrib_search::{Fingerprints, near_names, near_names_among};

use crate::catalogue::catalogue;
use crate::random::Random;

/// The names of so many tools, looked through for names that were typed wrong.
///
/// `ours` has the fingerprints, as a registry keeps them; `ours, no fingerprints` reads each name.
/// `rapidfuzz` compares the query with each name, as far as four edits, and remembers the best three:
/// it finds slips only, no other order of the words, no namespaces, no other case.
pub fn contenders(tools: usize) -> Vec<Contender> {
    let names: Vec<String> = catalogue(tools).into_iter().map(|tool| tool.name).collect();
    let (kept, fingerprints) = (names.clone(), Fingerprints::of(names.iter().map(String::as_str)));
    let (queries, all) = (queries(&names), names.clone());
    let ours = asked("ours", queries.clone(), move |query| {
        near_names_among(query, &fingerprints, |at| Some(kept[at].as_str())).len()
    });
    let reading = asked("ours, no fingerprints", queries.clone(), move |query| {
        near_names(query, names.iter().map(String::as_str)).len()
    });
    let rapidfuzz = asked("rapidfuzz", queries, move |query| {
        let comparator = osa::BatchComparator::new(query.bytes());
        let limit = osa::Args::default().score_cutoff(4);
        let mut best: Vec<(usize, usize)> = Vec::new();
        for (at, name) in all.iter().enumerate() {
            if let Some(distance) = comparator.distance_with_args(name.bytes(), &limit) {
                best.push((distance, at));
            }
        }
        best.sort_unstable();
        best.truncate(3);
        best.len()
    });
    vec![ours, reading, rapidfuzz]
}

/// Names with a slip, in another order, in another case, behind a namespace, and of nothing.
fn queries(names: &[String]) -> Vec<String> {
    let mut random = Random::new(11);
    (0..64)
        .map(|number| {
            let name = random.of(names).clone();
            match number % 5 {
                0 => {
                    let mut letters = name.into_bytes();
                    let at = random.below(letters.len() - 1);
                    letters.swap(at, at + 1);
                    String::from_utf8(letters).expect("names are ASCII")
                }
                1 => name.rsplit('_').collect::<Vec<_>>().join("_"),
                2 => name.to_uppercase(),
                3 => format!("mcp__server__{name}"),
                _ => format!("something_{}_else", random.below(1_000)),
            }
        })
        .collect()
}

fn asked(
    name: &'static str,
    queries: Vec<String>,
    mut search: impl FnMut(&str) -> usize + 'static,
) -> Contender {
    Contender::new(name, move |times| {
        let start = Instant::now();
        for query in queries.iter().cycle().take(usize::try_from(times).unwrap_or(usize::MAX)) {
            black_box(search(black_box(query)));
        }
        start.elapsed()
    })
}
