//! Detecting async tools that block their thread, which only `blocking` tools may do.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Longer polls noticeably delay other calls and time limits.
const LONG: Duration = Duration::from_millis(100);

/// Counts the polls that took too long.
///
/// An async tool that computes without awaiting cannot be interrupted: the other calls of its batch
/// and all time limits are delayed until it yields. This can only be reported afterwards, with the
/// name of the tool, which should be declared `blocking`.
#[derive(Debug, Default)]
pub(crate) struct PollWatch {
    long: AtomicU64,
}

impl PollWatch {
    /// Runs the work of a tool and logs long polls. Costs two clock readings per poll, so it is
    /// only used for calls in batches.
    pub(crate) async fn watch<T>(&self, tool: &str, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|cx| {
            let from = Instant::now();
            let polled = work.as_mut().poll(cx);
            let duration = from.elapsed();
            if duration >= LONG {
                self.tell(tool, duration);
            }
            polled
        })
        .await
    }

    fn tell(&self, tool: &str, duration: Duration) {
        self.long.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(
            tool,
            ?duration,
            "the tool held its thread; other calls and time limits stood still: declare it blocking"
        );
    }

    /// How many polls were too long.
    pub(crate) fn long_polls(&self) -> u64 {
        self.long.load(Ordering::Relaxed)
    }
}
