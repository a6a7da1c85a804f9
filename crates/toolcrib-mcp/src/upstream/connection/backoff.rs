//! How long to wait before a server is connected to again.

use std::time::Duration;

/// A connection that lasted this long resets the backoff.
const STEADY: Duration = Duration::from_secs(30);

/// Delays that double from `first` to `longest`, each reduced by up to half at random, so that many
/// clients of one server do not reconnect at the same time.
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

    /// The delay after another failure; `held` is how long the connection lasted before it.
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

/// A random number from 0 to 1.
fn chance() -> f64 {
    // Without random numbers all delays are equal, which does no harm.
    getrandom::u32().map_or(1.0, |number| f64::from(number) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_to_a_limit_and_reset_after_a_good_connection() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        let expected = [100, 200, 400, 800, 1000, 1000];
        for whole in expected.map(Duration::from_millis) {
            let pause = backoff.next(Duration::ZERO);
            assert!(pause >= whole / 2 && pause <= whole, "{pause:?} of {whole:?}");
        }
        assert!(backoff.next(STEADY) <= Duration::from_millis(100));
    }

    #[test]
    fn many_failures_do_not_overflow_the_backoff() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        assert!(
            (0..100).map(|_| backoff.next(Duration::ZERO)).all(|p| p <= Duration::from_secs(1))
        );
    }
}
