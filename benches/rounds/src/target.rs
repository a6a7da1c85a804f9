//! What a contender is expected to reach, and whether it did.

use std::fmt;

use crate::Rounds;

/// An expectation of one contender. It is reported, and never fails a run: machines differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// At most so many nanoseconds per piece of work. Means something on a quiet machine of the
    /// kind the README names.
    Nanoseconds(f64),
    /// Faster than another contender of the same rounds.
    Below(&'static str),
    /// At most so many times what another contender takes.
    Times(f64, &'static str),
}

impl Target {
    /// Whether `name` reached it in these rounds.
    pub fn is_met(&self, rounds: &Rounds, name: &str) -> bool {
        match *self {
            Self::Nanoseconds(limit) => rounds.median(name) <= limit,
            Self::Below(other) => rounds.ratio(name, other) < 1.0,
            Self::Times(times, other) => rounds.ratio(name, other) <= times,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Nanoseconds(limit) if limit >= 1e3 => write!(f, "≤ {} µs", limit / 1e3),
            Self::Nanoseconds(limit) => write!(f, "≤ {limit} ns"),
            Self::Below(other) => write!(f, "< {other}"),
            Self::Times(times, other) => write!(f, "≤ {times} × {other}"),
        }
    }
}

/// The cell of a table: every target, and whether it is met.
pub fn verdicts(targets: &[Target], rounds: &Rounds, name: &str) -> String {
    let verdict = |target: &Target| {
        let met = if target.is_met(rounds, name) { "met" } else { "missed" };
        format!("{target}: {met}")
    };
    targets.iter().map(verdict).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Contender, interleaved};

    #[test]
    fn targets_are_held_against_the_rounds() {
        let ours = Contender::new("ours", |times| Duration::from_nanos(90 * times));
        let peer = Contender::new("peer", |times| Duration::from_nanos(80 * times));
        let rounds = interleaved(&mut [ours, peer], 3, 10);
        let targets = [
            Target::Nanoseconds(90.0),
            Target::Nanoseconds(1_500.0),
            Target::Below("peer"),
            Target::Times(1.2, "peer"),
        ];
        assert_eq!(
            verdicts(&targets, &rounds, "ours"),
            "≤ 90 ns: met; ≤ 1.5 µs: met; < peer: missed; ≤ 1.2 × peer: met"
        );
    }
}
