//! Chooses the rows and runs them.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use toolcrib_testkit::covering::{Pair, candidates, covering, every_two, pairs_of};

use crate::constraints::possible;
use crate::factors::{Part, Row};
use crate::{checks, scenario};

/// Rows, at most.
const MOST: usize = 400;

/// Processor time that a row may take: its own time is not real.
const LONG: Duration = Duration::from_secs(3);

/// Arrays that are taken together, each of which has every pair that the candidates have left.
const ARRAYS: usize = 4;

/// The rows, and the pairs that are possible.
fn chosen() -> &'static (Vec<Vec<usize>>, Vec<Pair>) {
    static CHOSEN: OnceLock<(Vec<Vec<usize>>, Vec<Pair>)> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        let judge = |values: &[Option<usize>]| possible(&Part::of(values));
        let (mut all, pairs) = candidates(Row::SIZES, judge, 3);
        let mut rows = Vec::new();
        // A row whose call is refused early says little of the stations behind: so each pair comes
        // in several rows.
        for _ in 0..ARRAYS {
            let array: HashSet<_> =
                covering(&all, &every_two(Row::SIZES.len())).into_iter().collect();
            let (mut taken, mut left) = (Vec::new(), Vec::new());
            for (place, row) in all.into_iter().enumerate() {
                if array.contains(&place) { taken.push(row) } else { left.push(row) }
            }
            rows.append(&mut taken);
            all = left;
        }
        rows.truncate(MOST);
        (rows, pairs)
    })
}

#[test]
fn every_possible_pair_of_options_is_in_a_row() {
    let (rows, possible) = chosen();
    let covered: HashSet<Pair> = rows.iter().flat_map(|row| pairs_of(row)).collect();
    let possible: HashSet<Pair> = possible.iter().copied().collect();
    println!("{} rows, {} of {} pairs", rows.len(), covered.len(), possible.len());
    assert_eq!(covered, possible);
    assert!(rows.len() <= MOST, "{} rows", rows.len());
}

/// Processor time of this thread where the system tells it, and else the time of day.
fn spent() -> Duration {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|told| told.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| BEGUN.get_or_init(Instant::now).elapsed(), Duration::from_nanos)
}

#[test]
fn every_row_keeps_the_promises_of_the_pipeline() {
    let wanted = std::env::var("TOOLCRIB_PAIRWISE").ok();
    let rows = chosen().0.iter().map(|values| Row::of(values)).collect::<Vec<_>>();
    let is_wanted = |row: &Row| match wanted.as_deref() {
        None => true,
        Some(name) => row.to_string() == name,
    };
    let queue: Mutex<VecDeque<Row>> = Mutex::new(rows.into_iter().filter(is_wanted).collect());
    assert!(!queue.lock().unwrap().is_empty(), "no row has that name");
    let (failures, begun) = (Mutex::new(Vec::new()), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().pop_front();
                    let Some(row) = next else { break };
                    let started = spent();
                    let mut problems = checks::problems(&row, &scenario::run(&row));
                    let took = spent().saturating_sub(started);
                    if took > LONG {
                        problems.push(format!("it took {took:?} of the processor"));
                    }
                    if !problems.is_empty() {
                        failures.lock().unwrap().push((row, problems));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    println!("{:?}", begun.elapsed());
    for (row, problems) in &failures {
        let problems = problems.iter().map(|problem| problem.replace('\n', " | "));
        println!("\n{row}\n    {}", problems.collect::<Vec<_>>().join("\n    "));
    }
    assert!(failures.is_empty(), "{} rows failed", failures.len());
}
