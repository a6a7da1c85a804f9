//! Deadlines of callers.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// A moment by which calls must be answered, made from an [`Instant`](std::time::Instant), a
/// [`SystemTime`] or a [`Duration`] from now.
///
/// ```
/// use std::time::{Duration, Instant, SystemTime};
/// use toolcrib_core::{Deadline, TurnOptions};
///
/// let in_two_seconds = TurnOptions::default().deadline(Duration::from_secs(2));
/// let same = TurnOptions::default().deadline(SystemTime::now() + Duration::from_secs(2));
/// let passed: Deadline = Instant::now().into();
/// # let _ = (in_two_seconds, same, passed);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline(
    /// `None` if it is beyond the range of the clock.
    Option<Instant>,
);

impl Deadline {
    pub(crate) fn at(self) -> Option<Instant> {
        self.0
    }
}

impl From<Duration> for Deadline {
    fn from(from_now: Duration) -> Self {
        Self(Instant::now().checked_add(from_now))
    }
}

impl From<std::time::Instant> for Deadline {
    fn from(at: std::time::Instant) -> Self {
        Self(Some(Instant::from_std(at)))
    }
}

impl From<SystemTime> for Deadline {
    fn from(at: SystemTime) -> Self {
        // A time in the past counts as now.
        at.duration_since(SystemTime::now()).unwrap_or_default().into()
    }
}
