//! Compares the fingerprints of many names side by side.

use super::fingerprint::{Fingerprint, QueryMask};
use super::query::Query;

/// How many fingerprints are compared together. Nearly all are ruled out together, without a branch among them.
const TOGETHER: usize = 8;

/// The fingerprints of many names, sixteen bytes each, by position.
///
/// Computing one reads the whole name; comparing one does not touch the name. A table of thousands of names therefore
/// stores them, for [`near_names_among`](crate::near_names_among).
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

    /// Calls `each` with the positions and fingerprints of the names that have to be read.
    pub(super) fn that_may_match(
        &self,
        query: &Query<'_>,
        mut each: impl FnMut(usize, Fingerprint),
    ) {
        // Most queries have one or two readings; the loops know the number at compile time.
        match query.reaches() {
            (None, None) => self.sift(query, [], &mut each),
            (Some(one), None) | (None, Some(one)) => self.sift(query, [one], &mut each),
            (Some(one), Some(other)) => self.sift(query, [one, other], &mut each),
        }
    }

    /// Calls `each` with the positions of the names that may share two words with the query.
    pub(super) fn that_may_share_words(&self, query: &Query<'_>, mut each: impl FnMut(usize)) {
        for (at, (&letters, &words)) in self.letters.iter().zip(&self.words).enumerate() {
            if query.fingerprint().may_share_two_words(Fingerprint { letters, words }) {
                each(at);
            }
        }
    }

    fn sift<const SPELLINGS: usize>(
        &self,
        query: &Query<'_>,
        reaches: [QueryMask; SPELLINGS],
        each: &mut impl FnMut(usize, Fingerprint),
    ) {
        let wanted = QueryMasks { fingerprint: query.fingerprint(), reaches };
        let (letters, last_letters) = self.letters.as_chunks();
        let (words, last_words) = self.words.as_chunks();
        sift_chunks(letters, words, &wanted, each);
        let first = self.letters.len() - last_letters.len();
        for (lane, (&letters, &words)) in last_letters.iter().zip(last_words).enumerate() {
            let name = Fingerprint { letters, words };
            if wanted.may_be(name) {
                each(first + lane, name);
            }
        }
    }
}

/// What fingerprints are compared with.
struct QueryMasks<const SPELLINGS: usize> {
    fingerprint: Fingerprint,
    reaches: [QueryMask; SPELLINGS],
}

impl<const SPELLINGS: usize> QueryMasks<SPELLINGS> {
    #[inline]
    fn may_be(&self, name: Fingerprint) -> bool {
        let words = self.fingerprint.shares_words(name);
        self.reaches.iter().fold(words, |may, reach| may | reach.holds(name.letters))
    }
}

/// The hot loop, compiled for several processor generations; the best supported version runs. The newest
/// processors count bits side by side in one instruction; a baseline build needs a dozen.
#[multiversion::multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512vl+avx512vpopcntdq",
    "x86_64+avx2+popcnt",
    "x86_64+sse4.2+popcnt",
))]
fn sift_chunks<const SPELLINGS: usize>(
    letters: &[[u64; TOGETHER]],
    words: &[[u64; TOGETHER]],
    wanted: &QueryMasks<SPELLINGS>,
    each: &mut impl FnMut(usize, Fingerprint),
) {
    for (chunk, (letters, words)) in letters.iter().zip(words).enumerate() {
        let name = |lane: usize| Fingerprint { letters: letters[lane], words: words[lane] };
        let mut any = false;
        for lane in 0..TOGETHER {
            any |= wanted.may_be(name(lane));
        }
        if !any {
            continue;
        }
        for lane in 0..TOGETHER {
            if wanted.may_be(name(lane)) {
                each(chunk * TOGETHER + lane, name(lane));
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
        fn stored_fingerprints_change_no_answer(
            query in "[a-cA-C_:]{0,12}",
            names in proptest::collection::vec("[a-cA-C_]{1,12}", 0..40),
        ) {
            let kept = Fingerprints::of(names.iter().map(String::as_str));
            let among = near_names_among(&query, &kept, |at| Some(names[at].as_str()));
            prop_assert_eq!(among, near_names(&query, names.iter().map(String::as_str)));
        }
    }
}
