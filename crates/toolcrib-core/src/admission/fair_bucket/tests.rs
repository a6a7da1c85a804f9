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
async fn an_identity_that_comes_third_takes_no_token_that_the_first_holds() {
    let mut calls = Calls::new("2/h");
    calls.call("ada").unwrap();
    assert!(calls.call("bob").is_err() && calls.call("cat").is_err());
    assert_eq!(calls.call("ada"), Ok(()));
    // The next tokens go round in the order in which they came.
    calls.pass(1_800);
    assert!(calls.call("cat").is_err() && calls.call("ada").is_err());
    assert_eq!(calls.call("bob"), Ok(()));
    calls.pass(1_800);
    assert!(calls.call("bob").is_err() && calls.call("ada").is_err());
    assert_eq!(calls.call("cat"), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn tokens_that_come_together_go_round_over_several_deals() {
    let mut calls = Calls::new("20/min");
    let _ = (calls.burst("ada", 100), calls.burst("eve", 100));
    let mut served = (0, 0);
    for _ in 0..20 {
        // Three tokens for two identities.
        calls.pass(9);
        served.0 += calls.burst("ada", 100);
        served.1 += calls.burst("eve", 100);
    }
    assert_eq!(served, (30, 30));
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

    /// The model: of the tokens that are taken in any time, each identity that calls all the while gets its equal
    /// part, whatever the order in which they call.
    #[test]
    fn every_identity_gets_its_equal_part_of_any_time_in_any_order(
        identities in 2..6_usize,
        limit in prop::sample::select(vec!["1/min", "3/min", "20/min"]),
        orders in prop::collection::vec((any::<usize>(), 1..20_u64), 50..100),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut calls = Calls::new(limit);
            let mut served = vec![vec![0; identities]];
            for (mut order, seconds) in orders {
                let mut counts = served.last().unwrap().clone();
                let mut left: Vec<_> = (0..identities).collect();
                while !left.is_empty() {
                    let who = left.remove(order % left.len());
                    order /= left.len() + 1;
                    counts[who] += calls.burst(&who.to_string(), 30);
                }
                served.push(counts);
                calls.pass(seconds);
            }
            // At first, those that come early find a full bucket.
            for (begin, before) in served.iter().enumerate().skip(1) {
                for after in &served[begin..] {
                    let tokens = after.iter().sum::<usize>() - before.iter().sum::<usize>();
                    let shares = after.iter().zip(before).map(|(after, before)| after - before);
                    let least = shares.min().unwrap();
                    prop_assert!(least + 1 >= tokens / identities, "{least} of {tokens}");
                }
            }
            Ok(())
        })?;
    }

    /// Whoever could take a token can still take it after all others have taken what they can.
    #[test]
    fn nobody_takes_what_another_holds(
        steps in prop::collection::vec((0..5_usize, 0..40_000_u64), 1..200),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut calls = Calls::new("3/min");
            for (who, millis) in steps {
                calls.now += Duration::from_millis(millis);
                // All are known, so that nobody joins between the two.
                let all: Vec<_> = (0..5).map(|who| who.to_string()).collect();
                let holds = |calls: &Calls| {
                    let share = calls.bucket.shares.get(&*all[who]);
                    share.is_some_and(|share| share.held > 0 && share.until > calls.now)
                };
                let _ = calls.bucket.take(&all[(who + 1) % 5], calls.now);
                let held = holds(&calls);
                for other in all.iter().filter(|other| **other != all[who]) {
                    if calls.bucket.shares.contains_key(&**other) {
                        calls.burst(other, 10);
                    }
                }
                let taken = calls.call(&all[who]);
                prop_assert!(!held || taken.is_ok());
            }
            Ok(())
        })?;
    }
}
