//! A line diff in linear time except for sorting.
//!
//! Lines that occur once on both sides are anchors (Cohen's patience diff). The text between two anchors is compared
//! again, and small remainders line by line. A large remainder without an anchor counts as replaced: that is never
//! wrong, only coarser.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

use foldhash::fast::FixedState;

/// The largest table for comparing small remainders, in cells.
const CELLS: usize = 4_096;

/// How deep the text between anchors is searched for more anchors.
const DEPTH: usize = 16;

/// Lines on both sides that are equal, or one replaced by the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hunk {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
    pub(super) equal: bool,
}

/// Hunks that cover both sides completely, alternating between equal and different.
pub(super) fn hunks<T: Eq + Hash>(old: &[T], new: &[T]) -> Vec<Hunk> {
    let mut pairs = Vec::new();
    let whole = (0..old.len(), 0..new.len());
    Comparison { old, new, pairs: &mut pairs }.compare(whole.0, whole.1, DEPTH);
    let mut hunks: Vec<Hunk> = Vec::new();
    let (mut old_at, mut new_at) = (0, 0);
    for (old_pair, new_pair) in pairs.into_iter().chain([(old.len(), new.len())]) {
        if old_at < old_pair || new_at < new_pair {
            hunks.push(Hunk { old: old_at..old_pair, new: new_at..new_pair, equal: false });
        }
        if old_pair == old.len() && new_pair == new.len() {
            break;
        }
        match hunks.last_mut() {
            Some(last) if last.equal => {
                last.old.end += 1;
                last.new.end += 1;
            }
            _ => hunks.push(Hunk {
                old: old_pair..old_pair + 1,
                new: new_pair..new_pair + 1,
                equal: true,
            }),
        }
        (old_at, new_at) = (old_pair + 1, new_pair + 1);
    }
    hunks
}

struct Comparison<'a, T> {
    old: &'a [T],
    new: &'a [T],
    /// Pairs of equal lines, in order on both sides.
    pairs: &'a mut Vec<(usize, usize)>,
}

impl<T: Eq + Hash> Comparison<'_, T> {
    fn compare(&mut self, mut old: Range<usize>, mut new: Range<usize>, depth: usize) {
        while !old.is_empty() && !new.is_empty() && self.old[old.start] == self.new[new.start] {
            self.pairs.push((old.start, new.start));
            old.start += 1;
            new.start += 1;
        }
        let mut tail = 0;
        while !old.is_empty() && !new.is_empty() && self.old[old.end - 1] == self.new[new.end - 1] {
            old.end -= 1;
            new.end -= 1;
            tail += 1;
        }
        if !old.is_empty() && !new.is_empty() {
            if old.len() * new.len() <= CELLS {
                self.table(old.clone(), new.clone());
            } else if depth > 0 {
                self.between_anchors(old.clone(), new.clone(), depth - 1);
            }
        }
        self.pairs.extend((0..tail).map(|line| (old.end + line, new.end + line)));
    }

    /// The longest common subsequence, cell by cell.
    fn table(&mut self, old: Range<usize>, new: Range<usize>) {
        let width = new.len() + 1;
        let mut longest = vec![0_u16; (old.len() + 1) * width];
        for i in (0..old.len()).rev() {
            for j in (0..new.len()).rev() {
                longest[i * width + j] = if self.old[old.start + i] == self.new[new.start + j] {
                    longest[(i + 1) * width + j + 1] + 1
                } else {
                    longest[(i + 1) * width + j].max(longest[i * width + j + 1])
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < old.len() && j < new.len() {
            if self.old[old.start + i] == self.new[new.start + j] {
                self.pairs.push((old.start + i, new.start + j));
                i += 1;
                j += 1;
            } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
                i += 1;
            } else {
                j += 1;
            }
        }
    }

    fn between_anchors(&mut self, old: Range<usize>, new: Range<usize>, depth: usize) {
        let anchors = self.anchors(old.clone(), new.clone());
        if anchors.is_empty() {
            return;
        }
        let (mut old_at, mut new_at) = (old.start, new.start);
        for (old_anchor, new_anchor) in anchors {
            // The previous anchor may already have reached this one.
            if old_anchor < old_at || new_anchor < new_at {
                continue;
            }
            self.compare(old_at..old_anchor, new_at..new_anchor, depth);
            self.pairs.push((old_anchor, new_anchor));
            (old_at, new_at) = (old_anchor + 1, new_anchor + 1);
        }
        self.compare(old_at..old.end, new_at..new.end, depth);
    }

    /// Lines that occur once on both sides: the most that have the same order.
    fn anchors(&self, old: Range<usize>, new: Range<usize>) -> Vec<(usize, usize)> {
        let mut seen: HashMap<&T, (usize, usize, usize), FixedState> =
            HashMap::with_capacity_and_hasher(old.len(), FixedState::default());
        for at in old {
            seen.entry(&self.old[at]).or_insert((0, 0, at)).0 += 1;
        }
        for at in new.clone() {
            if let Some(entry) = seen.get_mut(&self.new[at]) {
                entry.1 += 1;
            }
        }
        let common: Vec<(usize, usize)> = new
            .filter_map(|at| match seen.get(&self.new[at]) {
                Some((1, 1, old)) => Some((*old, at)),
                _ => None,
            })
            .collect();
        longest_rising(&common)
    }
}

/// The longest run of pairs whose first numbers increase; the second ones already do.
fn longest_rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length, the pair that ends the run with the smallest number; and the predecessor of each pair.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, (old, _)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].0 < *old);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        if length == ends.len() {
            ends.push(at);
        } else {
            ends[length] = at;
        }
    }
    let mut run = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(at) = next {
        run.push(pairs[at]);
        next = before[at];
    }
    run.reverse();
    run
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rebuilt(old: &[u16], new: &[u16]) -> usize {
        let (mut old_at, mut new_at, mut equal) = (0, 0, 0);
        let mut last_equal = None;
        for hunk in hunks(old, new) {
            assert_eq!((hunk.old.start, hunk.new.start), (old_at, new_at), "nothing is left out");
            assert_ne!(last_equal, Some(hunk.equal), "they take turns");
            if hunk.equal {
                assert_eq!(old[hunk.old.clone()], new[hunk.new.clone()]);
                equal += hunk.old.len();
            }
            last_equal = Some(hunk.equal);
            (old_at, new_at) = (hunk.old.end, hunk.new.end);
        }
        assert_eq!((old_at, new_at), (old.len(), new.len()));
        equal
    }

    fn longest_common(old: &[u16], new: &[u16]) -> usize {
        let mut row = vec![0; new.len() + 1];
        for a in old {
            let mut diagonal = 0;
            for (j, b) in new.iter().enumerate() {
                let above = row[j + 1];
                row[j + 1] = if a == b { diagonal + 1 } else { above.max(row[j]) };
                diagonal = above;
            }
        }
        row[new.len()]
    }

    #[test]
    fn a_moved_block_is_the_only_difference() {
        let old: Vec<u16> = (0..500).collect();
        let mut new = old.clone();
        new.rotate_left(100);
        assert_eq!(rebuilt(&old, &new), 400);
    }

    #[test]
    fn a_large_text_without_anchors_is_replaced() {
        let old: Vec<u16> = (0..200).map(|at| at % 2).collect();
        let new: Vec<u16> = (0..200).map(|at| at % 3).collect();
        rebuilt(&old, &new);
    }

    proptest! {
        #[test]
        fn small_texts_share_as_many_lines_as_possible(
            old in proptest::collection::vec(0_u16..4, 0..24),
            new in proptest::collection::vec(0_u16..4, 0..24),
        ) {
            prop_assert_eq!(rebuilt(&old, &new), longest_common(&old, &new));
        }

        #[test]
        fn hunks_cover_both_sides(
            old in proptest::collection::vec(0_u16..300, 0..200),
            new in proptest::collection::vec(0_u16..300, 0..200),
        ) {
            rebuilt(&old, &new);
        }
    }
}
