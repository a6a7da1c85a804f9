//! The order in which tools are visited: shuffled, and the same on every run.

/// Visits every number below a count once, in a shuffled order, and begins again.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    numbers: Vec<usize>,
    at: usize,
}

impl Order {
    /// An order of `count` numbers, which must not be 0.
    pub(crate) fn new(count: usize) -> Self {
        let mut numbers: Vec<usize> = (0..count).collect();
        // Fisher-Yates over SplitMix64 with a fixed seed.
        let mut state = 0x0123_4567_89AB_CDEF_u64;
        for last in (1..count).rev() {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            mixed ^= mixed >> 31;
            #[expect(clippy::cast_possible_truncation, reason = "any bits will do")]
            numbers.swap(last, mixed as usize % (last + 1));
        }
        Self { numbers, at: 0 }
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> usize {
        let number = self.numbers[self.at];
        self.at = (self.at + 1) % self.numbers.len();
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once_in_each_cycle_and_not_in_sequence() {
        let mut order = Order::new(1000);
        let first: Vec<_> = (0..1000).map(|_| order.next()).collect();
        let second: Vec<_> = (0..1000).map(|_| order.next()).collect();
        assert_eq!(first, second);
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1000).collect::<Vec<_>>());
        let neighbours = first.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count();
        assert!(neighbours < 10, "{neighbours} of 999 steps are to the next number");
    }
}
