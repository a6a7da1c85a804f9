//! What sessions remember, and how much.

use super::{AnswerCache, CacheLimits, Callee, Dedupe, Policies, kept, numbered};
use crate::cache::session_history::{HistoryLimits, SessionHistory};

struct Fixture {
    history: SessionHistory,
    versions: AnswerCache,
    callee: Callee,
}

impl Fixture {
    fn new(limits: HistoryLimits) -> Self {
        Self {
            history: SessionHistory::new(limits),
            versions: AnswerCache::new(CacheLimits::default()),
            callee: Policies::deduped(Dedupe::Session).reading("world").callee(),
        }
    }

    fn insert(&self, session: &str, number: usize, output: &str) {
        let key = numbered(&self.callee, number);
        let expires = self.versions.expiry(&key).expect("the cache is on");
        let version = self.versions.version(&key);
        self.history.insert(session, &key, version, kept(output), expires);
    }

    fn knows(&self, session: &str, number: usize) -> bool {
        let key = numbered(&self.callee, number);
        let version = self.versions.version(&key);
        self.history.get(session, &key, version, self.versions.now()).is_some()
    }
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let HistoryLimits { sessions, entries, bytes } = HistoryLimits::default();
    assert_eq!((sessions, entries, bytes), (10_000, 1_000, 64 << 20));
}

#[test]
fn a_session_forgets_its_least_recently_used_answer() {
    let fixture = Fixture::new(HistoryLimits { entries: 2, ..HistoryLimits::default() });
    fixture.insert("a", 1, "x");
    fixture.insert("a", 2, "x");
    assert!(fixture.knows("a", 1));
    fixture.insert("a", 3, "x");
    fixture.insert("b", 1, "x");
    assert!(fixture.knows("a", 1) && !fixture.knows("a", 2) && fixture.knows("a", 3));
}

#[test]
fn the_least_recently_used_session_is_forgotten_whole() {
    let fixture = Fixture::new(HistoryLimits { sessions: 2, ..HistoryLimits::default() });
    fixture.insert("a", 1, "x");
    fixture.insert("b", 1, "x");
    assert!(fixture.knows("a", 1));
    fixture.insert("c", 1, "x");
    assert!(fixture.knows("a", 1) && !fixture.knows("b", 1) && fixture.knows("c", 1));
}

#[test]
fn bytes_are_bounded_over_all_sessions() {
    let fixture = Fixture::new(HistoryLimits { bytes: 3_500, ..HistoryLimits::default() });
    let kilobyte = "x".repeat(1_000);
    for number in 0..3 {
        fixture.insert(["a", "a", "b"][number], number, &kilobyte);
    }
    fixture.insert("c", 3, &kilobyte);
    assert!(!fixture.knows("a", 0), "the oldest session gives first");
    assert!(fixture.knows("a", 1) && fixture.knows("b", 2) && fixture.knows("c", 3));
    fixture.insert("c", 4, &"x".repeat(4_000));
    assert!(!fixture.knows("c", 4) && fixture.knows("c", 3), "what cannot fit moves nothing");
    // Replacing and forgetting give the room back.
    for _ in 0..10 {
        fixture.insert("c", 3, &kilobyte);
    }
    assert!(fixture.knows("a", 1) && fixture.knows("b", 2));
    fixture.history.forget("b");
    fixture.insert("d", 5, &kilobyte);
    assert!(fixture.knows("a", 1) && fixture.knows("c", 3) && fixture.knows("d", 5));
    fixture.history.clear();
    for number in 0..3 {
        fixture.insert("e", number, &kilobyte);
    }
    assert!((0..3).all(|number| fixture.knows("e", number)));
}

#[test]
fn a_write_ends_what_was_read_before_it() {
    let fixture = Fixture::new(HistoryLimits::default());
    fixture.insert("a", 1, "x");
    fixture.versions.invalidate_resource("another");
    assert!(fixture.knows("a", 1));
    fixture.versions.invalidate_resource("world");
    assert!(!fixture.knows("a", 1));
    fixture.insert("a", 1, "y");
    assert!(fixture.knows("a", 1));
}

#[test]
fn a_tool_does_not_make_its_own_repetition_another_call() {
    let versions = AnswerCache::new(CacheLimits::default());
    let mut policies = Policies::deduped(Dedupe::Session).reading("tickets");
    policies.resources = policies.resources.writes("tickets");
    let key = numbered(&policies.callee(), 1);
    let before = versions.version(&key);
    versions.invalidate_resource("tickets");
    assert_eq!(versions.version(&key), before);
}
