//! A hit is quick enough even where nothing is optimised.

use std::time::{Duration, Instant};

use super::{AnswerCache, CacheLimits, Policies, kept, numbered};

#[test]
fn a_hit_in_a_full_cache_takes_microseconds_at_most() {
    let cache = AnswerCache::new(CacheLimits::default());
    let callee = Policies::cached().reading("world").callee();
    for number in 0..10_000 {
        let key = numbered(&callee, number);
        assert!(cache.insert(&key, cache.version(&key), &kept("x")));
    }
    // A reload later, so that definitions are compared by value, too.
    let reloaded = Policies::cached().reading("world").callee();
    for callee in [callee, reloaded] {
        let keys: Vec<_> = (0..10_000).map(|number| numbered(&callee, number)).collect();
        // The best of some rounds: the others measure the neighbours.
        let best = (0..5).map(|_| {
            let start = Instant::now();
            assert!(keys.iter().all(|key| cache.get(key).is_some()));
            start.elapsed() / 10_000
        });
        assert!(best.min() < Some(Duration::from_micros(20)));
    }
}
