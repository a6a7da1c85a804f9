//! A bit set of positions in a snapshot.

/// A selection of a snapshot's tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selection(Vec<u64>);

impl Selection {
    /// Selects the wanted positions.
    pub(crate) fn of(count: usize, mut wanted: impl FnMut(usize) -> bool) -> Self {
        let mut words = vec![0_u64; count.div_ceil(64)];
        for position in 0..count {
            words[position / 64] |= u64::from(wanted(position)) << (position % 64);
        }
        Self(words)
    }

    #[inline]
    pub(crate) fn contains(&self, position: usize) -> bool {
        self.0.get(position / 64).is_some_and(|word| word >> (position % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::Selection;

    #[test]
    fn what_was_wanted_is_contained_and_nothing_else() {
        for count in [0, 1, 63, 64, 65, 200] {
            let thirds = Selection::of(count, |position| position % 3 == 0);
            for position in 0..count + 130 {
                assert_eq!(thirds.contains(position), position < count && position % 3 == 0);
            }
        }
    }
}
