//! Numbers that are the same in every run.

/// A xorshift generator.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Of a seed; 0 is taken for 1.
    pub fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as usize % end
    }

    /// One of several.
    pub fn of<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        &things[self.below(things.len())]
    }

    /// A number below `end`, small ones far more often than large ones, as words are used.
    pub fn seldom(&mut self, end: usize) -> usize {
        let bound = self.below(end) + 1;
        let bound = self.below(bound) + 1;
        self.below(bound)
    }
}
