//! What the parts come to together, and what their tests share.

mod entries;
mod history;
mod single_flight;
mod speed;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::json;
use toolcrib_json::parse;
use toolcrib_tool::{
    Annotations, CachePolicy, ContextValues, Dedupe, ErrorKind, Layer, Resources, Source,
    ToolDefinition, ToolEntry, ToolError, ToolOutput, tool_fn,
};

use super::{
    AnswerCache, Answers, CacheKey, CacheLimits, CachedAnswer, Callee, Flights, HistoryLimits,
    Lookup, LookupScope, SharedOutcome,
};

/// A tool that only its policies tell from others.
#[derive(Debug, Clone, Default)]
struct Policies {
    cache: Option<CachePolicy>,
    dedupe: Dedupe,
    resources: Resources,
}

impl Policies {
    fn cached() -> Self {
        Self { cache: Some(CachePolicy::new()), ..Self::default() }
    }

    fn deduped(dedupe: Dedupe) -> Self {
        Self { dedupe, ..Self::default() }
    }

    fn reading(mut self, resource: &str) -> Self {
        self.resources = self.resources.reads(resource);
        self
    }

    fn callee(self) -> Callee {
        let only_reads = Annotations {
            read_only: true,
            idempotent: true,
            destructive: false,
            open_world: false,
        };
        let mut builder = ToolDefinition::builder("look")
            .description("Look.")
            .annotations(only_reads)
            .dedupe(self.dedupe)
            .resources(self.resources);
        if let Some(policy) = self.cache {
            builder = builder.cache(policy);
        }
        let body = tool_fn(|_: serde_json::Value, _| async { "seen" });
        let source = Source::new(Layer::Host, "tests");
        Callee::of(&ToolEntry::new(builder.build().unwrap(), Arc::new(body), source), "")
    }

    fn key(self, arguments: &str) -> CacheKey {
        key(&self.callee(), arguments)
    }
}

fn key(callee: &Callee, arguments: &str) -> CacheKey {
    CacheKey::of(callee, parse(arguments).unwrap().root(), &ContextValues::new(), "")
}

/// The key of the call number so-and-so.
fn numbered(callee: &Callee, number: usize) -> CacheKey {
    key(callee, &json!({ "n": number }).to_string())
}

fn text(text: &str) -> Arc<ToolOutput> {
    Arc::new(ToolOutput::from(text))
}

fn kept(output: &str) -> CachedAnswer {
    CachedAnswer::new(text(output))
}

fn failed(kind: ErrorKind) -> SharedOutcome {
    Err(Arc::new(ToolError::new(kind, "it failed")))
}

fn answers() -> Answers {
    Answers::new(AnswerCache::new(CacheLimits::default()), HistoryLimits::default())
}

fn session(name: &str) -> LookupScope<'_> {
    LookupScope { session: Some(name), ..LookupScope::default() }
}

/// What a call came to: the text, and how it was had.
async fn call(
    answers: &Answers,
    key: &CacheKey,
    scope: LookupScope<'_>,
    runs: &AtomicUsize,
) -> (String, &'static str) {
    let said = |output: &ToolOutput| output.text().into_owned();
    match answers.ask(key, scope).await {
        Lookup::Hit(kept) => (said(&kept.output), "kept"),
        Lookup::Shared(Ok(output), _) => (said(&output), "shared"),
        Lookup::Shared(Err(error), _) => (error.message().to_owned(), "shared"),
        Lookup::Miss(run) => {
            let number = runs.fetch_add(1, Ordering::SeqCst) + 1;
            tokio::time::sleep(Duration::from_millis(10)).await;
            let output = text(&format!("run {number}"));
            answers.publish(run, scope, &Ok(Arc::clone(&output)), true);
            (said(&output), "ran")
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_identical_calls_run_the_tool_once() {
    let answers = Arc::new(answers());
    let runs = Arc::new(AtomicUsize::new(0));
    let calls: Vec<_> = (0..1_000)
        .map(|number| {
            let (answers, runs) = (Arc::clone(&answers), Arc::clone(&runs));
            // Each spells and hashes the call for itself.
            let arguments = if number % 2 == 0 { r#"{"a":1,"b":2}"# } else { r#"{"b":2e0,"a":1}"# };
            tokio::spawn(async move {
                let key = Policies::cached().key(arguments);
                call(&answers, &key, LookupScope::default(), &runs).await
            })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().0, "run 1");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(answers.flights.len(), 0, "nothing is left under way");
    let stats = answers.stats();
    assert_eq!(stats.hits + stats.misses, 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_tool_without_policies_always_runs() {
    let (answers, runs) = (answers(), AtomicUsize::new(0));
    let callee = Policies::default().callee();
    let batch = Flights::for_batch();
    let scope = LookupScope { session: Some("s"), batch: Some(&batch), nested: false };
    for number in 1..=3 {
        let answer = call(&answers, &key(&callee, "{}"), scope, &runs).await;
        assert_eq!(answer, (format!("run {number}"), "ran"));
    }
    assert_eq!(answers.stats(), super::CacheStats::default());
}

#[tokio::test(start_paused = true)]
async fn a_batch_runs_a_repeated_call_once_even_one_after_another() {
    for dedupe in [Dedupe::Batch, Dedupe::Session] {
        let (answers, runs) = (answers(), AtomicUsize::new(0));
        let key = Policies::deduped(dedupe).key("{}");
        let batch = Flights::for_batch();
        let scope = LookupScope { session: Some("s"), batch: Some(&batch), nested: false };
        let at_once = futures_util::future::join(
            call(&answers, &key, scope, &runs),
            call(&answers, &key, scope, &runs),
        );
        let (first, second) = at_once.await;
        assert_eq!(first, ("run 1".to_owned(), "ran"));
        assert_eq!(second, ("run 1".to_owned(), "shared"));
        assert_eq!(call(&answers, &key, scope, &runs).await.1, "shared");

        // The next batch of the session is another matter.
        let batch = Flights::for_batch();
        let scope = LookupScope { batch: Some(&batch), ..scope };
        let expected = if dedupe == Dedupe::Batch { "ran" } else { "kept" };
        assert_eq!(call(&answers, &key, scope, &runs).await.1, expected);
        assert_eq!(call(&answers, &key, scope, &runs).await.1, "shared");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_is_answered_from_its_own_past_only() {
    let (answers, runs) = (answers(), AtomicUsize::new(0));
    let key = Policies::deduped(Dedupe::Session).key("{}");
    assert_eq!(call(&answers, &key, session("a"), &runs).await.1, "ran");
    assert_eq!(call(&answers, &key, session("a"), &runs).await.1, "kept");
    assert_eq!(call(&answers, &key, session("b"), &runs).await.1, "ran");
    assert_eq!(call(&answers, &key, LookupScope::default(), &runs).await.1, "ran");
    answers.forget_session("a");
    assert_eq!(call(&answers, &key, session("a"), &runs).await.1, "ran");
    answers.clear();
    assert_eq!(call(&answers, &key, session("b"), &runs).await.1, "ran");
}

#[tokio::test(start_paused = true)]
async fn a_session_keeps_what_it_got_from_the_cache() {
    let clock = || tokio::time::Instant::now().into_std();
    let cache = AnswerCache::with_clock(CacheLimits::default(), clock);
    let (answers, runs) = (Answers::new(cache, HistoryLimits::default()), AtomicUsize::new(0));
    let policies = Policies { dedupe: Dedupe::Session, ..Policies::cached() };
    let key = policies.key("{}");
    let at_once = futures_util::future::join(
        call(&answers, &key, session("a"), &runs),
        call(&answers, &key, session("b"), &runs),
    );
    assert_eq!(at_once.await.1.1, "shared");
    assert_eq!(call(&answers, &key, session("c"), &runs).await.1, "kept");
    for name in ["a", "b", "c"] {
        assert_eq!(call(&answers, &key, session(name), &runs).await.1, "kept", "{name}");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    // A session's answers grow as old as those of the cache, and no older.
    tokio::time::advance(Duration::from_secs(301)).await;
    assert!(answers.cache.get(&key).is_none());
    assert_eq!(call(&answers, &key, session("a"), &runs).await.1, "ran");
}

#[tokio::test(start_paused = true)]
async fn a_write_ends_what_sessions_and_cache_have_read_and_new_calls_do_not_join_old_reads() {
    let policies = Policies { dedupe: Dedupe::Session, ..Policies::cached() };
    let key = policies.reading("tickets").key("{}");
    let (answers, runs) = (answers(), AtomicUsize::new(0));
    let written = Resources::new().writes("tickets");

    let old = call(&answers, &key, session("a"), &runs);
    let new = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        drop(answers.writing(&written));
        call(&answers, &key, session("b"), &runs).await
    };
    let (old, new) = futures_util::future::join(old, new).await;
    assert_eq!((old.0.as_str(), new.0.as_str()), ("run 1", "run 2"));

    // The old read came to nothing for others and for its own session; the new one is kept.
    assert_eq!(call(&answers, &key, session("a"), &runs).await, ("run 2".to_owned(), "kept"));
    answers.invalidate_resource("tickets");
    assert_eq!(call(&answers, &key, session("a"), &runs).await.1, "ran");
    assert!(answers.writing(&Resources::new().reads("tickets")).is_none());
}

#[tokio::test(start_paused = true)]
async fn failures_are_shared_with_who_waits_and_never_kept() {
    let answers = answers();
    let policies = Policies { dedupe: Dedupe::Session, ..Policies::cached() };
    let key = policies.key("{}");
    let Lookup::Miss(run) = answers.ask(&key, session("s")).await else { panic!("nobody ran") };
    let waiting = answers.ask(&key, session("s"));
    let mut waiting = std::pin::pin!(waiting);
    assert!(waiting.as_mut().now_or_never().is_none());
    answers.publish(run, session("s"), &failed(ErrorKind::Execution), true);
    let Lookup::Shared(Err(error), _) = waiting.await else { panic!("the failure is not shared") };
    assert_eq!(error.message(), "it failed");
    let Lookup::Miss(_) = answers.ask(&key, session("s")).await else { panic!("it was kept") };
}

#[tokio::test(start_paused = true)]
async fn a_nested_call_does_not_wait_for_the_call_it_came_from() {
    let (answers, runs) = (answers(), AtomicUsize::new(0));
    let key = Policies::cached().key("{}");
    let Lookup::Miss(outer) = answers.ask(&key, LookupScope::default()).await else {
        panic!("no run")
    };
    let nested = LookupScope { nested: true, ..LookupScope::default() };
    let follower = answers.ask(&key, LookupScope::default());
    let mut follower = std::pin::pin!(follower);
    assert!(follower.as_mut().now_or_never().is_none());
    let inner = tokio::time::timeout(Duration::from_secs(1), call(&answers, &key, nested, &runs));
    assert_eq!(inner.await.unwrap().1, "ran");
    // Its answer is stored for others all the same.
    assert_eq!(call(&answers, &key, nested, &runs).await.1, "kept");
    drop(outer);
    assert!(matches!(follower.await, Lookup::Hit(_)), "its turn has come, and there it is");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn switched_off_nothing_is_kept_but_a_batch_still_runs_a_call_once() {
    let limits = CacheLimits { max_entries: 0, ..CacheLimits::default() };
    let answers = Answers::new(AnswerCache::new(limits), HistoryLimits::default());
    let runs = AtomicUsize::new(0);
    let key = Policies { dedupe: Dedupe::Session, ..Policies::cached() }.key("{}");
    assert_eq!(call(&answers, &key, session("s"), &runs).await.1, "ran");
    assert_eq!(call(&answers, &key, session("s"), &runs).await.1, "ran");
    let batch = Flights::for_batch();
    let scope = LookupScope { batch: Some(&batch), ..session("s") };
    assert_eq!(call(&answers, &key, scope, &runs).await.1, "ran");
    assert_eq!(call(&answers, &key, scope, &runs).await.1, "shared");
}
