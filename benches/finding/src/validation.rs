//! Chooses weights for some pools, to try them on a pool that had no part in the choice.

use toolcrib_search::{Field, Weights};

use crate::recall::{CUTS, Missed, Pool};

/// Every knob is turned so many times.
const ROUNDS: usize = 2;

/// How much a tool counts that is not among the first 1, 5 and 10.
const COUNTS: [f64; CUTS.len()] = [0.3, 1.0, 0.3];

/// What sets a weight, and the values that are tried.
type Knob = (fn(&mut Weights, f32), &'static [f32]);

const KNOBS: [Knob; 12] = [
    (|it, value| it.fields[Field::Name as usize].0 = value, &[1.0, 1.5, 2.0, 2.5, 3.0]),
    (|it, value| it.fields[Field::Name as usize].1 = value, &[0.0, 0.15, 0.3, 0.5, 0.75]),
    (|it, value| it.fields[Field::Description as usize].1 = value, &[0.3, 0.5, 0.75, 0.9]),
    (|it, value| it.fields[Field::Parameters as usize].0 = value, &[0.2, 0.4, 0.6, 0.8, 1.0]),
    (
        |it, value| it.fields[Field::ParameterDescriptions as usize].0 = value,
        &[0.2, 0.4, 0.6, 0.8, 1.0],
    ),
    (
        |it, value| it.fields[Field::ParameterDescriptions as usize].1 = value,
        &[0.3, 0.5, 0.75, 0.9],
    ),
    (|it, value| it.saturation = value, &[0.6, 0.9, 1.2, 1.5, 2.0]),
    (|it, value| it.stop_word = value, &[0.05, 0.1, 0.2, 0.3]),
    (|it, value| it.synonym = value, &[0.1, 0.2, 0.3, 0.4]),
    (|it, value| it.covered_name = value, &[0.0, 0.25, 0.5, 0.75, 1.0]),
    (|it, value| it.part = value, &[0.4, 0.5, 0.6, 0.7, 0.8]),
    (|it, value| it.weak_part = value, &[0.0, 0.15, 0.25, 0.35, 0.5]),
];

/// The weights that miss least in these pools, each beside what plain BM25 misses there. They are sought from a start
/// that knows nothing of any pool: all fields count the same, and no rule counts.
pub fn chosen(pools: &[(&Pool, &Vec<Missed>)]) -> Weights {
    let mut best = Weights::default();
    for (weight, by_length) in &mut best.fields {
        (*weight, *by_length) = (1.0, 0.75);
    }
    best.saturation = 1.5;
    best.stop_word = 0.1;
    best.synonym = 0.1;
    best.covered_name = 0.0;
    best.part = 0.5;
    best.weak_part = 0.0;
    let mut least = misses(pools, best);
    for _ in 0..ROUNDS {
        for (turn, values) in KNOBS {
            for &value in values {
                let mut tried = best;
                turn(&mut tried, value);
                let missed = misses(pools, tried);
                if missed < least {
                    (best, least) = (tried, missed);
                }
            }
        }
    }
    best
}

/// The average over the pools of what ours misses ÷ what plain BM25 misses.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn misses(pools: &[(&Pool, &Vec<Missed>)], weights: Weights) -> f64 {
    let sum = |missed: &[Missed], cut: usize| -> f64 {
        missed.iter().map(|missed| missed[cut] as f64).sum::<f64>() + 1.0
    };
    let of_pool = |(pool, plain): &(&Pool, &Vec<Missed>)| {
        let ours = pool.ours(weights);
        let ratio = |(cut, counts)| counts * sum(&ours, cut) / sum(plain, cut);
        COUNTS.into_iter().enumerate().map(ratio).sum::<f64>()
    };
    pools.iter().map(of_pool).sum::<f64>() / pools.len().max(1) as f64
}
