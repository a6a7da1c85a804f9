//! A covering array: few rows in which every possible pair of values of two dimensions occurs.
//!
//! A row is a list of numbers, one per dimension. Which two dimensions are taken together is said by
//! the caller, who may add dimensions that stand for several others.

use std::collections::HashMap;

/// Every row that is possible, in lexical order.
pub(crate) fn product(sizes: &[usize], possible: impl Fn(&[usize]) -> bool) -> Vec<Vec<usize>> {
    let mut rows = Vec::new();
    let mut row = vec![0; sizes.len()];
    'rows: loop {
        if possible(&row) {
            rows.push(row.clone());
        }
        for place in (0..sizes.len()).rev() {
            row[place] += 1;
            if row[place] < sizes[place] {
                continue 'rows;
            }
            row[place] = 0;
        }
        return rows;
    }
}

/// Two dimensions whose values are to be covered together.
pub(crate) type Couple = (usize, usize);

/// The places of those of `all` that together have every pair of values that `all` has in the couples
/// of dimensions: greedy, and the same at every run.
///
/// Rows are taken by how many new pairs they bring. What a row brings only falls, so the rows are gone
/// through once for each number, from the highest.
pub(crate) fn covering(all: &[Vec<usize>], couples: &[Couple]) -> Vec<usize> {
    let mut numbers: HashMap<(usize, usize, usize), usize> = HashMap::new();
    let pairs: Vec<Vec<usize>> = all
        .iter()
        .map(|row| {
            let pairs = couples.iter().enumerate().map(|(couple, (one, other))| {
                let next = numbers.len();
                *numbers.entry((couple, row[*one], row[*other])).or_insert(next)
            });
            pairs.collect()
        })
        .collect();
    let mut missing = vec![true; numbers.len()];
    let mut chosen = Vec::new();
    let mut left: Vec<usize> = (0..all.len()).collect();
    // Scattered, so that what does not matter for the pairs differs from row to row.
    left.sort_by_key(|row| row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 7);
    for wanted in (1..=couples.len()).rev() {
        left.retain(|row| {
            let news = pairs[*row].iter().filter(|pair| missing[**pair]).count();
            if news >= wanted {
                for pair in &pairs[*row] {
                    missing[*pair] = false;
                }
                chosen.push(*row);
            }
            news > 0 && news < wanted
        });
    }
    chosen.sort_unstable();
    chosen
}

/// Every two of so many dimensions.
pub(crate) fn every_two(dimensions: usize) -> Vec<Couple> {
    (0..dimensions).flat_map(|one| (one + 1..dimensions).map(move |other| (one, other))).collect()
}

#[test]
fn every_pair_that_is_possible_is_in_a_row() {
    let sizes = [3, 4, 2, 5];
    let all = product(&sizes, |row| row[0] != 1 || row[1] > 1);
    assert_eq!(all.len(), 120 - 20);
    let rows = covering(&all, &every_two(4));
    let pairs = |row: &Vec<usize>| {
        every_two(4)
            .into_iter()
            .map(|(one, other)| (one, row[one], other, row[other]))
            .collect::<Vec<_>>()
    };
    let wanted: std::collections::HashSet<_> = all.iter().flat_map(pairs).collect();
    let got: std::collections::HashSet<_> = rows.iter().flat_map(|row| pairs(&all[*row])).collect();
    assert_eq!(wanted, got);
    assert!(rows.len() <= 30, "{}", rows.len());
    assert_eq!(rows, covering(&all, &every_two(4)), "the same at every run");
}
