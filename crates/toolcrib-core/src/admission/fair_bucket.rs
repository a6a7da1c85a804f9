//! A token bucket whose tokens identities share fairly.

use std::time::Duration;

use hashbrown::HashMap;
use tokio::time::Instant;
use toolcrib_tool::RateLimit;

use super::rate::{Tokens, nanoseconds};

/// Identities of one bucket that are known at once. Beyond it, the one that was seen longest ago is
/// forgotten.
const IDENTITIES_MAX: usize = 1_000;

/// One bucket for all identities, of which each active one has an equal share.
///
/// A token in the share of one identity cannot be taken by another, unless the bucket has more tokens than
/// the shares of all others hold. So a burst of one identity leaves the others their shares, while nothing
/// of the rate is lost: where the others take nothing, their shares fill, and each further token may be
/// taken by anyone. An identity that is alone has the whole bucket.
#[derive(Debug)]
pub(super) struct FairBucket {
    tokens: Tokens,
    per: Duration,
    shares: HashMap<Box<str>, Share>,
}

#[derive(Debug)]
struct Share {
    /// What others cannot take, counted as the tokens are; below 0 what it has taken of the others'.
    here: i128,
    /// Active until then: for a period after its last call, or after it was told to come back.
    until: Instant,
}

/// A call for which there is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused {
    /// How long until there is one.
    pub(super) wait: Duration,
    /// Whether other identities call the tool, too.
    pub(super) is_shared: bool,
}

impl FairBucket {
    /// A full bucket that nobody has a share of.
    pub(super) fn new(limit: RateLimit, now: Instant) -> Self {
        Self { tokens: Tokens::new(limit, now), per: limit.per(), shares: HashMap::new() }
    }

    /// Takes a token for an identity.
    pub(super) fn take(&mut self, identity: &str, now: Instant) -> Result<(), Refused> {
        self.fill(now);
        self.join(identity, now);
        let each = self.tokens.each;
        let (mut reserved, mut promised, mut lapse) = (0, 0, now);
        for (_, other) in self.shares.iter().filter(|(name, _)| ***name != *identity) {
            reserved += other.here.max(0);
            promised += if other.here >= each { each } else { 0 };
            lapse = lapse.max(other.until);
        }
        let active = self.count();
        let Some(share) = self.shares.get_mut(identity) else { return Ok(()) };
        let has_own = share.here >= each;
        let has_spare = self.tokens.here >= each + reserved;
        let wait = if self.tokens.has_one() && (has_own || has_spare) {
            self.tokens.take();
            // Spare tokens are nobody's share.
            share.here = if has_own { share.here - each } else { share.here.min(0) };
            None
        } else if has_own {
            // The next tokens are for those that have a right to one.
            Some(self.tokens.until(each + promised))
        } else {
            // Its share grows by its part of the time, or faster when others become inactive.
            let own = nanoseconds((each - share.here).saturating_mul(active));
            Some(self.tokens.until(each).max(own.min(lapse - now)))
        };
        let back = wait.unwrap_or_default().saturating_add(self.per);
        share.until = now.checked_add(back).unwrap_or(share.until);
        wait.map_or(Ok(()), |wait| Err(Refused { wait, is_shared: active > 1 }))
    }

    /// Adds the tokens that came meanwhile, to each active identity an equal part.
    fn fill(&mut self, now: Instant) {
        let passed = self.tokens.fill(now);
        if self.shares.len() > 1 {
            self.shares.retain(|_, share| share.until > now);
        }
        let (part, full) = (passed / self.count().max(1), self.full_share());
        for share in self.shares.values_mut() {
            share.here = (share.here + part).min(full);
        }
    }

    /// Gives an identity that is new a share, of tokens that nobody else has a right to. It has a right to
    /// the next token even if there is none: those without a right to one owe it that.
    fn join(&mut self, identity: &str, now: Instant) {
        if self.shares.contains_key(identity) {
            return;
        }
        if self.shares.len() >= IDENTITIES_MAX {
            let oldest = self.shares.iter().min_by_key(|(_, share)| share.until);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.shares.remove(&oldest);
            }
        }
        self.shares.insert(identity.into(), Share { here: 0, until: now });
        let (each, full) = (self.tokens.each, self.full_share());
        let (mut reserved, mut debtors) = (0, 0);
        for (name, share) in &mut self.shares {
            share.here = share.here.min(full);
            reserved += share.here.max(0);
            debtors += i128::from(share.here < each && **name != *identity);
        }
        let free = (self.tokens.here - reserved).clamp(0, full);
        let owed = if debtors == 0 { 0 } else { (each - free).max(0) };
        for (name, share) in &mut self.shares {
            if **name == *identity {
                share.here = free + owed;
            } else if share.here < each {
                share.here = (share.here - owed / debtors).max(-self.tokens.full);
            }
        }
    }

    /// The most that the share of one identity holds: at least one token.
    fn full_share(&self) -> i128 {
        (self.tokens.full / self.count().max(1)).max(self.tokens.each)
    }

    fn count(&self) -> i128 {
        i128::try_from(self.shares.len()).unwrap_or(i128::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Calls {
        bucket: FairBucket,
        begun: Instant,
        now: Instant,
    }

    impl Calls {
        fn new(limit: &str) -> Self {
            let now = Instant::now();
            let bucket = FairBucket::new(limit.parse().unwrap(), now);
            Self { bucket, begun: now, now }
        }

        fn pass(&mut self, seconds: u64) {
            self.now += Duration::from_secs(seconds);
        }

        fn call(&mut self, identity: &str) -> Result<(), u64> {
            let taken = self.bucket.take(identity, self.now);
            taken.map_err(|refused| refused.wait.as_secs())
        }

        /// How many of so many calls at once are let in.
        fn burst(&mut self, identity: &str, calls: usize) -> usize {
            (0..calls).filter(|_| self.call(identity).is_ok()).count()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_identity_that_is_alone_has_the_whole_bucket() {
        let mut calls = Calls::new("20/min");
        assert_eq!(calls.burst("ada", 30), 20);
        assert_eq!(calls.call("ada"), Err(3));
        calls.pass(3);
        assert_eq!(calls.burst("ada", 30), 1);
        calls.pass(600);
        assert_eq!(calls.burst("ada", 30), 20);
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_leaves_the_other_active_identities_their_shares() {
        let mut calls = Calls::new("20/min");
        calls.call("eve").unwrap();
        calls.pass(30);
        assert_eq!(calls.burst("ada", 100), 10);
        assert_eq!(calls.burst("eve", 100), 10);
        assert_eq!((calls.burst("ada", 100), calls.burst("eve", 100)), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_token_goes_to_the_identity_that_comes_to_an_empty_bucket() {
        let mut calls = Calls::new("20/min");
        assert_eq!(calls.burst("ada", 25), 20);
        assert_eq!(calls.call("eve"), Err(3));
        calls.pass(3);
        assert_eq!(calls.burst("ada", 100), 0);
        assert_eq!(calls.call("eve"), Ok(()));
        let mut served = (0, 0);
        for _ in 0..60 {
            calls.pass(1);
            served.0 += calls.burst("ada", 100);
            served.1 += calls.burst("eve", 1);
        }
        assert!((19..=20).contains(&(served.0 + served.1)), "{served:?}");
        assert!((9..=11).contains(&served.1), "{served:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_of_the_rate_is_lost_where_another_identity_takes_nothing() {
        let mut calls = Calls::new("20/min");
        calls.call("eve").unwrap();
        let first = calls.burst("ada", 100);
        let mut served = 0;
        for _ in 0..59 {
            calls.pass(1);
            served += calls.burst("ada", 100);
        }
        assert!((9..=10).contains(&first), "{first}");
        assert!(served >= 19, "{served} of 20 in a minute");
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_below_the_number_of_identities_goes_round() {
        let mut calls = Calls::new("1/h");
        let names = ["ada", "bob", "cat", "eve"];
        let mut served = [0; 4];
        // Each calls again when it was told to.
        let mut next = [0; 4];
        for minute in 0..(60 * 41) {
            for (place, name) in names.iter().enumerate() {
                if next[place] > minute * 60 {
                    continue;
                }
                match calls.call(name) {
                    Ok(()) => served[place] += 1,
                    Err(wait) => next[place] = minute * 60 + wait,
                }
            }
            calls.pass(60);
        }
        assert!((40..=41).contains(&served.iter().sum::<u64>()), "{served:?}");
        assert!(served.iter().all(|calls| (8..=14).contains(calls)), "{served:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_comes_back_when_it_was_told_to_is_let_in() {
        let mut calls = Calls::new("6/min");
        assert_eq!(calls.burst("ada", 10), 6);
        for _ in 0..10 {
            let wait = calls.call("eve").expect_err("ada took what was there");
            calls.pass(wait);
            calls.burst("ada", 50);
            assert_eq!(calls.call("eve"), Ok(()));
            while calls.call("eve").is_ok() {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_identities_are_forgotten_again() {
        let mut calls = Calls::new("100/s");
        for number in 0..5_000 {
            let _ = calls.call(&number.to_string());
        }
        assert_eq!(calls.bucket.shares.len(), IDENTITIES_MAX);
        calls.pass(60);
        calls.call("ada").unwrap();
        assert_eq!(calls.bucket.shares.len(), 1);
    }

    proptest! {
        #[test]
        fn all_together_never_get_more_than_the_limit(
            steps in prop::collection::vec((0..5_usize, 0..4_000_u64), 1..400),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time().start_paused(true).build().unwrap();
            runtime.block_on(async {
                let mut calls = Calls::new("30/min");
                let mut served = 0;
                for (who, millis) in steps {
                    calls.now += Duration::from_millis(millis);
                    served += u128::from(calls.call(&who.to_string()).is_ok());
                    let passed = (calls.now - calls.begun).as_millis();
                    prop_assert!(served <= 30 + passed / 2_000, "{served} in {passed} ms");
                }
                Ok(())
            })?;
        }
    }
}
