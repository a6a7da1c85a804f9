//! How often one tool may be called: a token bucket per limit, which identities share fairly.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolcrib_tool::RateLimit;

use super::fair_bucket::{FairBucket, Refused};

/// How many buckets one tool has at once: for the current definition, and for those that turns from
/// before a reload still hold.
const KEPT: usize = 4;

/// A period beyond which a limit is no limit.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// A rate limiter: a bucket of tokens that refills evenly.
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
pub struct TokenBucket(Mutex<Tokens>);

impl TokenBucket {
    /// A full bucket with as many tokens as the limit allows, which refill evenly over its period.
    pub fn new(limit: RateLimit) -> Self {
        Self(Mutex::new(Tokens::new(limit, Instant::now())))
    }

    /// Takes a token, or returns the time until the next one.
    pub fn take(&self) -> Result<(), Duration> {
        // Nothing panics under the lock.
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.fill(Instant::now());
        if tokens.whole() > 0 {
            tokens.take();
            return Ok(());
        }
        Err(tokens.until(tokens.each))
    }
}

/// Tokens that fill again evenly, counted in the time that they take: exact, and without rounding.
#[derive(Debug)]
pub(super) struct Tokens {
    /// Nanoseconds that one token takes.
    pub(super) each: i128,
    /// Nanoseconds of a full bucket.
    pub(super) full: i128,
    /// Nanoseconds that are there.
    pub(super) here: i128,
    filled: Instant,
}

impl Tokens {
    /// A full bucket.
    pub(super) fn new(limit: RateLimit, now: Instant) -> Self {
        let calls = limit.calls().get();
        let each = nanos(limit.per().min(LONGEST) / calls).max(1);
        let full = each * i128::from(calls);
        Self { each, full, here: full, filled: now }
    }

    /// Adds what came since the last time.
    pub(super) fn fill(&mut self, now: Instant) {
        let passed = nanos(now.saturating_duration_since(self.filled));
        self.filled = now;
        self.here = (self.here + passed).min(self.full);
    }

    /// How many whole tokens are there.
    pub(super) fn whole(&self) -> i128 {
        self.here / self.each
    }

    pub(super) fn take(&mut self) {
        self.here -= self.each;
    }

    /// How long until so much is there.
    pub(super) fn until(&self, wanted: i128) -> Duration {
        nanoseconds((wanted - self.here).max(0))
    }
}

fn nanos(time: Duration) -> i128 {
    i128::try_from(time.as_nanos()).unwrap_or(i128::MAX)
}

/// A time of so many nanoseconds.
pub(super) fn nanoseconds(nanos: i128) -> Duration {
    u64::try_from(nanos).map_or(LONGEST, Duration::from_nanos)
}

/// The buckets of one tool.
///
/// One bucket per limit: turns from before and after a reload make calls in any order, and a single
/// bucket that is recreated at every change would always be full.
#[derive(Debug, Default)]
pub(super) struct Rates {
    /// The most recently used is last.
    buckets: Mutex<Vec<RateBucket>>,
}

#[derive(Debug)]
struct RateBucket {
    limit: RateLimit,
    bucket: FairBucket,
    used: Instant,
}

impl Rates {
    /// Takes a token for an identity, or says how long until there is one for it.
    pub(super) fn take(&self, limit: RateLimit, identity: &str) -> Result<(), Refused> {
        // Nothing panics under the lock that could leave the list half changed.
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        match buckets.iter().position(|known| known.limit == limit) {
            Some(last) if last + 1 == buckets.len() => {}
            Some(place) => buckets[place..].rotate_left(1),
            None => {
                if buckets.len() == KEPT {
                    buckets.remove(0);
                }
                buckets.push(RateBucket { limit, bucket: FairBucket::new(limit, now), used: now });
            }
        }
        let Some(known) = buckets.last_mut() else { return Ok(()) };
        known.used = now;
        known.bucket.take(identity, now)
    }

    /// Whether every bucket is full again, so that a new one would behave the same.
    pub(super) fn are_full(&self) -> bool {
        let buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.iter().all(|known| known.used.elapsed() >= known.limit.per())
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use tokio::time::advance;

    use super::*;

    fn take(rates: &Rates, limit: RateLimit) -> Result<(), Duration> {
        rates.take(limit, "ada").map_err(|refused| refused.wait)
    }

    #[tokio::test(start_paused = true)]
    async fn a_bucket_empties_and_fills_again_evenly() {
        let rates = Rates::default();
        let limit: RateLimit = "3/min".parse().unwrap();
        for _ in 0..3 {
            take(&rates, limit).unwrap();
        }
        assert_eq!(take(&rates, limit), Err(Duration::from_secs(20)));
        advance(Duration::from_secs(19)).await;
        assert_eq!(take(&rates, limit), Err(Duration::from_secs(1)));
        advance(Duration::from_secs(1)).await;
        take(&rates, limit).unwrap();
        assert!(take(&rates, limit).is_err());
        advance(Duration::from_secs(600)).await;
        assert_eq!((0..10).filter(|_| take(&rates, limit).is_ok()).count(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_hold_other_limits_do_not_fill_the_bucket() {
        let rates = Rates::default();
        let (old, new) = ("2/min".parse().unwrap(), "5/min".parse().unwrap());
        let granted = |limit| (0..20).filter(|_| take(&rates, limit).is_ok()).count();
        assert_eq!((granted(old), granted(new), granted(old), granted(new)), (2, 5, 0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn the_widest_and_the_narrowest_limits_are_kept() {
        let rates = Rates::default();
        let century = RateLimit::new(NonZeroU32::MIN, Duration::MAX).unwrap();
        take(&rates, century).unwrap();
        assert!(take(&rates, century).unwrap_err() > Duration::from_secs(3_000_000_000));
        let many = RateLimit::new(NonZeroU32::MAX, Duration::from_nanos(1)).unwrap();
        assert!((0..1000).all(|_| take(&rates, many).is_ok()));
        let wide = RateLimit::new(NonZeroU32::MAX, Duration::MAX).unwrap();
        assert!((0..1000).all(|_| take(&rates, wide).is_ok()));
    }
}
