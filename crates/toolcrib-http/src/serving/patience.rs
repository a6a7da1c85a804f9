//! How long a connection waits for the head of a request: one timer for all its requests.
//!
//! A timer for each would be set and put away with each request. This one is left to run, and set again
//! when it has run off too early.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use tokio::time;

/// The timer of one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patience(Arc<Mutex<Option<Pin<Box<time::Sleep>>>>>);

/// Ends when its time has come.
#[derive(Debug)]
struct Until {
    deadline: time::Instant,
    timer: Patience,
}

impl Timer for Patience {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Until { deadline: deadline.into(), timer: self.clone() })
    }

    fn now(&self) -> Instant {
        time::Instant::now().into_std()
    }
}

impl Sleep for Until {}

impl Future for Until {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = self.deadline;
        let mut sleep = self.timer.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sleep = sleep.get_or_insert_with(|| Box::pin(time::sleep_until(deadline)));
        loop {
            match sleep.as_mut().poll(cx) {
                // Too early does no harm: it is looked at again then.
                Poll::Pending if sleep.deadline() <= deadline => return Poll::Pending,
                Poll::Ready(()) if sleep.deadline() >= deadline => return Poll::Ready(()),
                _ => sleep.as_mut().reset(deadline),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(30);

    fn elapsed(since: Instant, timer: &Patience) -> Duration {
        timer.now() - since
    }

    #[tokio::test(start_paused = true)]
    async fn each_wait_ends_at_its_own_time() {
        let timer = Patience::default();
        let begun = timer.now();
        // Given up before its end, as where a head has come.
        let _ = time::timeout(WAIT / 2, timer.sleep(WAIT)).await;
        assert_eq!(elapsed(begun, &timer), WAIT / 2);
        // The timer runs off in the middle of this one.
        timer.sleep(WAIT).await;
        assert_eq!(elapsed(begun, &timer), WAIT / 2 + WAIT);
        // And long before the beginning of that one.
        time::sleep(3 * WAIT).await;
        let begun = timer.now();
        timer.sleep(WAIT).await;
        assert_eq!(elapsed(begun, &timer), WAIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_shorter_wait_is_not_held_up_by_a_longer_one() {
        let timer = Patience::default();
        let _ = time::timeout(Duration::from_secs(1), timer.sleep(WAIT)).await;
        let begun = timer.now();
        timer.sleep(Duration::from_secs(2)).await;
        assert_eq!(elapsed(begun, &timer), Duration::from_secs(2));
        timer.sleep_until(begun).await;
        assert_eq!(elapsed(begun, &timer), Duration::from_secs(2));
    }
}
