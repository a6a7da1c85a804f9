//! Cached answers: who gets them, how long they are valid, and which answers are not cached.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_core::spill::{MemorySpill, SpillLimits, read_output_entry};
use toolcrib_core::{Executor, ExecutorConfig, TurnOptions};
use toolcrib_tool::{
    CachePolicy, CallContext, ContextValues, Dedupe, ErrorKind, IntoOutcome as _, Resources,
    Services, ToolCall, ToolDefinitionBuilder, ToolEntry, ToolError, ToolOutput, ToolResult,
    tool_factory, tool_fn,
};

use crate::harness::{call, define, entry, executor, registry, source, turn};

/// A tool that counts its runs and returns the count.
fn counting(definition: ToolDefinitionBuilder) -> (ToolEntry, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let body = tool_fn(move |_: Value, _| {
        let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            format!("run {run}")
        }
    });
    (entry(definition, body), runs)
}

fn reading(name: &str) -> ToolDefinitionBuilder {
    define(name).read_only(true).idempotent(true)
}

#[tokio::test]
async fn a_cached_answer_is_used_again_for_the_same_arguments_and_identity_only() {
    let schema = json!({"properties": {"a": {}, "b": {}}});
    let (tool, runs) = counting(reading("find").input_schema(schema).cache(CachePolicy::new()));
    let executor = executor([tool]);
    let ada =
        executor.turn(TurnOptions::default().values(ContextValues::new().with("user", "ada")));
    let first = ada.call(ToolCall::new("1", "find", r#"{"a": 1, "b": "x"}"#)).await;
    let again = ada.call(ToolCall::new("2", "find", r#"{"b":"\u0078","a":1.0}"#)).await;
    assert_eq!((first.cached(), again.cached()), (false, true));
    assert_eq!((again.text().as_ref(), again.call_id().as_str()), ("run 1", "2"));
    let bob =
        executor.turn(TurnOptions::default().values(ContextValues::new().with("user", "bob")));
    assert!(!bob.call(ToolCall::new("3", "find", r#"{"a": 1, "b": "x"}"#)).await.cached());
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn what_one_caller_does_with_a_cached_answer_changes_it_for_nobody() {
    let schema = json!({"properties": {"text": {"type": "string"}}});
    let definition = reading("echo").input_schema(schema).cache(CachePolicy::new());
    // The tool reads its arguments as a value, whose memory belongs to the call and not to the kept key.
    let body = tool_fn(|arguments: Value, _| async move {
        ToolOutput::from(arguments["text"].as_str().unwrap_or_default())
            .with_data(json!({"list": [1, 2]}))
    });
    let turn = turn([entry(definition, body)]);
    let arguments = json!({"text": "said"});
    let first = call(&turn, "echo", arguments.clone()).await;
    let taken = first.into_result().expect("it succeeds");
    let changed = taken.with_content("and more").with_data(json!({"list": []}));
    assert_eq!(changed.text(), "said\nand more");
    for id in ["2", "3"] {
        let hit = turn.call(ToolCall::new(id, "echo", arguments.clone())).await;
        assert_eq!((hit.cached(), hit.text().as_ref()), (true, "said"));
        assert_eq!(hit.data(), Some(&json!({"list": [1, 2]})));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_identical_calls_at_once_run_the_tool_once() {
    let (tool, runs) = counting(reading("find").cache(CachePolicy::new()));
    let turn = turn([tool]);
    let calls = (0..1000).map(|n| {
        let turn = turn.clone();
        tokio::spawn(async move { turn.call(ToolCall::new(n.to_string(), "find", "{}")).await })
    });
    for (n, answer) in calls.collect::<Vec<_>>().into_iter().enumerate() {
        let answer = answer.await.expect("answered");
        assert_eq!(
            (answer.text().as_ref(), answer.call_id().as_str()),
            ("run 1", n.to_string().as_str())
        );
    }
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_same_call_twice_in_a_batch_runs_once_and_in_a_session_is_remembered() {
    let (tool, runs) = counting(reading("look").dedupe(Dedupe::Session));
    let executor = executor([tool]);
    let turn = executor.turn(TurnOptions::default().session("s1").max_concurrency(1));
    let calls = (0..3).map(|n| ToolCall::new(n.to_string(), "look", "{}")).collect();
    let answers = turn.call_batch(calls).await;
    let skipped: Vec<_> = answers.iter().map(ToolResult::skipped).collect();
    assert_eq!(skipped, [false, true, true]);
    assert!(turn.call(ToolCall::new("4", "look", "{}")).await.cached());
    let other = executor.turn(TurnOptions::default().session("s2"));
    assert!(!other.call(ToolCall::new("5", "look", "{}")).await.cached());
    let none = executor.turn(TurnOptions::default());
    assert!(!none.call(ToolCall::new("6", "look", "{}")).await.cached(), "no session, no history");
    assert_eq!(runs.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_writer_makes_others_forget_what_they_read_and_failures_are_never_kept() {
    let reads = Resources::new().reads("tickets");
    let (reader, runs) = counting(reading("list").cache(CachePolicy::new()).resources(reads));
    let (writer, _) = counting(define("add").resources(Resources::new().writes("tickets")));
    let failing = entry(
        reading("fails").cache(CachePolicy::new()),
        tool_fn(|_: Value, _| async { Err::<String, _>(ToolError::execution("no")) }),
    );
    let turn = turn([reader, writer, failing]);
    for expected in ["run 1", "run 1"] {
        assert_eq!(call(&turn, "list", json!({})).await.text(), expected);
    }
    assert!(call(&turn, "add", json!({})).await.is_success());
    assert_eq!(call(&turn, "list", json!({})).await.text(), "run 2");
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    for _ in 0..2 {
        let failed = call(&turn, "fails", json!({})).await;
        assert_eq!((failed.error_kind(), failed.cached()), (Some(ErrorKind::Execution), false));
    }
}

fn cached(name: &str) -> ToolDefinitionBuilder {
    define(name).read_only(true).idempotent(true).cache(CachePolicy::new())
}

/// Returns the number of its runs.
fn counts(ran: &Arc<AtomicUsize>) -> impl toolcrib_tool::Tool + use<> {
    let ran = Arc::clone(ran);
    tool_fn(move |_: Value, _| {
        let run = ran.fetch_add(1, Ordering::SeqCst) + 1;
        async move { format!("run {run}") }
    })
}

fn user(name: &str) -> ContextValues {
    ContextValues::new().with("user", name)
}

#[tokio::test]
async fn the_key_is_the_tool_its_arguments_injected_values_and_identity_and_nothing_else() {
    let ran = Arc::default();
    let injected = toolcrib_tool::Injection::new("project", "project").optional();
    let look = cached("look").injections(vec![injected]);
    let executor = executor([entry(look, counts(&ran))]);
    let of = |values: ContextValues| executor.turn(TurnOptions::default().values(values));
    // Other values of the host, such as a request's trace, change nothing.
    for (number, trace) in ["4bf9", "01af"].into_iter().enumerate() {
        let result = call(&of(user("ada").with("trace", trace)), "look", json!({})).await;
        assert_eq!((result.text().as_ref(), result.cached()), ("run 1", number > 0));
    }
    let others = [
        ContextValues::new(),
        user("bob"),
        user("ada").with("tenant", "acme"),
        user("ada").with("project", "p"),
    ];
    for (number, values) in others.into_iter().enumerate() {
        let result = call(&of(values), "look", json!({})).await;
        assert_eq!(result.text(), format!("run {}", number + 2));
    }
}

#[tokio::test]
async fn an_answer_that_depends_on_more_than_its_key_is_kept_only_where_the_tool_shares_it() {
    type Look = fn(&CallContext) -> String;
    let looks: [(&str, Look); 6] = [
        ("session", |cx| format!("{:?}", cx.session())),
        ("service", |cx| format!("{:?}", cx.service::<String>())),
        ("files", |cx| format!("{} files", cx.files().len())),
        ("value", |cx| format!("{:?}", cx.value("trace"))),
        ("values", |cx| format!("{:?}", cx.values().get("trace"))),
        ("tools", |cx| format!("{:?}", cx.describe("nothing").is_ok())),
    ];
    for (name, look) in looks {
        for shared in [false, true] {
            let body = tool_fn(move |_: Value, cx: CallContext| async move { look(&cx) });
            let policy = CachePolicy::new().with_shared(shared);
            let executor = executor([entry(cached(name).cache(policy), body)]);
            let of = |session: &str, trace: &str, service: &str| {
                let options = TurnOptions::default()
                    .values(user("ada").with("trace", trace))
                    .services(Services::new().with(Arc::new(service.to_owned())))
                    .session(session);
                executor.turn(options)
            };
            call(&of("s1", "t1", "ada's database"), name, json!({})).await;
            let second = call(&of("s2", "t2", "bob's database"), name, json!({})).await;
            assert_eq!(second.cached(), shared, "{name}: {}", second.text());
        }
    }
    // A nested call, and a tool that uses only values that are part of the key.
    let nested = tool_fn(|_: Value, cx: CallContext| async move {
        let user = cx.value("user").map(ToString::to_string);
        cx.call(ToolCall::new("n", "plain", "{}")).await.text().into_owned() + &format!("{user:?}")
    });
    let plain = tool_fn(|_: Value, cx: CallContext| async move {
        format!("{:?} {:?}", cx.value("user"), cx.deadline().is_some())
    });
    let executor = executor([entry(cached("nested"), nested), entry(cached("plain"), plain)]);
    let turn = executor.turn(TurnOptions::default().values(user("ada")));
    for (name, kept) in [("nested", false), ("plain", true)] {
        call(&turn, name, json!({})).await;
        assert_eq!(call(&turn, name, json!({})).await.cached(), kept, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn followers_of_an_answer_that_is_not_shared_run_for_themselves_side_by_side() {
    let body = tool_fn(|_: Value, cx: CallContext| async move {
        let session = cx.session().unwrap_or("none").to_owned();
        tokio::time::sleep(Duration::from_secs(1)).await;
        session
    });
    let executor = executor([entry(cached("look"), body)]);
    let from = tokio::time::Instant::now();
    let calls = (0..10).map(|number| {
        let turn = executor.turn(TurnOptions::default().session(format!("s{number}")));
        async move { call(&turn, "look", json!({})).await }
    });
    let answers = futures_util::future::join_all(calls).await;
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(answer.text(), format!("s{number}"));
        assert!(!answer.cached() && !answer.skipped());
    }
    assert_eq!(from.elapsed(), Duration::from_secs(2), "one leads, then nine run at once");
}

#[tokio::test(start_paused = true)]
async fn answers_of_a_session_grow_as_old_as_those_of_the_cache() {
    let ran = Arc::default();
    let brief = CachePolicy::new().with_ttl(Duration::from_secs(1));
    let executor = executor([
        entry(cached("brief").cache(brief).dedupe(Dedupe::Session), counts(&ran)),
        entry(
            define("usual").read_only(true).idempotent(true).dedupe(Dedupe::Session),
            counts(&ran),
        ),
    ]);
    let turn = executor.turn(TurnOptions::default().session("s"));
    for (name, ttl) in [("brief", 1), ("usual", 300)] {
        assert!(!call(&turn, name, json!({})).await.cached());
        tokio::time::advance(Duration::from_millis(ttl * 1000 - 1)).await;
        assert!(call(&turn, name, json!({})).await.cached(), "{name}");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!call(&turn, name, json!({})).await.cached(), "{name}");
    }
}

#[test]
fn only_tools_that_read_and_may_be_repeated_leave_out_repeated_calls_of_a_session() {
    for (read_only, idempotent) in [(false, false), (true, false), (false, true)] {
        let built = define("write")
            .read_only(read_only)
            .idempotent(idempotent)
            .dedupe(Dedupe::Session)
            .build();
        let error = built.expect_err("it would not run the second time").to_string();
        assert!(error.contains("dedupe: session") && error.contains("read-only"), "{error}");
    }
    assert!(define("write").dedupe(Dedupe::Batch).build().is_ok());
}

#[tokio::test]
async fn with_the_cache_off_equal_calls_of_a_batch_still_run_once() {
    let ran = Arc::default();
    let mut config = ExecutorConfig::default();
    config.cache_entries = 0;
    let executor = Executor::new(registry([entry(cached("stamp"), counts(&ran))]), config);
    let turn = executor.turn(TurnOptions::default());
    let calls = (0..3).map(|id| ToolCall::new(id.to_string(), "stamp", "{}")).collect();
    let answers = turn.call_batch(calls).await;
    assert!(answers.iter().all(|answer| answer.text() == "run 1"));
    assert_eq!(answers.iter().filter(|answer| answer.skipped()).count(), 2);
    assert_eq!(call(&turn, "stamp", json!({})).await.text(), "run 2");
}

#[tokio::test]
async fn an_instance_is_made_only_for_calls_that_run() {
    let made = Arc::new(AtomicUsize::new(0));
    let factory = {
        let made = Arc::clone(&made);
        tool_factory(move |_| {
            made.fetch_add(1, Ordering::SeqCst);
            async {
                Ok(tool_fn(|_: Value, _| async {
                    tokio::task::yield_now().await;
                    "seen"
                }))
            }
        })
    };
    let definition = cached("look").build().expect("a definition");
    let executor = executor([ToolEntry::per_use(definition, Arc::new(factory), source())]);
    let turn = executor.turn(TurnOptions::default());
    let calls = (0..100).map(|_| call(&turn, "look", json!({})));
    futures_util::future::join_all(calls).await;
    for _ in 0..10 {
        assert!(call(&turn, "look", json!({})).await.cached());
    }
    assert_eq!(made.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_long_answer_that_is_hit_again_keeps_its_handle() {
    let long = tool_fn(|_: Value, _| async { "x".repeat(1_000_000) });
    let other =
        tool_fn(|_: Value, _| async { ToolOutput::from("y".repeat(100_000)).into_outcome() });
    let store = Arc::new(MemorySpill::new(SpillLimits::default()));
    let executor = Executor::builder(registry([
        entry(cached("long"), long),
        entry(define("other"), other),
        read_output_entry(store.clone()),
    ]))
    .spill(store)
    .build();
    let turn = |name: &str| executor.turn(TurnOptions::default().values(user(name)));
    let handle = |text: &str| {
        let from = text.find("\"handle\":\"").map(|at| at + 10);
        from.map(|from| text[from..].split('"').next().unwrap_or_default().to_owned())
    };
    let bob = call(&turn("bob"), "other", json!({})).await;
    let handle_of_bob = handle(&bob.text()).expect("it was spilled");
    let first = call(&turn("ada"), "long", json!({})).await;
    for _ in 0..100 {
        let hit = call(&turn("ada"), "long", json!({})).await;
        assert!(hit.cached());
        assert_eq!(handle(&hit.text()), handle(&first.text()));
    }
    let page = call(&turn("bob"), "read_output", json!({"handle": handle_of_bob})).await;
    assert!(page.is_success(), "{}", page.text());
}

#[tokio::test]
async fn executors_that_share_a_snapshot_count_for_themselves() {
    let ran = Arc::default();
    let first = executor([entry(define("look"), counts(&ran))]);
    call(&first.turn(TurnOptions::default()), "look", json!({})).await;
    let shared = toolcrib_core::Registry::new(first.registry().snapshot().refreshed([]));
    let second = Executor::new(shared, ExecutorConfig::default());
    call(&second.turn(TurnOptions::default()), "look", json!({})).await;
    for executor in [&first, &second] {
        let [counted] = &executor.statistics().snapshot()[..] else { panic!("one tool") };
        assert_eq!(counted.executions, 1);
    }
}
