//! Chooses the rows and runs them.

use std::collections::{HashSet, VecDeque};
use std::panic::catch_unwind;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use toolcrib_testkit::covering::{Search, ValuePair, covering, every_two, pairs_of};

use crate::constraints::possible;
use crate::factors::{Part, Row};
use crate::{checks, scenario};

/// The maximum number of rows.
const MOST: usize = 2_400;

/// The maximum processor time of a row, which does not run in real time.
const LONG: Duration = Duration::from_secs(3);

/// Of 8 values that no pair requires, this many are the default.
const PLAIN: usize = 5;

/// The number of covering arrays that are combined; each covers every pair of the candidates that
/// are left.
const ARRAYS: usize = 2;

/// Dimensions whose values are combined completely, with defaults elsewhere: they meet at one
/// stage.
const STATIONS: &[&[&str]] = &[
    &["reuse", "second", "looks", "body"],
    &["reuse", "meanwhile", "second"],
    &["reuse", "instance", "twin", "second"],
    &["consent", "injected", "second"],
    &["consent", "meanwhile", "servers", "door"],
    &["consent", "resumed", "injected"],
    &["door", "barrier", "body"],
    &["body", "wind_down", "interruption"],
    &["body", "wind_down", "ending"],
    &["ending", "retry", "output"],
    &["body", "consent", "servers"],
    &["consent", "edit", "meanwhile"],
];

/// The rows, and the pairs that are possible.
fn chosen() -> &'static (Vec<Vec<usize>>, Vec<ValuePair>) {
    static CHOSEN: OnceLock<(Vec<Vec<usize>>, Vec<ValuePair>)> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        let judge = |values: &[Option<usize>]| possible(&Part::of(values));
        let place = |name: &str| Row::FIELDS.iter().position(|field| *field == name).unwrap();
        let seed = seed();
        let mut search = Search::new(Row::SIZES, 8, judge).seeded(seed);
        let mut rows = Vec::new();
        for station in STATIONS {
            let dimensions: Vec<_> = station.iter().map(|name| place(name)).collect();
            rows.extend(search.combinations(&dimensions));
        }
        let (mut all, pairs) = Search::new(Row::SIZES, PLAIN, judge).seeded(seed).candidates(2);
        // A row whose call is refused early tests few of the later stages, so each pair occurs in
        // several rows.
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
        let mut known = HashSet::new();
        rows.retain(|row| known.insert(row.clone()));
        (rows, pairs)
    })
}

#[test]
fn every_possible_pair_of_options_is_in_a_row() {
    let (rows, possible) = chosen();
    let covered: HashSet<ValuePair> = rows.iter().flat_map(|row| pairs_of(row)).collect();
    let possible: HashSet<ValuePair> = possible.iter().copied().collect();
    println!("{} rows, {} of {} pairs", rows.len(), covered.len(), possible.len());
    assert_eq!(covered, possible);
    assert!(rows.len() <= MOST, "{} rows", rows.len());
}

/// Processor time of this thread if the system reports it, otherwise the time of day.
fn spent() -> Duration {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|told| told.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| BEGUN.get_or_init(Instant::now).elapsed(), Duration::from_nanos)
}

/// All problems of a row, including a panic. With `is_shown`, prints what happened in it.
fn problems_of(row: &Row, is_shown: bool) -> Vec<String> {
    let started = spent();
    let checked = catch_unwind(|| {
        let story = scenario::run(row);
        for moment in story.moments.iter().filter(|_| is_shown) {
            println!("{:>6} ms {:?}", moment.at, moment.seen);
        }
        checks::problems(row, &story)
    });
    let mut problems = checked.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        vec![format!("it panicked: {}", text.unwrap_or_default())]
    });
    let took = spent().saturating_sub(started);
    if took > LONG {
        problems.push(format!("it took {took:?} of the processor"));
    }
    problems.iter().map(|problem| problem.replace('\n', " | ")).collect()
}

#[test]
fn every_row_keeps_the_promises_of_the_pipeline() {
    let wanted = std::env::var("TOOLCRIB_PAIRWISE").ok();
    // The place for the first problem, after which no other row is started.
    let report = std::env::var_os("TOOLCRIB_PAIRWISE_REPORT");
    let rows = match wanted.as_deref() {
        None => chosen().0.iter().map(|values| Row::of(values)).collect(),
        Some(name) => VecDeque::from([named(name)]),
    };
    let queue = Mutex::new(rows);
    let (failures, begun) = (Mutex::new(Vec::new()), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().pop_front();
                    let Some(row) = next else { break };
                    let problems = problems_of(&row, wanted.is_some());
                    if problems.is_empty() {
                        continue;
                    }
                    if report.is_some() {
                        queue.lock().unwrap().clear();
                    }
                    failures.lock().unwrap().push((row, problems));
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    println!("{:?}", begun.elapsed());
    for (row, problems) in &failures {
        println!("\n{row}\n    {}", problems.join("\n    "));
    }
    if let (Some(report), Some((row, problems))) = (report, failures.first()) {
        std::fs::write(report, format!("{row}: {}\n", problems[0])).unwrap();
    }
    assert!(failures.is_empty(), "{} rows failed", failures.len());
}

/// The row with this name, whether it was chosen or not.
fn named(name: &str) -> Row {
    let names = name.split(", ").filter(|name| *name != "plain");
    let row = Row::named(names).unwrap_or_else(|| panic!("{name:?} names no row"));
    let values: Vec<_> = row.values().into_iter().map(Some).collect();
    assert!(possible(&Part::of(&values)), "{name:?} is not a possible row");
    row
}

/// The seed of the array: `TOOLCRIB_PAIRWISE_SEED`, or 0.
fn seed() -> u64 {
    let told = std::env::var("TOOLCRIB_PAIRWISE_SEED").ok();
    told.map_or(0, |told| told.parse().expect("a number"))
}

/// The number of rows to run at once: `TOOLCRIB_PAIRWISE_THREADS`, or four.
fn threads() -> usize {
    let told = std::env::var("TOOLCRIB_PAIRWISE_THREADS").ok();
    told.map_or(4, |told| told.parse().expect("a number of threads"))
}
