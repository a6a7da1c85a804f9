//! The cache: bounds, expiry, and writers.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::json;
use toolcrib_tool::{CachePolicy, Resources};

use super::super::size;
use super::{AnswerCache, CacheLimits, Policies, kept, key, numbered, text};

/// A clock that goes when told to.
#[derive(Clone)]
struct Hands(Arc<Mutex<Instant>>);

impl Hands {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    fn advance(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }

    fn cache(&self, limits: CacheLimits) -> AnswerCache {
        let hands = Arc::clone(&self.0);
        AnswerCache::with_clock(limits, move || *hands.lock().unwrap())
    }
}

fn insert(cache: &AnswerCache, key: &super::CacheKey, output: &str) -> bool {
    cache.insert(key, cache.version(key), &kept(output))
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let limits = CacheLimits::default();
    assert_eq!((limits.max_entries, limits.max_bytes), (10_000, 64 << 20));
    assert_eq!(limits.ttl, Duration::from_secs(300));
}

#[test]
fn an_answer_is_kept_for_its_time_and_no_longer() {
    let hands = Hands::new();
    let cache = hands.cache(CacheLimits::default());
    let ordinary = Policies::cached().key("{}");
    let brief = CachePolicy::new().with_ttl(Duration::from_secs(5));
    let brief = Policies { cache: Some(brief), ..Policies::default() }.key("{}");
    let never = CachePolicy::new().with_ttl(Duration::ZERO);
    let never = Policies { cache: Some(never), ..Policies::default() }.key("{}");
    let for_ever = CachePolicy::new().with_ttl(Duration::MAX);
    let for_ever = Policies { cache: Some(for_ever), ..Policies::default() }.key("{}");
    assert!(insert(&cache, &ordinary, "a") && insert(&cache, &brief, "b"));
    assert!(!insert(&cache, &never, "c") && insert(&cache, &for_ever, "d"));
    assert!(!insert(&cache, &Policies::default().key("{}"), "a tool without a policy"));

    hands.advance(Duration::from_millis(4_999));
    assert!(cache.get(&ordinary).is_some() && cache.get(&brief).is_some());
    assert!(cache.get(&never).is_none());
    hands.advance(Duration::from_millis(1));
    assert!(cache.get(&ordinary).is_some() && cache.get(&brief).is_none());
    hands.advance(Duration::from_secs(295));
    assert!(cache.get(&ordinary).is_none());
    hands.advance(Duration::from_secs(1_000_000));
    assert!(cache.get(&for_ever).is_some());
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses, stats.entries), (4, 3, 1));
}

#[test]
fn the_least_recently_used_goes_first() {
    let cache = Hands::new().cache(CacheLimits { max_entries: 3, ..CacheLimits::default() });
    let callee = Policies::cached().callee();
    let keys: Vec<_> = (0..5).map(|number| numbered(&callee, number)).collect();
    for key in &keys[..3] {
        assert!(insert(&cache, key, "x"));
    }
    assert!(cache.get(&keys[0]).is_some());
    for key in &keys[3..] {
        assert!(insert(&cache, key, "x"));
    }
    let left: Vec<_> = keys.iter().map(|key| cache.get(key).is_some()).collect();
    assert_eq!(left, [true, false, false, true, true]);
}

#[test]
fn bytes_are_bounded_and_counted_exactly() {
    let cache = Hands::new().cache(CacheLimits { max_bytes: 10_000, ..CacheLimits::default() });
    let callee = Policies::cached().callee();
    assert!(!insert(&cache, &numbered(&callee, 0), &"x".repeat(10_000)));
    for number in 0..100 {
        assert!(insert(&cache, &numbered(&callee, number), &"x".repeat(50 * number)));
        assert!(cache.stats().bytes <= 10_000);
    }
    // The same key again replaces: nothing is counted twice.
    let key = numbered(&callee, 99);
    cache.clear();
    for output in ["short", "somewhat longer", "short"] {
        assert!(insert(&cache, &key, output));
        assert_eq!(cache.stats().bytes, key.size() + size::of(&text(output)));
    }
    cache.clear();
    assert_eq!((cache.stats().entries, cache.stats().bytes), (0, 0));
    assert!(cache.get(&key).is_none());
}

#[test]
fn a_write_drops_what_was_read_from_it_and_nothing_else() {
    let cache = Arc::new(Hands::new().cache(CacheLimits::default()));
    let tickets = Policies::cached().reading("tickets").key("{}");
    let both = Policies::cached().reading("users").reading("tickets").key("{}");
    let users = Policies::cached().reading("users").key("{}");
    let nothing = Policies::cached().key("{}");
    for key in [&tickets, &both, &users, &nothing] {
        assert!(insert(&cache, key, "x"));
    }
    drop(cache.writing(&Resources::new().writes("tickets").writes("unheard of")));
    assert!(cache.get(&tickets).is_none() && cache.get(&both).is_none());
    assert!(cache.get(&users).is_some() && cache.get(&nothing).is_some());
    assert_eq!(cache.stats().entries, 2);
    assert!(insert(&cache, &tickets, "again"), "later reads are kept");
}

#[test]
fn a_read_that_a_write_overtook_is_not_kept() {
    let cache = Arc::new(Hands::new().cache(CacheLimits::default()));
    let key = Policies::cached().reading("tickets").key("{}");
    let started = cache.version(&key);
    let writing = cache.writing(&Resources::new().writes("tickets")).unwrap();
    let outliving = writing.clone();
    drop(writing);
    assert!(!cache.insert(&key, started, &kept("old")));
    // Work that outlives its call writes again when it ends.
    let started = cache.version(&key);
    drop(outliving);
    assert!(!cache.insert(&key, started, &kept("half new")));
    let started = cache.version(&key);
    cache.clear();
    assert!(!cache.insert(&key, started, &kept("from before the clearing")));
    assert!(insert(&cache, &key, "new"));
}

#[test]
fn writes_are_remembered_in_bounded_space() {
    let cache = Hands::new().cache(CacheLimits::default());
    let key = Policies::cached().reading("tickets").key("{}");
    let started = cache.version(&key);
    cache.invalidate_resource("tickets");
    for number in 0..100_000 {
        cache.invalidate_resource(&format!("resource {number}"));
    }
    let known = cache.known_resources();
    assert!(known < 64, "{known} names are known");
    assert!(!cache.insert(&key, started, &kept("old")), "the forgotten write still counts");
}

#[derive(Debug, Clone)]
enum CacheStep {
    Start(usize),
    Finish(usize),
    Get(usize),
    Write(usize),
    Wait(u64),
    Clear,
}

fn steps() -> impl Strategy<Value = Vec<CacheStep>> {
    prop::collection::vec(
        prop_oneof![
            3 => (0..6_usize).prop_map(CacheStep::Start),
            3 => (0..6_usize).prop_map(CacheStep::Finish),
            4 => (0..6_usize).prop_map(CacheStep::Get),
            2 => (0..3_usize).prop_map(CacheStep::Write),
            1 => (0..200_u64).prop_map(CacheStep::Wait),
            1 => Just(CacheStep::Clear),
        ],
        0..120,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Readers see the sum of what they read when they start, and end whenever they like.
    #[test]
    fn no_schedule_of_readers_and_writers_yields_an_old_answer(steps in steps()) {
        let hands = Hands::new();
        let cache =
            hands.cache(CacheLimits { max_entries: 4, max_bytes: 800, ..CacheLimits::default() });
        // Reader 0 and 3 read resource 0, 1 and 4 read resources 0 and 1, 2 and 5 read 2.
        let reads = |reader: usize| [&[0][..], &[0, 1], &[2]][reader % 3];
        let keys: Vec<_> = (0..6)
            .map(|reader| {
                let policies = reads(reader)
                    .iter()
                    .fold(Policies::cached(), |policies, name| policies.reading(&name.to_string()));
                key(&policies.callee(), &json!({ "n": reader }).to_string())
            })
            .collect();
        let mut world = [0_u32; 3];
        let mut started = vec![None; 6];
        let mut kept_at = [None; 6];
        let mut time = 0;
        for step in steps {
            let state =
                |reader: usize| format!("{:?}", reads(reader).iter().map(|at| world[*at]).collect::<Vec<_>>());
            match step {
                CacheStep::Start(reader) => {
                    started[reader] = Some((cache.version(&keys[reader]), state(reader)));
                }
                CacheStep::Finish(reader) => {
                    if let Some((version, seen)) = started[reader].take() {
                        let is_current = seen == state(reader);
                        let kept = cache.insert(&keys[reader], version, &kept(&seen));
                        prop_assert!(!kept || is_current);
                        if kept {
                            kept_at[reader] = Some(time);
                        }
                    }
                }
                CacheStep::Get(reader) => {
                    if let Some(found) = cache.get(&keys[reader]) {
                        prop_assert_eq!(found.output.text(), state(reader));
                        prop_assert!(kept_at[reader].is_some_and(|at| time < at + 300));
                    }
                }
                CacheStep::Write(at) => {
                    world[at] += 1;
                    cache.invalidate_resource(&at.to_string());
                }
                CacheStep::Wait(seconds) => {
                    time += seconds;
                    hands.advance(Duration::from_secs(seconds));
                }
                CacheStep::Clear => {
                    cache.clear();
                    prop_assert_eq!(cache.stats().entries, 0);
                }
            }
            let stats = cache.stats();
            prop_assert!(stats.entries <= 4 && stats.bytes <= 800);
            prop_assert_eq!(stats.entries == 0, stats.bytes == 0);
        }
    }
}
