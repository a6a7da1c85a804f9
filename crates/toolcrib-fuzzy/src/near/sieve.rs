//! Fingerprints of many names, gone through side by side.

use super::fingerprint::{Fingerprint, Reach};
use super::query::Query;

/// How many are looked at together: without a branch among them, the compiler takes several at a
/// time, and nearly all are ruled out together.
const TOGETHER: usize = 8;

/// The fingerprints of many names, sixteen bytes each, by their places.
///
/// Making one reads the whole name; comparing one does not touch the name. A table of thousands of
/// names therefore keeps them, for [`near_names_among`](crate::near_names_among).
#[derive(Clone, Debug, Default)]
pub struct Fingerprints {
    letters: Vec<u64>,
    words: Vec<u64>,
}

impl Fingerprints {
    /// The fingerprints of these names, in this order.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = Self::default();
        for name in names {
            let Fingerprint { letters, words } = Fingerprint::of(name);
            all.letters.push(letters);
            all.words.push(words);
        }
        all
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.letters.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.letters.is_empty()
    }

    /// Calls `each` with the places of the names that are worth reading.
    pub(super) fn that_may_match(&self, query: &Query<'_>, each: impl FnMut(usize)) {
        // Most queries have one spelling or two; the loops know how many.
        match query.reaches() {
            (None, None) => self.sift(query, [], each),
            (Some(one), None) | (None, Some(one)) => self.sift(query, [one], each),
            (Some(one), Some(other)) => self.sift(query, [one, other], each),
        }
    }

    fn sift<const SPELLINGS: usize>(
        &self,
        query: &Query<'_>,
        reaches: [Reach; SPELLINGS],
        mut each: impl FnMut(usize),
    ) {
        let wanted = query.fingerprint();
        let may_match = |letters: u64, words: u64| {
            reaches
                .iter()
                .fold(wanted.shares_words(Fingerprint { letters, words }), |may, reach| {
                    may | reach.holds(letters)
                })
        };
        let (letters, last_letters) = self.letters.as_chunks::<TOGETHER>();
        let (words, last_words) = self.words.as_chunks::<TOGETHER>();
        let mut first = 0;
        for (letters, words) in letters.iter().zip(words) {
            let mut any = false;
            for lane in 0..TOGETHER {
                any |= may_match(letters[lane], words[lane]);
            }
            if any {
                for lane in 0..TOGETHER {
                    if may_match(letters[lane], words[lane]) {
                        each(first + lane);
                    }
                }
            }
            first += TOGETHER;
        }
        for (lane, (letters, words)) in last_letters.iter().zip(last_words).enumerate() {
            if may_match(*letters, *words) {
                each(first + lane);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{near_names, near_names_among};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn kept_fingerprints_change_no_answer(
            query in "[a-cA-C_:]{0,12}",
            names in proptest::collection::vec("[a-cA-C_]{1,12}", 0..40),
        ) {
            let kept = Fingerprints::of(names.iter().map(String::as_str));
            let among = near_names_among(&query, &kept, |at| Some(names[at].as_str()));
            prop_assert_eq!(among, near_names(&query, names.iter().map(String::as_str)));
        }
    }
}
