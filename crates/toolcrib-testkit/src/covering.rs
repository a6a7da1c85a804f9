//! Covering arrays: few rows that contain every possible pair of values of two dimensions.
//!
//! A row is a list of numbers, one for each dimension. [`product`] lists every possible row of a small product.
//! [`Search`] finds possible rows of a product that is too large to enumerate, such as one for each possible pair.
//! [`covering`] chooses a few of these rows that together contain all pairs.

use std::collections::HashMap;

/// Declares an enumeration with named values: a dimension of a covering array.
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

/// Declares a row of a covering array: one value for each [dimension](crate::dimension).
///
/// ```
/// use toolcrib_testkit::{combination, dimension};
///
/// dimension! { /** How a body ends. */ Ending { Succeeds = "succeeds", Fails = "fails" } }
/// dimension! { /** How a call comes in. */ Door { Direct = "direct", Batch = "batch" } }
/// combination! { /** A call. */ Row { door: Door, ending: Ending } }
///
/// let row = Row::of(&[1, 0]);
/// assert_eq!((row.door, row.ending), (Door::Batch, Ending::Succeeds));
/// assert_eq!((Row::SIZES, Row::FIELDS), (&[2, 2][..], &["door", "ending"][..]));
/// assert_eq!(row.names().collect::<Vec<_>>(), ["batch", "succeeds"]);
/// assert_eq!(row.special_names().collect::<Vec<_>>(), ["batch"]);
/// assert_eq!(Row::named(["batch"]), Some(row));
/// assert_eq!(Row::named(["by mail"]), None);
/// assert_eq!(row.values(), [1, 0]);
/// ```
#[macro_export]
macro_rules! combination {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $type:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct $name { $(pub(crate) $field: $type),* }

        #[allow(dead_code, reason = "no test needs all of it")]
        impl $name {
            /// How many values each dimension has, in the order of the fields.
            pub(crate) const SIZES: &'static [usize] = &[$($type::ALL.len()),*];

            /// The names of the dimensions, in the same order.
            pub(crate) const FIELDS: &'static [&'static str] = &[$(stringify!($field)),*];

            /// The row with these numbers; a missing number stands for the first value.
            pub(crate) fn of(values: &[usize]) -> Self {
                let mut values = values.iter();
                Self { $($field: $type::ALL[values.next().copied().unwrap_or(0)]),* }
            }

            /// The row with these named values and the first value of every other dimension; `None` if a name is
            /// unknown.
            pub(crate) fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
                let mut row = Self { $($field: $type::ALL[0]),* };
                for name in names {
                    let mut is_known = false;
                    $(if let Some(value) = $type::ALL.iter().find(|value| value.name() == name) {
                        row.$field = *value;
                        is_known = true;
                    })*
                    if !is_known {
                        return None;
                    }
                }
                Some(row)
            }

            /// The numbers of its values; [`of`](Self::of) turns them back into a row.
            pub(crate) fn values(&self) -> Vec<usize> {
                vec![$(self.$field as usize),*]
            }

            /// The names of its values.
            pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
                [$(self.$field.name()),*].into_iter()
            }

            /// The names of its special values, which are not the first of their dimension.
            pub(crate) fn special_names(&self) -> impl Iterator<Item = &'static str> + use<> {
                let all = [$((self.$field == $type::ALL[0], self.$field.name())),*];
                all.into_iter().filter(|(is_plain, _)| !is_plain).map(|(_, name)| name)
            }
        }
    };
}

/// Every possible row, in lexical order.
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

/// Two dimensions whose values are covered together.
pub type DimensionPair = (usize, usize);

/// A value of one dimension and a value of another.
pub type ValuePair = ((usize, usize), (usize, usize));

/// The pairs in a row.
pub fn pairs_of(row: &[usize]) -> impl Iterator<Item = ValuePair> + '_ {
    every_two(row.len()).into_iter().map(|(one, other)| ((one, row[one]), (other, row[other])))
}

/// Searches for possible rows of a product that is too large to enumerate; deterministic.
///
/// `possible` judges rows in which dimensions may still be open (`None`). It has to refuse a row as soon as no choice
/// for the open dimensions can make it possible; otherwise the search takes long.
///
/// The first value of each dimension is its plain one. Of 8 values that the search may choose freely, `plain` are
/// plain: in a row of only special values, one problem hides the others.
pub struct Search<P> {
    sizes: Vec<usize>,
    possible: P,
    plain: usize,
    /// The dimensions, those with the most impossible pairs first, to detect dead ends early.
    order: Vec<usize>,
    dice: u64,
}

impl<P: Fn(&[Option<usize>]) -> bool> Search<P> {
    /// A search in the product of dimensions of these sizes.
    pub fn new(sizes: &[usize], plain: usize, possible: P) -> Self {
        let mut refused = vec![0_usize; sizes.len()];
        for (one, other) in every_two(sizes.len()) {
            for values in product(&[sizes[one], sizes[other]], |_| true) {
                let mut row = vec![None; sizes.len()];
                (row[one], row[other]) = (Some(values[0]), Some(values[1]));
                let count = usize::from(!possible(&row));
                refused[one] += count;
                refused[other] += count;
            }
        }
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|place| std::cmp::Reverse(refused[*place]));
        Self { sizes: sizes.to_vec(), possible, plain, order, dice: 0x9E37_79B9_7F4A_7C15 }
    }

    /// The same search with other choices: each seed gives a different array.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        // Spreads the seed over all bits; zero would stay zero.
        self.dice = (self.dice ^ seed.wrapping_mul(0xD6E8_FEB8_6659_FD93)).max(1);
        self
    }

    /// At least `each` rows for every possible pair of values, if there are so many, and those pairs.
    pub fn candidates(&mut self, each: usize) -> (Vec<Vec<usize>>, Vec<ValuePair>) {
        let (mut rows, mut pairs) = (Vec::new(), Vec::new());
        // A row found for one pair contains many others.
        let mut had: HashMap<ValuePair, usize> = HashMap::new();
        for (one, other) in every_two(self.sizes.len()) {
            for values in product(&[self.sizes[one], self.sizes[other]], |_| true) {
                let pair = ((one, values[0]), (other, values[1]));
                for _ in had.get(&pair).copied().unwrap_or(0)..each {
                    let Some(found) = self.row_with(&[pair.0, pair.1]) else { break };
                    for pair in pairs_of(&found) {
                        *had.entry(pair).or_default() += 1;
                    }
                    rows.push(found);
                }
                if had.contains_key(&pair) {
                    pairs.push(pair);
                }
            }
        }
        (rows, pairs)
    }

    /// A possible row for each possible combination of values of these dimensions.
    pub fn combinations(&mut self, dimensions: &[usize]) -> Vec<Vec<usize>> {
        let sizes: Vec<_> = dimensions.iter().map(|place| self.sizes[*place]).collect();
        let all = product(&sizes, |_| true).into_iter();
        let set = |values: Vec<usize>| dimensions.iter().copied().zip(values).collect::<Vec<_>>();
        all.filter_map(|values| self.row_with(&set(values))).collect()
    }

    /// A possible row with these values; `None` if there is none.
    pub fn row_with(&mut self, values: &[(usize, usize)]) -> Option<Vec<usize>> {
        let mut row = vec![None; self.sizes.len()];
        for (place, value) in values {
            row[*place] = Some(*value);
        }
        if (self.possible)(&row) { self.completed(&mut row) } else { None }
    }

    fn completed(&mut self, row: &mut Vec<Option<usize>>) -> Option<Vec<usize>> {
        let mut open = self.order.iter().copied().filter(|place| row[*place].is_none());
        let Some(place) = open.next() else { return row.iter().copied().collect() };
        // Ends the search as soon as any dimension has no value left.
        if !open.all(|place| self.has_value(row, place)) {
            return None;
        }
        let size = self.sizes[place];
        let first = if self.roll(8) < self.plain { 0 } else { self.roll(size) };
        for step in 0..size {
            row[place] = Some((first + step) % size);
            if (self.possible)(row)
                && let Some(found) = self.completed(row)
            {
                return Some(found);
            }
        }
        row[place] = None;
        None
    }

    fn has_value(&self, row: &[Option<usize>], place: usize) -> bool {
        let mut row = row.to_vec();
        (0..self.sizes[place]).any(|value| {
            row[place] = Some(value);
            (self.possible)(&row)
        })
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        usize::try_from((self.dice >> 16) % sides as u64).unwrap_or(0)
    }
}

/// The indexes of a subset of `all` that contains every pair of values in the given couples of dimensions: greedy and
/// deterministic.
///
/// Rows are chosen by the number of new pairs they add. That number only decreases, so a row waits in the bucket of its
/// last count, and the buckets are emptied from the highest.
pub fn covering(all: &[Vec<usize>], couples: &[DimensionPair]) -> Vec<usize> {
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
    // Shuffled, so that values that do not matter for the pairs differ between rows.
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

/// All couples of this many dimensions.
pub fn every_two(dimensions: usize) -> Vec<DimensionPair> {
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
        let (rows, pairs) = Search::new(&SIZES, 4, partly).candidates(3);
        assert!(rows.iter().all(|row| possible(row)));
        let of_product: HashSet<_> = product(&SIZES, possible)
            .iter()
            .flat_map(|row| pairs_of(row).collect::<Vec<_>>())
            .collect();
        assert_eq!(pairs.iter().copied().collect::<HashSet<_>>(), of_product);
        let of_rows: HashSet<_> = rows.iter().flat_map(|row| pairs_of(row)).collect();
        assert_eq!(of_rows, of_product);
    }

    #[test]
    fn combinations_of_dimensions_come_once_each_where_they_are_possible() {
        let partly = |row: &[Option<usize>]| row[0] != Some(1) || row[1].is_none_or(|two| two > 1);
        let rows = Search::new(&SIZES, 8, partly).combinations(&[0, 1]);
        assert_eq!(rows.len(), 3 * 4 - 2);
        assert!(rows.iter().all(|row| row[2] == 0 && row[3] == 0), "the rest is plain");
    }
}
