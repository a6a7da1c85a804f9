//! One bucket for several identities: bursts, identities that join and leave, and the limit over all of them.

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
async fn an_identity_that_joins_gets_an_equal_part_of_what_the_others_have_left() {
    let mut calls = Calls::new("20/min");
    calls.call("ada").unwrap();
    assert_eq!(calls.burst("eve", 100), 10);
    // Nine tokens are left, all in the share of ada.
    assert_eq!(calls.burst("bob", 100), 5);
    assert_eq!(calls.burst("cat", 100), 2);
    assert_eq!(calls.burst("eve", 100), 0);
    assert_eq!(calls.burst("ada", 100), 2);
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
    // The bucket had 20, 19 came, and eve has taken one and has a share of 10.
    assert_eq!(first + served, 28);
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
