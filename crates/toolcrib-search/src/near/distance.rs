//! Edit distance between two short texts, one machine word per column of the table.
//!
//! Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours cost one each, and nothing is
//! edited twice. Swapped neighbours are the most common typo, so they must not cost two. The algorithm is Myers' (1999)
//! in Hyyrö's form (2003): vertical differences between cells are -1, 0 or +1 and are stored in two words, so a text of
//! n bytes takes n short steps.

/// The longest pattern: one bit per byte.
pub(super) const MAX_PATTERN: usize = 64;

/// A pattern prepared for comparison with many texts.
pub(super) struct Pattern {
    /// For every byte value, its positions in the pattern.
    positions: [u64; 256],
    len: usize,
}

impl Pattern {
    /// `None` for an empty pattern and for one over [`MAX_PATTERN`] bytes.
    pub(super) fn new(pattern: &[u8]) -> Option<Self> {
        if pattern.is_empty() || pattern.len() > MAX_PATTERN {
            return None;
        }
        let mut positions = [0; 256];
        for (at, &byte) in pattern.iter().enumerate() {
            positions[usize::from(byte)] |= 1 << at;
        }
        Some(Self { positions, len: pattern.len() })
    }

    /// The number of bytes of the pattern.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The distance to `text`; `None` if it is over `limit`.
    pub(super) fn distance_within(&self, text: &[u8], limit: usize) -> Option<usize> {
        if self.len.abs_diff(text.len()) > limit {
            return None;
        }
        let last = 1_u64 << (self.len - 1);
        let mut score = self.len;
        // Differences down the column: where the next cell is larger by one, and where it is smaller.
        let (mut more, mut less) = (u64::MAX, 0_u64);
        // For the previous column: cells that equal their upper left neighbour, and matches.
        let (mut diagonal, mut matches_before) = (0_u64, 0_u64);
        for (left, &byte) in (0..text.len()).rev().zip(text) {
            let matches = self.positions[usize::from(byte)];
            let swaps = ((!diagonal & matches) << 1) & matches_before;
            let carried = (matches & more).wrapping_add(more) ^ more;
            diagonal = carried | matches | less | swaps;
            let right_more = less | !(diagonal | more);
            let right_less = diagonal & more;
            if right_more & last != 0 {
                score += 1;
            } else if right_less & last != 0 {
                score -= 1;
            }
            let right_more = (right_more << 1) | 1;
            more = (right_less << 1) | !(diagonal | right_more);
            less = right_more & diagonal;
            matches_before = matches;
            // Each byte reduces the distance by at most one, so very different texts are rejected after a few bytes.
            if score > limit + left {
                return None;
            }
        }
        (score <= limit).then_some(score)
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_PATTERN, Pattern};
    use proptest::prelude::*;

    /// The textbook table, cell by cell.
    fn table_distance(a: &[u8], b: &[u8]) -> usize {
        let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
        for i in 0..=a.len() {
            for j in 0..=b.len() {
                table[i][j] = if i == 0 || j == 0 {
                    i + j
                } else {
                    let changed = usize::from(a[i - 1] != b[j - 1]);
                    let mut best = (table[i - 1][j] + 1)
                        .min(table[i][j - 1] + 1)
                        .min(table[i - 1][j - 1] + changed);
                    if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                        best = best.min(table[i - 2][j - 2] + 1);
                    }
                    best
                };
            }
        }
        table[a.len()][b.len()]
    }

    #[test]
    fn known_distances() {
        for (pattern, text, expected) in [
            ("kitten", "sitting", 3),
            ("readfile", "raedfile", 1),
            ("readfile", "readfile", 0),
            ("ca", "abc", 3), // 2 if a swapped pair might be edited again; here it may not
            ("abc", "", 3),
            ("a", "aaaa", 3),
        ] {
            let pattern = Pattern::new(pattern.as_bytes()).unwrap();
            let within = |limit| pattern.distance_within(text.as_bytes(), limit);
            assert_eq!(within(expected), Some(expected), "{text}");
            assert_eq!(expected.checked_sub(1).and_then(within), None, "{text}");
        }
    }

    #[test]
    fn the_length_of_a_pattern_is_bounded() {
        assert!(Pattern::new(b"").is_none());
        assert!(Pattern::new(&[b'a'; MAX_PATTERN]).is_some());
        assert!(Pattern::new(&[b'a'; MAX_PATTERN + 1]).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        // A small alphabet: matches, swaps and repeats are the error-prone cases.
        #[test]
        fn the_bit_algorithm_agrees_with_the_table(
            pattern in proptest::collection::vec(b'a'..=b'd', 1..=MAX_PATTERN),
            text in proptest::collection::vec(b'a'..=b'd', 0..=80),
            limit in 0_usize..80,
        ) {
            let distance = table_distance(&pattern, &text);
            let pattern = Pattern::new(&pattern).unwrap();
            let within = (distance <= limit).then_some(distance);
            prop_assert_eq!(pattern.distance_within(&text, limit), within);
        }

        #[test]
        fn the_bits_agree_with_the_table_on_any_short_bytes(
            pattern in proptest::collection::vec(any::<u8>(), 1..=12),
            text in proptest::collection::vec(any::<u8>(), 0..=12),
            limit in 0_usize..12,
        ) {
            let distance = table_distance(&pattern, &text);
            let pattern = Pattern::new(&pattern).unwrap();
            let within = (distance <= limit).then_some(distance);
            prop_assert_eq!(pattern.distance_within(&text, limit), within);
        }
    }
}
