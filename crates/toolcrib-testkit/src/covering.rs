//! Covering arrays: few rows in which every possible pair of values of two dimensions occurs.
//!
//! A row is a list of numbers, one per dimension. [`product`] lists every possible row of a small
//! product. [`candidates`] lists possible rows of a product that is too large to enumerate, at
//! least one for each possible pair. [`covering`] chooses few of the rows that together have all
//! pairs of the others.

use std::collections::HashMap;

/// Declares an enumeration whose values have names: a dimension of a covering array.
///
/// ```
/// toolcrib_testkit::dimension! {
///     /// How a body ends.
///     Ending { Succeeds = "succeeds", Fails = "fails" }
/// }
/// assert_eq!(Ending::ALL.len(), 2);
/// assert_eq!(Ending::Fails.name(), "fails");
/// ```
#[macro_export]
macro_rules! dimension {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum $name { $($variant),* }

        impl $name {
            /// Every value, in the order of their numbers.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name of the value.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }
        }
    };
}

/// Every row that is possible, in lexical order.
pub fn product(sizes: &[usize], possible: impl Fn(&[usize]) -> bool) -> Vec<Vec<usize>> {
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
pub type Couple = (usize, usize);

/// A value of one dimension and a value of another one.
pub type Pair = ((usize, usize), (usize, usize));

/// The pairs that occur in a row.
pub fn pairs_of(row: &[usize]) -> impl Iterator<Item = Pair> + '_ {
    every_two(row.len()).into_iter().map(|(one, other)| ((one, row[one]), (other, row[other])))
}

/// Possible rows, `each` of them for every pair of values that any possible row has, and those
/// pairs. For products that are too large to enumerate.
///
/// `possible` judges rows in which dimensions may still be open (`None`). It has to refuse a row as
/// soon as no choice for the open dimensions can help; otherwise the search takes long. The rows
/// are the same at every run.
pub fn candidates(
    sizes: &[usize],
    possible: impl Fn(&[Option<usize>]) -> bool,
    each: usize,
) -> (Vec<Vec<usize>>, Vec<Pair>) {
    let mut search = Search { sizes, possible, dice: 0x9E37_79B9_7F4A_7C15 };
    let (mut rows, mut pairs) = (Vec::new(), Vec::new());
    for (one, other) in every_two(sizes.len()) {
        for (value, second) in product(&[sizes[one], sizes[other]], |_| true)
            .into_iter()
            .map(|values| (values[0], values[1]))
        {
            let mut found = (0..each).map_while(|_| {
                let mut row = vec![None; sizes.len()];
                (row[one], row[other]) = (Some(value), Some(second));
                search.completed(&mut row)
            });
            let Some(first) = found.next() else { continue };
            pairs.push(((one, value), (other, second)));
            rows.push(first);
            rows.extend(found);
        }
    }
    (rows, pairs)
}

/// Looks for possible rows at random, exhaustively.
struct Search<'s, P> {
    sizes: &'s [usize],
    possible: P,
    dice: u64,
}

impl<P: Fn(&[Option<usize>]) -> bool> Search<'_, P> {
    /// A possible row with the values that are set; `None` if there is none.
    fn completed(&mut self, row: &mut Vec<Option<usize>>) -> Option<Vec<usize>> {
        if !(self.possible)(row) {
            return None;
        }
        let open: Vec<_> = (0..row.len()).filter(|place| row[*place].is_none()).collect();
        if open.is_empty() {
            return row.iter().copied().collect();
        }
        // A dimension without a value left ends the search here, however late it would be its turn.
        if open.iter().any(|place| !self.has_value(row, *place)) {
            return None;
        }
        let place = open[self.roll(open.len())];
        let first = self.roll(self.sizes[place]);
        for step in 0..self.sizes[place] {
            row[place] = Some((first + step) % self.sizes[place]);
            if let Some(found) = self.completed(row) {
                return Some(found);
            }
        }
        row[place] = None;
        None
    }

    fn has_value(&self, row: &mut [Option<usize>], place: usize) -> bool {
        let has = (0..self.sizes[place]).any(|value| {
            row[place] = Some(value);
            (self.possible)(row)
        });
        row[place] = None;
        has
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        usize::try_from(self.dice % sides as u64).unwrap_or(0)
    }
}

/// The places of those of `all` that together have every pair of values that `all` has in the couples
/// of dimensions: greedy, and the same at every run.
///
/// Rows are taken by how many new pairs they bring. What a row brings only falls, so a row waits in
/// the bucket of what it last would have brought, and the buckets are emptied from the highest.
pub fn covering(all: &[Vec<usize>], couples: &[Couple]) -> Vec<usize> {
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
    // Scattered, so that what does not matter for the pairs differs from row to row.
    let scattered = |row: usize| row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 7;
    let mut buckets: Vec<Vec<usize>> = vec![Vec::new(); couples.len() + 1];
    buckets[couples.len()] = (0..all.len()).collect();
    for wanted in (1..=couples.len()).rev() {
        let mut bucket = std::mem::take(&mut buckets[wanted]);
        bucket.sort_by_key(|row| scattered(*row));
        for row in bucket {
            let news = pairs[row].iter().filter(|pair| missing[**pair]).count();
            if news >= wanted {
                for pair in &pairs[row] {
                    missing[*pair] = false;
                }
                chosen.push(row);
            } else {
                buckets[news].push(row);
            }
        }
    }
    chosen.sort_unstable();
    chosen
}

/// Every two of so many dimensions.
pub fn every_two(dimensions: usize) -> Vec<Couple> {
    (0..dimensions).flat_map(|one| (one + 1..dimensions).map(move |other| (one, other))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const SIZES: [usize; 4] = [3, 4, 2, 5];

    #[test]
    fn every_pair_that_is_possible_is_in_a_row() {
        let all = product(&SIZES, |row| row[0] != 1 || row[1] > 1);
        assert_eq!(all.len(), 120 - 20);
        let rows = covering(&all, &every_two(4));
        let wanted: HashSet<_> = all.iter().flat_map(|row| pairs_of(row)).collect();
        let got: HashSet<_> = rows.iter().flat_map(|row| pairs_of(&all[*row])).collect();
        assert_eq!(wanted, got);
        assert!(rows.len() <= 30, "{}", rows.len());
        assert_eq!(rows, covering(&all, &every_two(4)), "the same at every run");
    }

    #[test]
    fn candidates_have_every_pair_of_the_product_and_no_impossible_row() {
        let possible = |row: &[usize]| row[0] != 1 || row[1] > 1;
        let partly = |row: &[Option<usize>]| row[0] != Some(1) || row[1].is_none_or(|two| two > 1);
        let (rows, pairs) = candidates(&SIZES, partly, 3);
        assert!(rows.iter().all(|row| possible(row)));
        let of_product: HashSet<_> = product(&SIZES, possible)
            .iter()
            .flat_map(|row| pairs_of(row).collect::<Vec<_>>())
            .collect();
        assert_eq!(pairs.iter().copied().collect::<HashSet<_>>(), of_product);
        let of_rows: HashSet<_> = rows.iter().flat_map(|row| pairs_of(row)).collect();
        assert_eq!(of_rows, of_product);
    }
}
