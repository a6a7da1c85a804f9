//! Retention: how long things are kept, and the thread that removes what is too old.

pub(crate) mod freeing;
pub(crate) mod keeper;
pub(crate) mod reserve;
pub(crate) mod sweep;
pub(crate) mod trouble;

use std::time::Duration;

pub use sweep::Swept;

/// The longest time between two sweeps. Runs may exceed their bytes for this long.
const LONGEST_INTERVAL: Duration = Duration::from_secs(30);

/// How long the things in a database are kept, and how much of them. What waits or runs is always kept.
///
/// A shorter age applies to everything at once, a longer age to what is stored from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// Runs that are over, since they last changed. Default: no limit.
    pub runs: Kept,
    /// Outputs that were too long for their answers. Default: no limit but that of [`Spills`](crate::Spills).
    pub outputs: Kept,
    /// The lifetime of an `Idempotency-Key`. Default: no limit but that of the table of answers.
    pub answers: Option<Duration>,
    /// Outcomes of calls that somebody else decided on, who decided, and waiting calls that have expired. Default: one
    /// day.
    pub decisions: Option<Duration>,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            runs: Kept::default(),
            outputs: Kept::default(),
            answers: None,
            decisions: Some(Duration::from_secs(24 * 60 * 60)),
        }
    }
}

/// How much of one kind is kept. Default: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Kept {
    /// For how long.
    pub age: Option<Duration>,
    /// How many bytes, of all identities together. The oldest of the identity that uses most are removed first:
    /// outputs when another one is stored, runs at the next sweep.
    pub max_bytes: Option<u64>,
}

impl Kept {
    /// Limits by age and by bytes.
    pub fn new(age: Option<Duration>, max_bytes: Option<u64>) -> Self {
        Self { age, max_bytes }
    }
}

impl Retention {
    /// How often to look: a quarter of the shortest age, between a second and [`LONGEST_INTERVAL`].
    pub(crate) fn interval(&self) -> Duration {
        let ages = [self.runs.age, self.outputs.age, self.answers, self.decisions];
        let shortest = ages.into_iter().flatten().min().unwrap_or(Duration::MAX);
        (shortest / 4).clamp(Duration::from_secs(1), LONGEST_INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_are_between_a_second_and_half_a_minute_apart() {
        let mut retention = Retention::default();
        assert_eq!(retention.interval(), LONGEST_INTERVAL);
        retention.decisions = None;
        assert_eq!(retention.interval(), LONGEST_INTERVAL, "bytes are limited without any age");
        retention.outputs.age = Some(Duration::from_secs(40));
        assert_eq!(retention.interval(), Duration::from_secs(10));
        retention.answers = Some(Duration::from_millis(1));
        assert_eq!(retention.interval(), Duration::from_secs(1));
    }
}
