//! How long to wait before a server is connected to again.

use std::time::Duration;

/// A connection that held this long was a good one: the next pause is short again.
const STEADY: Duration = Duration::from_secs(30);

/// Pauses that double from `first` to `longest`, each with up to half of it left to chance, so that
/// many clients of one server do not come back at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    pub(crate) const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, failures: 0 }
    }

    /// The pause after another failure; `held` is how long the connection was good before it.
    pub(crate) fn next(&mut self, held: Duration) -> Duration {
        if held >= STEADY {
            self.failures = 0;
        }
        let doubled =
            self.first.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        self.failures = self.failures.saturating_add(1);
        let whole = doubled.min(self.longest);
        whole / 2 + (whole / 2).mul_f64(chance())
    }
}

/// A number from 0 to 1.
fn chance() -> f64 {
    // Without random numbers all wait alike, which does no harm to one server.
    getrandom::u32().map_or(1.0, |number| f64::from(number) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_a_limit_and_are_short_again_after_a_good_connection() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        let expected = [100, 200, 400, 800, 1000, 1000];
        for whole in expected.map(Duration::from_millis) {
            let pause = backoff.next(Duration::ZERO);
            assert!(pause >= whole / 2 && pause <= whole, "{pause:?} of {whole:?}");
        }
        assert!(backoff.next(STEADY) <= Duration::from_millis(100));
    }

    #[test]
    fn a_long_row_of_failures_does_not_overflow() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        assert!(
            (0..100).map(|_| backoff.next(Duration::ZERO)).all(|p| p <= Duration::from_secs(1))
        );
    }
}
