//! How often one tool may be called: a token bucket per limit.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::time::Instant;
use toolcrib_tool::RateLimit;

/// Limits of one tool that are kept at once: that of the live definition, and those that turns
/// begun before a reload still hold.
const KEPT: usize = 4;

/// A period beyond which a limit is no limit. The limiter counts nanoseconds in 64 bits.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// So many of something in so much time: a bucket of tokens that fills again evenly.
///
/// ```
/// use toolcrib_core::TokenBucket;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let bucket = TokenBucket::new("2/h".parse()?);
/// assert!(bucket.take().is_ok() && bucket.take().is_ok());
/// assert!(bucket.take().unwrap_err().as_secs() > 1700, "half an hour until the next");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TokenBucket(Bucket);

impl TokenBucket {
    /// A full bucket of as many tokens as the limit allows, which fill again evenly over its time.
    pub fn new(limit: RateLimit) -> Self {
        Self(bucket(limit))
    }

    /// Takes a token, or says how long until there is one.
    pub fn take(&self) -> Result<(), Duration> {
        self.0.check().map_err(|refusal| refusal.wait_time_from(self.0.clock().now()))
    }
}

/// The buckets of one tool.
///
/// A bucket per limit, because turns begun before and after a reload call in any order, and a
/// single bucket made anew at every change would always be full.
#[derive(Debug, Default)]
pub(super) struct Rates {
    /// The most recently used is last.
    buckets: Mutex<Vec<RateBucket>>,
}

#[derive(Debug)]
struct RateBucket {
    limit: RateLimit,
    bucket: TokenBucket,
    used: Instant,
}

type Bucket = RateLimiter<NotKeyed, InMemoryState, Elapsed, NoOpMiddleware<Duration>>;

impl Rates {
    /// Takes a token, or says how long until there is one.
    pub(super) fn take(&self, limit: RateLimit) -> Result<(), Duration> {
        // Nothing panics under the lock that could leave the list half changed.
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let used = Instant::now();
        match buckets.iter().position(|known| known.limit == limit) {
            Some(last) if last + 1 == buckets.len() => {}
            Some(place) => buckets[place..].rotate_left(1),
            None => {
                if buckets.len() == KEPT {
                    buckets.remove(0);
                }
                buckets.push(RateBucket { limit, bucket: TokenBucket::new(limit), used });
            }
        }
        let Some(known) = buckets.last_mut() else { return Ok(()) };
        known.used = used;
        known.bucket.take()
    }

    /// Whether every bucket is full again, so that a new one would be no different.
    pub(super) fn are_full(&self) -> bool {
        let buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.iter().all(|known| known.used.elapsed() >= known.limit.per())
    }
}

/// A full bucket of `calls` tokens that fills again evenly over `per`.
fn bucket(limit: RateLimit) -> Bucket {
    let interval = (limit.per().min(LONGEST) / limit.calls().get()).max(Duration::from_nanos(1));
    let quota = Quota::with_period(interval)
        .unwrap_or(Quota::per_second(limit.calls()))
        .allow_burst(limit.calls());
    RateLimiter::new(quota, InMemoryState::default(), Elapsed(Instant::now()))
}

/// Time since the bucket was made, on the clock of the runtime, which tests can stop.
#[derive(Debug)]
struct Elapsed(Instant);

impl Clock for Elapsed {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_bucket_empties_and_fills_again_evenly() {
        let rates = Rates::default();
        let limit: RateLimit = "3/min".parse().unwrap();
        for _ in 0..3 {
            rates.take(limit).unwrap();
        }
        assert_eq!(rates.take(limit), Err(Duration::from_secs(20)));
        advance(Duration::from_secs(19)).await;
        assert_eq!(rates.take(limit), Err(Duration::from_secs(1)));
        advance(Duration::from_secs(1)).await;
        rates.take(limit).unwrap();
        assert!(rates.take(limit).is_err());
        advance(Duration::from_secs(600)).await;
        assert_eq!((0..10).filter(|_| rates.take(limit).is_ok()).count(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_hold_other_limits_do_not_fill_the_bucket() {
        let rates = Rates::default();
        let (old, new) = ("2/min".parse().unwrap(), "5/min".parse().unwrap());
        let granted = |limit| (0..20).filter(|_| rates.take(limit).is_ok()).count();
        assert_eq!((granted(old), granted(new), granted(old), granted(new)), (2, 5, 0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn the_widest_and_the_narrowest_limits_are_kept() {
        let rates = Rates::default();
        let century = RateLimit::new(NonZeroU32::MIN, Duration::MAX).unwrap();
        rates.take(century).unwrap();
        assert!(rates.take(century).unwrap_err() > Duration::from_secs(3_000_000_000));
        let many = RateLimit::new(NonZeroU32::MAX, Duration::from_nanos(1)).unwrap();
        assert!((0..1000).all(|_| rates.take(many).is_ok()));
        let wide = RateLimit::new(NonZeroU32::MAX, Duration::MAX).unwrap();
        assert!((0..1000).all(|_| rates.take(wide).is_ok()));
    }
}
