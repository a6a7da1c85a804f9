//! When a request to a model is sent again.

use std::time::Duration;

use crate::model::AttemptError;

/// When a failed request to a model is sent again. Calls are never repeated by it: they begin only after a complete
/// answer is in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Attempts of a round that may fail before the answer begins. Default 4.
    pub connect_attempts: u32,
    /// Attempts of a round that may fail after the answer began. Default 5; they are not counted together.
    pub stream_attempts: u32,
    /// Attempts that are repeated in a run. Default 20.
    pub run_retries: u32,
    /// The first wait, if the provider names none; it doubles with each attempt. Default 250 ms.
    pub first_wait: Duration,
    /// The longest wait, if the provider names none. Default 30 s.
    pub max_wait: Duration,
    /// The longest wait that a provider may ask for. Default 60 s. Longer ones are ignored.
    pub max_asked_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            connect_attempts: 4,
            stream_attempts: 5,
            run_retries: 20,
            first_wait: Duration::from_millis(250),
            max_wait: Duration::from_secs(30),
            max_asked_wait: Duration::from_secs(60),
        }
    }
}

/// The lost attempts of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LostAttempts {
    /// Those of this round that failed before the answer began.
    pub(crate) before: u32,
    /// Those of this round that failed after it.
    pub(crate) during: u32,
    /// All of the run.
    pub(crate) all: u32,
}

impl RetryPolicy {
    /// How long to wait before the next attempt; `None` if there is none. `lost` includes the attempt that failed with
    /// `error`, and `jitter` is from 0 to 1.
    pub(crate) fn wait(
        &self,
        lost: LostAttempts,
        error: &AttemptError,
        jitter: f64,
    ) -> Option<Duration> {
        let (count, limit) = if error.began {
            (lost.during, self.stream_attempts)
        } else {
            (lost.before, self.connect_attempts)
        };
        if !error.may_succeed_later() || count >= limit || lost.all > self.run_retries {
            return None;
        }
        if let Some(asked) = error.wait.filter(|wait| *wait <= self.max_asked_wait) {
            return Some(asked);
        }
        let doubled = self.first_wait.saturating_mul(1 << count.saturating_sub(1).min(16));
        // 20 % more or less, so that clients which failed together do not return together.
        Some(doubled.min(self.max_wait).mul_f64(0.8 + 0.4 * jitter.clamp(0.0, 1.0)))
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_wire::model::FailureKind;

    use super::*;
    use crate::model::AttemptErrorKind;

    fn lost(before: u32, during: u32, all: u32) -> LostAttempts {
        LostAttempts { before, during, all }
    }

    fn failed(kind: FailureKind) -> AttemptError {
        AttemptError::new(AttemptErrorKind::Provider(kind), "it failed")
    }

    #[test]
    fn waits_double_up_to_a_limit_and_end() {
        let policy = RetryPolicy::default();
        let error = failed(FailureKind::Overloaded);
        let wait =
            |count| policy.wait(lost(count, 0, count), &error, 0.5).map(|wait| wait.as_millis());
        assert_eq!([wait(1), wait(2), wait(3), wait(4)], [Some(250), Some(500), Some(1_000), None]);
        let patient = RetryPolicy { connect_attempts: 99, run_retries: 99, ..policy };
        assert_eq!(patient.wait(lost(60, 0, 60), &error, 0.5), Some(Duration::from_secs(30)));
    }

    #[test]
    fn the_wait_that_the_provider_asks_for_is_kept_up_to_a_limit() {
        let policy = RetryPolicy::default();
        let mut error = failed(FailureKind::RateLimited);
        error.wait = Some(Duration::from_secs(7));
        assert_eq!(policy.wait(lost(1, 0, 1), &error, 0.0), Some(Duration::from_secs(7)));
        error.wait = Some(Duration::from_secs(3_600));
        assert_eq!(policy.wait(lost(1, 0, 1), &error, 0.5), Some(Duration::from_millis(250)));
    }

    #[test]
    fn what_cannot_succeed_is_not_sent_again() {
        let policy = RetryPolicy::default();
        for kind in [FailureKind::Quota, FailureKind::Authentication, FailureKind::Invalid] {
            assert_eq!(policy.wait(lost(1, 0, 1), &failed(kind), 0.5), None, "{kind:?}");
        }
        let mut error = failed(FailureKind::Server);
        error.should_retry = Some(false);
        assert_eq!(policy.wait(lost(1, 0, 1), &error, 0.5), None);
    }

    #[test]
    fn cut_answers_are_counted_apart_and_a_run_has_a_limit() {
        let policy = RetryPolicy::default();
        let mut cut = AttemptError::new(AttemptErrorKind::Cut, "cut");
        cut.began = true;
        assert!(policy.wait(lost(3, 4, 7), &cut, 0.5).is_some());
        assert_eq!(policy.wait(lost(0, 5, 5), &cut, 0.5), None);
        assert_eq!(policy.wait(lost(0, 1, 21), &cut, 0.5), None);
    }
}
