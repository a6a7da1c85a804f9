//! Texts that are known again: whose, under what, and how long.

use std::sync::Arc;

use serde_json::json;
use toolcrib_tool::{Arguments, ContextValues};

use super::super::kept::Kept;
use super::super::spelling::Spelt;
use super::{AnswerCache, CacheLimits, Callee, Key, Policies, Question, insert, text};

/// What a call with this text comes to, under this context.
pub(super) fn spelt_under(callee: &Callee, said: &str, context: &str) -> Arc<Spelt> {
    let arguments = Arguments::from_validated(said.to_owned());
    let root = arguments.tape().unwrap().root();
    let key = Key::of(callee, root, &ContextValues::new(), context);
    Arc::new(Spelt::of(said.into(), &context.into(), &arguments, key))
}

/// As [`spelt_under`], where the host says nothing.
pub(super) fn spelt(callee: &Callee, said: &str) -> Arc<Spelt> {
    spelt_under(callee, said, "")
}

fn keep(cache: &AnswerCache, spelt: &Arc<Spelt>) {
    let question = Question::Spelt(Arc::clone(spelt));
    assert!(cache.insert(&question, cache.version(spelt.key()), &text("x")));
}

pub(super) fn recall(
    cache: &AnswerCache,
    callee: &Callee,
    text: &str,
    context: &str,
) -> Option<Arc<Kept>> {
    let sought = cache.names().sought(callee.definition().name(), text, context)?;
    cache.recall(sought, || Some(callee))
}

#[test]
fn a_text_is_known_to_the_same_tool_under_the_same_context_only() {
    let cache = AnswerCache::new(CacheLimits::default());
    let callee = Policies::cached().callee();
    let kept = spelt_under(&callee, r#"{"a": 1}"#, "ada");
    keep(&cache, &kept);
    // A definition that was loaded again is the same.
    for callee in [&callee, &Policies::cached().callee()] {
        let known = recall(&cache, callee, r#"{"a": 1}"#, "ada").expect("it is known");
        let arguments = known.spelt().map(|spelt| spelt.arguments().as_str());
        assert_eq!((known.key(), arguments), (kept.key(), Some(r#"{"a": 1}"#)));
    }
    assert!(recall(&cache, &callee, r#"{"a":1}"#, "ada").is_none(), "equal, but not the same text");
    assert!(recall(&cache, &callee, r#"{"a": 2}"#, "ada").is_none());
    assert!(recall(&cache, &callee, r#"{"a": 1}"#, "bob").is_none());
    assert!(recall(&cache, &callee, r#"{"a": 1}"#, "").is_none());
    let other = Policies::cached().reading("world").callee();
    assert!(recall(&cache, &other, r#"{"a": 1}"#, "ada").is_none());
}

#[test]
fn a_call_of_a_name_of_which_no_text_is_known_does_not_look_for_one() {
    let cache = AnswerCache::new(CacheLimits::default());
    let kept = spelt(&Policies::cached().callee(), "{}");
    let looks = || cache.names().sought("look", "{}", "").is_some();
    assert!(!looks());
    // The answer alone, after a text that is not to be known.
    assert!(insert(&cache, kept.key(), cache.version(kept.key()), &text("x")));
    assert!(!looks());
    keep(&cache, &kept);
    assert!(looks());
    cache.clear();
    assert!(!looks());
}

#[test]
fn a_text_is_known_as_long_as_its_answer_is_kept_and_counts_in_its_bytes() {
    let limits = CacheLimits { max_entries: 2, ..CacheLimits::default() };
    let cache = AnswerCache::new(limits);
    let callee = Policies::cached().reading("world").callee();
    let [one, two, three] =
        [r#"{"a":1}"#, r#"{"a":2}"#, r#"{"a":3}"#].map(|said| (said, spelt(&callee, said)));
    let known = |said: &str| recall(&cache, &callee, said, "").is_some();

    keep(&cache, &one.1);
    let bytes = cache.stats().bytes;
    keep(&cache, &one.1);
    assert_eq!(cache.stats().bytes, bytes, "it is counted once");
    keep(&cache, &two.1);
    keep(&cache, &three.1);
    assert_eq!([known(one.0), known(two.0), known(three.0)], [false, true, true], "evicted");
    assert_eq!((cache.known_texts(), cache.stats().bytes), (2, 2 * bytes));

    cache.invalidate_resource("world");
    assert_eq!((cache.known_texts(), cache.stats().bytes), (0, 0));

    keep(&cache, &two.1);
    // Replaced by the answer to another text, which had to be mended.
    assert!(insert(&cache, two.1.key(), cache.version(two.1.key()), &text("x")));
    assert!(!known(two.0));
    assert_eq!(cache.known_texts(), 0);
    keep(&cache, &two.1);
    cache.clear();
    assert_eq!((cache.known_texts(), cache.stats().bytes), (0, 0));
}

#[test]
fn texts_take_a_quarter_of_the_bytes_at_most_and_push_no_answer_out() {
    let callee = Policies::cached().callee();
    let all: Vec<_> = (0..10)
        .map(|number| spelt(&callee, &json!({ "number": 100 + number }).to_string()))
        .collect();
    let size = all[0].size();
    let limits = CacheLimits { max_bytes: 4 * (3 * size + size / 2), ..CacheLimits::default() };
    let cache = AnswerCache::new(limits);
    for spelt in &all {
        keep(&cache, spelt);
        assert!(cache.known_texts() <= 3);
    }
    assert_eq!((cache.known_texts(), cache.stats().entries), (3, 10), "{size} bytes each");
    cache.clear();
    keep(&cache, &all[0]);
    assert_eq!(cache.known_texts(), 1, "what was cleared takes no room");
}
