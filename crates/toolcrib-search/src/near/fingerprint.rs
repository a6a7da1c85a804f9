//! Sixteen bytes that can rule out a name without reading it.

use super::words::words;

/// A summary of a name: which letters occur, which occur twice, how many there are, and bits for each word. Comparing
/// two takes a few instructions and never rules out a near name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    pub(super) letters: u64,
    /// A Bloom filter: two bits per word.
    pub(super) words: u64,
}

// Bits 0–25: a letter. 26–35: a digit. 36: any byte outside ASCII.
const DIGITS: u8 = 26;
const OTHER: u8 = 36;
// Bits 37–57: the second occurrence of one of the letters that repeat most often in names.
const AGAIN: u8 = 37;
const REPEATED: [u8; 21] = *b"etaisrnoclduphgmybfvw";
// Bits 58–63: the number of bytes that count; 63 means "63 or more".
const LEN: u8 = 58;
const LEN_MAX: u64 = 63;
const OCCURRENCES: u64 = (1 << LEN) - 1;

/// For every byte, the bits of its first and second occurrence; separators have none.
const BITS: [[u64; 2]; 256] = {
    let mut bits = [[0; 2]; 256];
    let mut byte = 0_u8;
    loop {
        bits[byte as usize][0] = match byte.to_ascii_lowercase() {
            letter @ b'a'..=b'z' => 1 << (letter - b'a'),
            digit @ b'0'..=b'9' => 1 << (digit - b'0' + DIGITS),
            0x80.. => 1 << OTHER,
            _ => 0,
        };
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    let mut again = 0;
    while again < LEN - AGAIN {
        let letter = REPEATED[again as usize];
        bits[letter as usize][1] = 1 << (AGAIN + again);
        bits[letter.to_ascii_uppercase() as usize][1] = 1 << (AGAIN + again);
        again += 1;
    }
    bits
};

impl Fingerprint {
    /// The fingerprint of `name`.
    pub(super) fn of(name: &str) -> Self {
        let words = words(name).map(word_bits).fold(0, |all, word| all | word);
        Self { words, ..Self::of_letters(name) }
    }

    /// A fingerprint without words, for a name that is read at once: finding its words costs three times as much as its
    /// letters.
    pub(super) fn of_letters(name: &str) -> Self {
        let mut seen = 0_u64;
        let mut len = 0_u64;
        for &byte in name.as_bytes() {
            let [first, again] = BITS[usize::from(byte)];
            // All ones if the letter occurred before; a branch here would be mispredicted half the time.
            let known = 0_u64.wrapping_sub(u64::from(seen & first != 0));
            seen |= first | again & known;
            len += u64::from(first != 0);
        }
        Self { letters: seen | len.min(LEN_MAX) << LEN, words: u64::MAX }
    }

    /// The fingerprints of names that may be within `limit` edits of this one.
    pub(super) const fn reach(self, limit: usize) -> QueryMask {
        let len = self.letters >> LEN;
        let limit = limit as u64;
        // All lengths from the cap on look the same.
        let shortest = len.saturating_sub(limit);
        QueryMask { letters: self.letters, shortest, span: len + limit - shortest, most: 2 * limit }
    }

    /// Whether a name with this fingerprint may be within `limit` edits of one with `other`.
    ///
    /// An edit changes the length by at most one, and adds or removes one occurrence of at most one letter each; a swap
    /// of neighbours does neither.
    pub(super) const fn within(self, other: Self, limit: usize) -> bool {
        // Compare the lengths first: without a special instruction, counting bits takes a dozen instructions.
        let lengths = (self.letters >> LEN).abs_diff(other.letters >> LEN);
        let differing = (self.letters ^ other.letters) & OCCURRENCES;
        lengths <= limit as u64 && differing.count_ones() as usize <= 2 * limit
    }

    /// Whether two words of one name may be words of the other. Two different words have four bits, or seldom three; two
    /// words with fewer are not found.
    #[inline]
    pub(super) const fn may_share_two_words(self, other: Self) -> bool {
        let common = self.words & other.words;
        let without_one = common & common.wrapping_sub(1);
        without_one & without_one.wrapping_sub(1) != 0
    }

    /// Whether all words of one name may be words of the other.
    #[inline]
    pub(super) const fn shares_words(self, other: Self) -> bool {
        covers(self.words, other.words)
            & covers(self.letters & OCCURRENCES, other.letters & OCCURRENCES)
    }
}

/// What nearby fingerprints have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueryMask {
    letters: u64,
    /// The shortest length, and the range of lengths above it.
    shortest: u64,
    span: u64,
    /// How many bits may differ.
    most: u64,
}

impl QueryMask {
    /// [`Fingerprint::within`] without a branch, for many fingerprints side by side.
    #[inline]
    pub(super) const fn holds(self, letters: u64) -> bool {
        let lengths = (letters >> LEN).wrapping_sub(self.shortest) <= self.span;
        let differing = (letters ^ self.letters) & OCCURRENCES;
        lengths & (differing.count_ones() as u64 <= self.most)
    }
}

/// Whether one of two bit sets contains the other.
#[expect(clippy::needless_bitwise_bool, reason = "a branch here is mispredicted too often")]
const fn covers(one: u64, other: u64) -> bool {
    (one & !other == 0) | (other & !one == 0)
}

/// The two bits of a word, derived from its length and both ends: nearly as distinctive as a hash of all its letters,
/// and several times as fast.
fn word_bits(word: &str) -> u64 {
    let end = |byte: Option<&u8>| byte.map_or(0, |byte| u64::from(byte.to_ascii_lowercase()));
    let bytes = word.as_bytes();
    let ends = end(bytes.first()) << 8 | end(bytes.last());
    // Multiplying by the golden ratio carries every bit into the upper ones.
    let hash = (ends ^ (bytes.len() as u64) << 16).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    1 << (hash >> 58) | 1 << (hash >> 52 & 63)
}

#[cfg(test)]
mod tests {
    use super::Fingerprint;
    use crate::near::distance::Pattern;
    use crate::near::words::{letters, overlap, words};
    use proptest::prelude::*;

    #[test]
    fn case_and_separators_do_not_change_the_fingerprint() {
        assert_eq!(Fingerprint::of("read_file"), Fingerprint::of("ReadFile"));
        assert_ne!(Fingerprint::of("read_file"), Fingerprint::of("read_files"));
    }

    #[test]
    fn repeated_letters_and_lengths_count() {
        let (once, twice) = (Fingerprint::of("cat"), Fingerprint::of("catt"));
        assert!(once.within(twice, 1) && !once.within(twice, 0));
        assert!(!Fingerprint::of("zz").within(Fingerprint::of("zzzz"), 1));
        assert!(!Fingerprint::of("tic").within(Fingerprint::of("tac"), 0));
    }

    #[test]
    fn unrelated_names_are_ruled_out() {
        let read_file = Fingerprint::of("read_file");
        for name in ["disk_usage", "send_mail", "top_processes"] {
            let other = Fingerprint::of(name);
            assert!(!read_file.within(other, 2) && !read_file.shares_words(other), "{name}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn no_near_spelling_is_ruled_out(a in "[a-eA-E_0-2é]{1,60}", b in "[a-eA-E_0-2é]{1,60}") {
            let (one, other) = (Fingerprint::of(&a), Fingerprint::of(&b));
            if let Some(pattern) = Pattern::new(&letters(&a).collect::<Vec<_>>()) {
                let text: Vec<u8> = letters(&b).collect();
                // No two of them differ by more than this.
                let distance = pattern.distance_within(&text, 120).unwrap();
                prop_assert!(one.within(other, distance));
            }
        }

        #[test]
        fn reach_agrees_with_within(
            a in "[a-e]{1,70}",
            b in "[a-e]{1,70}",
            limit in 0_usize..5,
        ) {
            let (one, other) = (Fingerprint::of(&a), Fingerprint::of(&b));
            prop_assert_eq!(one.reach(limit).holds(other.letters), one.within(other, limit));
        }

        #[test]
        fn no_shared_wording_is_ruled_out(a in "[abAB_]{1,9}", b in "[abAB_]{1,9}") {
            if overlap(&words(&a).collect::<Vec<_>>(), &b).is_some() {
                prop_assert!(Fingerprint::of(&a).shares_words(Fingerprint::of(&b)));
                prop_assert!(Fingerprint::of(&a).shares_words(Fingerprint::of_letters(&b)));
            }
        }
    }
}
