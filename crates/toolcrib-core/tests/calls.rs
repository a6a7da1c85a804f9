//! Calls through the pipeline, as a host sees them.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_core::policy::{DecidedBy, Verdict};
use toolcrib_core::{
    Executor, ExecutorConfig, Registration, Registry, RegistryBuilder, Turn, TurnOptions,
};
use toolcrib_tool::{
    Annotations, Arguments, BoxFuture, CachePolicy, CallContext, CommandPlan, Content,
    ContextValues, Dedupe, ErrorKind, Injection, IntoOutcome, Layer, Plan, Resources, Source, Tool,
    ToolCall, ToolDefinition, ToolDefinitionBuilder, ToolEntry, ToolError, ToolOutcome, ToolOutput,
    ToolResult, tool_fn,
};

fn define(name: &str) -> ToolDefinitionBuilder {
    ToolDefinition::builder(name).description("A tool for a test.")
}

fn entry(definition: ToolDefinitionBuilder, body: impl Tool) -> ToolEntry {
    let definition = definition.build().expect("valid definition");
    ToolEntry::new(definition, Arc::new(body), Source::new(Layer::Host, "test"))
}

fn executor(entries: impl IntoIterator<Item = ToolEntry>, config: ExecutorConfig) -> Executor {
    let mut builder = RegistryBuilder::new();
    for entry in entries {
        assert_eq!(builder.register(entry), Registration::Registered);
    }
    Executor::new(Registry::new(builder.build()), config)
}

fn turn(entries: impl IntoIterator<Item = ToolEntry>) -> Turn {
    executor(entries, ExecutorConfig::default()).turn(TurnOptions::default())
}

async fn call(turn: &Turn, name: &str, arguments: Value) -> ToolResult {
    turn.call(ToolCall::new("call_1", name, arguments)).await
}

fn echo(definition: ToolDefinitionBuilder) -> ToolEntry {
    entry(definition, tool_fn(|args: Value, _| async move { args }))
}

fn says<R: IntoOutcome + Clone + Send + Sync + 'static>(name: &str, result: R) -> ToolEntry {
    entry(define(name), tool_fn(move |_: Value, _| std::future::ready(result.clone())))
}

#[tokio::test]
async fn every_problem_of_the_arguments_is_named_at_once() {
    let schema = json!({
        "properties": {
            "path": {"type": "string"},
            "lines": {"type": "integer", "minimum": 1, "maximum": 2000},
            "mode": {"enum": ["head", "tail"]},
            "filter": {"type": "object", "properties": {"level": {"type": "string"}}, "additionalProperties": false},
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    let ran = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ran);
    let turn = turn([entry(
        define("read").input_schema(schema),
        tool_fn(move |_: Value, _| {
            seen.store(true, Ordering::SeqCst);
            async { "ran" }
        }),
    )]);
    let result = call(
        &turn,
        "read",
        json!({"pth": "a.txt", "lines": 5000, "mode": "tial", "filter": {"levle": 1}}),
    )
    .await;
    assert_eq!(result.error_kind(), Some(ErrorKind::InvalidArgs));
    let text = result.text();
    for expected in [
        "Error executing read: the arguments do not fit the tool's schema in 5 places",
        "- /path: required and missing (expected a string)",
        "- /pth: there is no such property, got \"a.txt\"; did you mean `path`?",
        "- /lines: expected at most 2000, got 5000",
        "- /mode: expected one of \"head\", \"tail\", got \"tial\"; did you mean `tail`?",
        "- /filter/levle: there is no such property, got 1; did you mean `level`?",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in:\n{text}");
    }
    assert!(!ran.load(Ordering::SeqCst), "a refused call runs nothing");
}

#[tokio::test]
async fn a_format_annotates_in_every_draft_unless_the_definition_says_assert() {
    for draft in
        ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]
    {
        // The pattern keeps the short way out of it.
        let when = json!({"type": "string", "format": "date", "pattern": "^t"});
        let schema = json!({"$schema": draft, "properties": {"when": when}});
        let lenient = define("lenient").input_schema(schema.clone());
        let strict = define("strict").input_schema(schema).assert_formats(true);
        let turn = turn([echo(lenient), echo(strict)]);
        let result = call(&turn, "lenient", json!({"when": "tomorrow"})).await;
        assert!(result.error().is_none(), "{draft}: {}", result.text());
        let result = call(&turn, "strict", json!({"when": "tomorrow"})).await;
        assert_eq!(result.error().map(ToolError::kind), Some(ErrorKind::InvalidArgs), "{draft}");
    }
}

#[tokio::test]
async fn broken_json_is_answered_with_the_place() {
    let turn = turn([echo(define("echo"))]);
    let result = turn.call(ToolCall::new("1", "echo", "{\"a\": tru}")).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::InvalidJson));
    assert!(
        result.text().contains("expected a JSON value, found `t` at character 7"),
        "{}",
        result.text()
    );
}

#[tokio::test]
async fn arguments_nested_as_deeply_as_allowed_reach_the_tool() {
    let turn = turn([echo(define("echo").input_schema(json!({})))]);
    let nested = |levels: usize| format!("{{\"x\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    let deepest = turn.call(ToolCall::new("1", "echo", nested(127))).await;
    assert!(deepest.is_success(), "{}", deepest.text());
    assert!(deepest.data().is_some_and(|data| data["x"].is_array()));
    let deeper = turn.call(ToolCall::new("2", "echo", nested(128))).await;
    assert_eq!(deeper.error_kind(), Some(ErrorKind::InvalidJson));
}

#[tokio::test]
async fn arguments_that_are_not_an_object_are_refused() {
    let turn = turn([echo(define("echo"))]);
    for arguments in ["[]", "1", "null", "\"text\""] {
        let result = turn.call(ToolCall::new("1", "echo", arguments)).await;
        assert_eq!(result.error_kind(), Some(ErrorKind::InvalidArgs), "{arguments}");
    }
    assert!(turn.call(ToolCall::new("1", "echo", "")).await.is_success(), "empty text is {{}}");
}

#[tokio::test]
async fn the_tool_sees_what_was_validated() {
    let schema = json!({"properties": {"n": {"type": "integer"}, "unit": {"default": "km"}}});
    let turn = turn([echo(define("echo").input_schema(schema))]);
    let result = call(&turn, "echo", json!({"n": 5.0, "_secret": true})).await;
    assert_eq!(result.data(), Some(&json!({"n": 5, "unit": "km"})));
}

#[tokio::test]
async fn an_unknown_name_is_answered_with_near_names() {
    let turn = turn([says("read_file", "x"), says("write_file", "x")]);
    let result = call(&turn, "raed_file", json!({})).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::NotFound));
    assert!(result.text().contains("Did you mean `read_file`"), "{}", result.text());
}

#[tokio::test]
async fn an_unavailable_tool_is_in_no_listing_and_says_why() {
    let turn =
        turn([says("ports", "x").unavailable("needs the program `ss`, which is not on PATH")]);
    assert!(turn.definitions().is_empty());
    assert!(turn.describe("ports").is_none());
    let result = call(&turn, "ports", json!({})).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Unavailable));
    assert!(result.text().contains("needs the program `ss`"));
}

#[tokio::test]
async fn a_panic_is_an_answer_and_the_next_call_works() {
    for blocking in [false, true] {
        let turn = turn([
            entry(define("crash").blocking(blocking), tool_fn(|_: Value, _| async { crash() })),
            says("fine", "ok"),
        ]);
        let result = call(&turn, "crash", json!({})).await;
        assert_eq!(result.error_kind(), Some(ErrorKind::Panic));
        assert!(!result.text().contains("secret detail"), "a panic's text is for the operator");
        assert!(
            result
                .error()
                .and_then(ToolError::source)
                .expect("source")
                .to_string()
                .contains("secret detail")
        );
        assert!(call(&turn, "fine", json!({})).await.is_success());
    }
}

fn crash() -> &'static str {
    panic!("secret detail")
}

#[tokio::test(start_paused = true)]
async fn a_slow_tool_is_ended_at_its_limit_and_its_sibling_is_not() {
    let slow = |name: &str, seconds| {
        entry(
            define(name).timeout(Duration::from_secs(10)),
            tool_fn(move |_: Value, _| async move {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                "done"
            }),
        )
    };
    let turn = turn([slow("slow", 3600), slow("quick", 9)]);
    let calls = vec![ToolCall::new("a", "slow", "{}"), ToolCall::new("b", "quick", "{}")];
    let answers = turn.call_batch(calls).await;
    assert_eq!(answers[0].error_kind(), Some(ErrorKind::Timeout));
    assert!(answers[0].text().contains("limit of 10s"), "{}", answers[0].text());
    assert!(answers[0].text().contains("unknown"), "a writing tool's effect is unknown");
    assert_eq!(answers[1].text(), "done");
}

#[tokio::test(start_paused = true)]
async fn the_ceiling_holds_over_a_tools_own_limit() {
    let mut config = ExecutorConfig::default();
    config.max_timeout = Some(Duration::from_secs(2));
    let sleeper = entry(
        define("sleep").timeout(Duration::from_secs(3600)),
        tool_fn(|_: Value, _| async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            "done"
        }),
    );
    let turn = executor([sleeper], config).turn(TurnOptions::default());
    let result = call(&turn, "sleep", json!({})).await;
    assert!(result.text().contains("limit of 2s"), "{}", result.text());
}

/// Hands over what it has when its time is up.
struct WindsDown;

impl Tool for WindsDown {
    fn call<'a>(
        &'a self,
        _: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async {
            cx.cancelled().await;
            Err(ToolError::new(ErrorKind::Timeout, "ended").with_partial("half of it"))
        })
    }

    fn wind_down(&self) -> Duration {
        Duration::from_secs(1)
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_may_hand_over_what_it_has_at_its_limit() {
    let turn = turn([entry(define("long").timeout(Duration::from_secs(1)), WindsDown)]);
    let result = call(&turn, "long", json!({})).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Timeout));
    assert!(result.text().ends_with("half of it"), "{}", result.text());
}

/// Is of use however far it came.
struct Partial;

impl Tool for Partial {
    fn call<'a>(
        &'a self,
        _: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async {
            cx.cancelled().await;
            Ok(ToolOutput::from("half of it").with_timed_out().into())
        })
    }

    fn wind_down(&self) -> Duration {
        Duration::from_secs(1)
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_of_use_however_far_it_came_is_a_success_counts_as_a_timeout_and_pauses_nothing() {
    let executor = executor(
        [entry(define("log").timeout(Duration::from_secs(1)), Partial)],
        ExecutorConfig::default(),
    );
    let turn = executor.turn(TurnOptions::default());
    for _ in 0..5 {
        let result = call(&turn, "log", json!({})).await;
        assert!(result.is_success(), "{}", result.text());
        assert_eq!(result.text(), "half of it");
    }
    let counts = executor.statistics().snapshot().remove(0);
    assert_eq!((counts.successes, counts.timeouts, counts.failures), (5, 5, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocking_tool_learns_that_its_time_is_up() {
    let ended = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ended);
    let spin = entry(
        define("spin").blocking(true).timeout(Duration::from_millis(50)),
        tool_fn(move |_: Value, cx: CallContext| {
            let seen = Arc::clone(&seen);
            async move {
                let start = Instant::now();
                while !cx.is_cancelled() && start.elapsed() < Duration::from_secs(20) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                seen.store(cx.is_cancelled(), Ordering::SeqCst);
                "done"
            }
        }),
    );
    let result = call(&turn([spin]), "spin", json!({})).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Timeout));
    for _ in 0..1000 {
        if ended.load(Ordering::SeqCst) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the blocking tool never learnt that it was cancelled");
}

#[tokio::test]
async fn dropping_a_call_drops_its_work() {
    struct SetWhenDropped(Arc<AtomicBool>);
    impl Drop for SetWhenDropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&dropped);
    let turn = turn([entry(
        define("wait"),
        tool_fn(move |_: Value, _| {
            let guard = SetWhenDropped(Arc::clone(&flag));
            async move {
                std::future::pending::<()>().await;
                drop(guard);
                "never"
            }
        }),
    )]);
    let waiting = tokio::time::timeout(Duration::from_millis(20), call(&turn, "wait", json!({})));
    assert!(waiting.await.is_err());
    assert!(dropped.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn a_batch_answers_in_call_order_and_keeps_its_limit() {
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (now, peak) = (Arc::clone(&running), Arc::clone(&most));
    let sleep = entry(
        define("sleep").input_schema(json!({"properties": {"ms": {"type": "integer"}}})),
        tool_fn(move |args: Value, _| {
            let (now, peak) = (Arc::clone(&now), Arc::clone(&peak));
            async move {
                peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(args["ms"].as_u64().unwrap_or(0))).await;
                now.fetch_sub(1, Ordering::SeqCst);
                args["ms"].to_string()
            }
        }),
    );
    let executor = executor([sleep], ExecutorConfig::default());
    for (limit, expected) in [(1, 1), (3, 3), (0, 10)] {
        most.store(0, Ordering::SeqCst);
        let turn = executor.turn(TurnOptions::default().max_concurrency(limit));
        let calls: Vec<_> = (0..10)
            .map(|n| ToolCall::new(format!("call_{n}"), "sleep", json!({"ms": 100 - n * 10})))
            .collect();
        let answers = turn.call_batch(calls).await;
        let texts: Vec<_> = answers.iter().map(|answer| answer.text().into_owned()).collect();
        assert_eq!(texts, ["100", "90", "80", "70", "60", "50", "40", "30", "20", "10"]);
        assert!(
            answers.iter().enumerate().all(|(n, a)| a.call_id().as_str() == format!("call_{n}"))
        );
        assert_eq!(most.load(Ordering::SeqCst), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_batch_runs_beside_a_barrier() {
    let running = Arc::new(AtomicUsize::new(0));
    let tool = |name: &str, parallel: bool| {
        let running = Arc::clone(&running);
        entry(
            define(name).parallel(parallel),
            tool_fn(move |_: Value, _| {
                let running = Arc::clone(&running);
                async move {
                    let beside = running.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    beside.to_string()
                }
            }),
        )
    };
    let turn = turn([tool("free", true), tool("alone", false)]);
    let names = ["free", "free", "alone", "free", "alone"];
    let calls = names.iter().enumerate().map(|(n, name)| ToolCall::new(n.to_string(), *name, "{}"));
    let answers = turn.call_batch(calls.collect()).await;
    assert_eq!(answers[2].text(), "0");
    assert_eq!(answers[4].text(), "0");
    assert_eq!(answers[1].text(), "1");
}

#[tokio::test]
async fn injected_values_come_from_the_host_only() {
    let read = entry(
        define("read")
            .input_schema(json!({"properties": {"path": {}, "project_id": {}}, "additionalProperties": false}))
            .injections(vec![Injection::new("project_id", "project_id")]),
        tool_fn(|args: Value, cx: CallContext| async move {
            json!({"args": args, "project": cx.injected("project_id")})
        }),
    );
    let executor = executor([read], ExecutorConfig::default());
    let hostile = json!({"path": "a", "project_id": "other"});

    let missing = call(&executor.turn(TurnOptions::default()), "read", hostile.clone()).await;
    assert_eq!(missing.error_kind(), Some(ErrorKind::MissingContext));

    let values = ContextValues::new().with("project_id", "mine");
    let turn = executor.turn(TurnOptions::default().values(values));
    let result = call(&turn, "read", hostile).await;
    assert_eq!(result.data(), Some(&json!({"args": {"path": "a"}, "project": "mine"})));
}

#[tokio::test]
async fn data_is_held_against_the_output_schema() {
    let schema = json!({"type": "object", "properties": {"free": {"type": "integer"}}, "required": ["free"]});
    let with = |name: &str, output: ToolOutput| {
        entry(
            define(name).output_schema(schema.clone()),
            tool_fn(move |_: Value, _| std::future::ready(output.clone())),
        )
    };
    let turn = turn([
        with("right", json!({"free": 1}).into()),
        with("wrong", json!({"free": "much"}).into()),
        with("none", "text".into()),
    ]);
    assert!(call(&turn, "right", json!({})).await.is_success());
    let wrong = call(&turn, "wrong", json!({})).await;
    assert_eq!(wrong.error_kind(), Some(ErrorKind::InvalidOutput));
    assert!(wrong.text().contains("/free: expected an integer, got \"much\""), "{}", wrong.text());
    assert_eq!(call(&turn, "none", json!({})).await.error_kind(), Some(ErrorKind::InvalidOutput));
}

#[tokio::test]
async fn too_much_text_loses_its_middle_and_too_much_data_fails() {
    let mut config = ExecutorConfig::default();
    config.data_bytes = 100;
    let text = format!("{}{}{}", "a".repeat(20_000), "b".repeat(20_000), "c".repeat(20_000));
    let turn = executor(
        [
            says("long", text.clone()),
            says("huge", json!({"blob": "x".repeat(200)})),
            entry(
                define("picture"),
                tool_fn(|_: Value, _| async {
                    Content::Image { data: vec![0; 99], mime_type: "image/png".into() }
                }),
            ),
        ],
        config,
    )
    .turn(TurnOptions::default());
    let long = call(&turn, "long", json!({})).await;
    assert!(long.truncated());
    assert!(long.text().starts_with("aaaa") && long.text().ends_with("cccc"));
    assert!(long.text().contains("36000 of 60000 characters left out"), "states the sizes");
    assert_eq!(call(&turn, "huge", json!({})).await.error_kind(), Some(ErrorKind::InvalidOutput));
    assert!(call(&turn, "picture", json!({})).await.is_success());
}

#[tokio::test]
async fn a_schema_that_cannot_be_compiled_fails_its_own_calls_only() {
    let bad = json!({"properties": {"a": {"pattern": "("}}});
    let turn = turn([echo(define("bad").input_schema(bad)), says("fine", "ok")]);
    for _ in 0..2 {
        let result = call(&turn, "bad", json!({"a": "x"})).await;
        assert_eq!(result.error_kind(), Some(ErrorKind::Internal));
    }
    assert!(call(&turn, "fine", json!({})).await.is_success());
}

#[tokio::test]
async fn a_turn_keeps_its_snapshot_while_another_is_published() {
    let executor = executor([says("old", "old")], ExecutorConfig::default());
    let pinned = executor.turn(TurnOptions::default());
    let mut next = RegistryBuilder::new();
    assert_eq!(next.register(says("new", "new")), Registration::Registered);
    executor.registry().publish(next.build());

    assert_eq!(pinned.definitions()[0].name(), "old");
    assert_eq!(call(&pinned, "old", json!({})).await.text(), "old");
    let fresh = executor.turn(TurnOptions::default());
    assert_eq!(fresh.definitions()[0].name(), "new");
    assert!(fresh.generation() > pinned.generation());
    assert_eq!(call(&fresh, "old", json!({})).await.error_kind(), Some(ErrorKind::NotFound));
}

#[tokio::test]
async fn a_dry_run_shows_what_the_tool_would_get_and_runs_nothing() {
    let ran = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ran);
    let schema = json!({"properties": {"n": {"type": "integer", "default": 3}}, "additionalProperties": false});
    let turn = turn([entry(
        define("count").input_schema(schema),
        tool_fn(move |_: Value, _| {
            seen.store(true, Ordering::SeqCst);
            async { "ran" }
        }),
    )]);
    let dry = turn.dry_run(ToolCall::new("1", "count", "{}")).await.expect("passes");
    assert_eq!(
        (dry.arguments.value(), dry.context.definition().name()),
        (&json!({"n": 3}), "count")
    );
    let wrong = ToolCall::new("1", "count", r#"{"n": "x"}"#);
    let refused = turn.dry_run(wrong).await.expect_err("refused");
    assert_eq!(refused.kind(), ErrorKind::InvalidArgs);
    assert!(!ran.load(Ordering::SeqCst));
}

#[tokio::test]
async fn text_that_nearly_is_json_is_mended_and_the_result_says_so() {
    let schema = json!({"properties": {"path": {"type": "string"}}, "required": ["path"]});
    let writes = echo(define("writes").input_schema(schema.clone()));
    let reads = echo(define("reads").input_schema(schema).read_only(true));
    let turn = turn([writes, reads]);
    let mended = turn.call(ToolCall::new("1", "writes", "```json\n{\"path\": \"a\",}\n```")).await;
    assert_eq!(mended.data(), Some(&json!({"path": "a"})));
    let notes = &mended.output().expect("output").meta()["repaired"];
    assert_eq!(notes, &json!(["took off a code fence", "took out a trailing comma"]));

    let cut_off = r#"{"path": "src/ma"#;
    let refused = turn.call(ToolCall::new("2", "writes", cut_off)).await;
    assert_eq!(refused.error_kind(), Some(ErrorKind::InvalidJson));
    assert!(refused.text().contains("the arguments look cut off"), "{}", refused.text());
    assert!(turn.call(ToolCall::new("3", "reads", cut_off)).await.is_success());
}

#[tokio::test]
async fn a_value_of_the_wrong_type_is_coerced_where_the_schema_wants_it() {
    let schema = json!({
        "properties": {
            "flag": {"type": "boolean"},
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "name": {"type": "string"},
            "names": {"type": "array", "items": {"type": "integer"}},
            "filter": {"type": "object", "properties": {"deep": {"type": "boolean"}}},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
            "level": {"enum": [1, 2, "3"]},
            "unused": {"type": "string"},
        },
        "additionalProperties": false,
    });
    let turn = turn([echo(define("echo").input_schema(schema))]);
    for (given, expected) in [
        (
            json!({"flag": "true", "count": "5", "ratio": "0.5"}),
            json!({"flag": true, "count": 5, "ratio": 0.5}),
        ),
        (json!({"name": 12}), json!({"name": "12"})),
        (json!({"name": "true"}), json!({"name": "true"})),
        (json!({"names": "[1, \"2\"]"}), json!({"names": [1, 2]})),
        (json!({"names": 7}), json!({"names": [7]})),
        (json!({"filter": "{\"deep\": \"false\"}"}), json!({"filter": {"deep": false}})),
        (json!({"maybe": "4"}), json!({"maybe": 4})),
        (json!({"level": "2"}), json!({"level": 2})),
        (json!({"level": 3}), json!({"level": "3"})),
        (json!({"unused": null}), json!({})),
    ] {
        let result = call(&turn, "echo", given.clone()).await;
        assert_eq!(result.data(), Some(&expected), "{given}: {}", result.text());
    }
    // Some hosts encode arguments twice.
    let twice = turn.call(ToolCall::new("1", "echo", r#""{\"count\": 5}""#)).await;
    assert_eq!(twice.data(), Some(&json!({"count": 5})));
    let noted = call(&turn, "echo", json!({"flag": "true"})).await;
    assert_eq!(noted.output().expect("output").meta()["coerced"], json!(["/flag became boolean"]));
    for given in [
        json!({"flag": "yes"}),
        json!({"count": "5.5"}),
        json!({"count": true}),
        json!({"names": {"a": 1}}),
        json!({"flag": "true", "extra": 1}),
    ] {
        let result = call(&turn, "echo", given.clone()).await;
        assert_eq!(result.error_kind(), Some(ErrorKind::InvalidArgs), "{given}");
    }
}

/// A tool that calls another, or itself, as often as it is told.
fn caller(name: &'static str, inner: &'static str) -> ToolEntry {
    let definition = define(name)
        .input_schema(json!({"properties": {"depth": {"type": "integer"}}}))
        .max_concurrent(1)
        .timeout(Duration::from_secs(5));
    entry(
        definition,
        tool_fn(move |args: Value, cx: CallContext| async move {
            let depth = args["depth"].as_u64().unwrap_or_default();
            if depth == 0 {
                return Ok(format!("{name} at the bottom"));
            }
            let call = ToolCall::new("inner", inner, json!({"depth": depth - 1}));
            cx.call(call).await.into_result().map(|output| output.text().into_owned())
        }),
    )
}

#[tokio::test]
async fn nested_calls_share_the_slot_of_their_parent_and_cannot_deadlock() {
    let turn = turn([caller("meta", "meta"), caller("ping", "pong"), caller("pong", "ping")]);
    let three_deep = call(&turn, "meta", json!({"depth": 3})).await;
    assert_eq!(three_deep.text(), "meta at the bottom", "one slot serves the whole line");
    let to_and_fro = call(&turn, "ping", json!({"depth": 3})).await;
    assert_eq!(to_and_fro.text(), "pong at the bottom");
    let endless = call(&turn, "meta", json!({"depth": 100})).await;
    assert_eq!(endless.error_kind(), Some(ErrorKind::Denied), "{}", endless.text());
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_tool_with_one_slot_run_one_after_another_and_waiting_is_no_timeout() {
    let running = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&running);
    let single = entry(
        define("single").max_concurrent(1).timeout(Duration::from_secs(2)),
        tool_fn(move |_: Value, _| {
            let now = Arc::clone(&now);
            async move {
                let beside = now.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                beside.to_string()
            }
        }),
    );
    let executor = executor([single], ExecutorConfig::default());
    let turn = executor.turn(TurnOptions::default().max_concurrency(0));
    let calls = (0..5).map(|n| ToolCall::new(n.to_string(), "single", "{}")).collect();
    let answers = turn.call_batch(calls).await;
    assert!(answers.iter().all(|answer| answer.text() == "0"), "{answers:?}");
}

#[tokio::test]
async fn a_rate_limit_answers_with_when_to_try_again() {
    let limited = entry(
        define("limited").rate("2/min".parse().expect("a rate")),
        tool_fn(|_: Value, _| async { "ok" }),
    );
    let turn = turn([limited]);
    assert!(call(&turn, "limited", json!({})).await.is_success());
    assert!(call(&turn, "limited", json!({})).await.is_success());
    let refused = call(&turn, "limited", json!({})).await;
    assert_eq!(refused.error_kind(), Some(ErrorKind::RateLimited));
    assert!(refused.error().is_some_and(ToolError::retryable));
    assert!(refused.text().contains("again"), "{}", refused.text());
}

#[tokio::test(start_paused = true)]
async fn three_timeouts_pause_a_tool_for_one_identity_until_a_trial_succeeds() {
    let slow = Arc::new(AtomicBool::new(true));
    let is_slow = Arc::clone(&slow);
    let tool = entry(
        define("moody").timeout(Duration::from_secs(1)),
        tool_fn(move |_: Value, _| {
            let slow = is_slow.load(Ordering::SeqCst);
            async move {
                if slow {
                    tokio::time::sleep(Duration::from_secs(60)).await;
                }
                "done"
            }
        }),
    );
    let executor = executor([tool], ExecutorConfig::default());
    let of = |user: &str| {
        executor.turn(TurnOptions::default().values(ContextValues::new().with("user", user)))
    };
    for _ in 0..3 {
        let result = call(&of("ada"), "moody", json!({})).await;
        assert_eq!(result.error_kind(), Some(ErrorKind::Timeout));
    }
    assert_eq!(call(&of("ada"), "moody", json!({})).await.error_kind(), Some(ErrorKind::Paused));
    slow.store(false, Ordering::SeqCst);
    assert!(call(&of("bob"), "moody", json!({})).await.is_success(), "another identity");
    tokio::time::advance(Duration::from_secs(61)).await;
    assert!(call(&of("ada"), "moody", json!({})).await.is_success(), "the trial");
    assert!(call(&of("ada"), "moody", json!({})).await.is_success(), "closed again");
}

#[tokio::test]
async fn statistics_count_what_became_of_calls() {
    let schema = json!({"properties": {"n": {"type": "integer"}}, "additionalProperties": false});
    let executor = executor(
        [
            echo(define("echo").input_schema(schema)),
            entry(
                define("fails"),
                tool_fn(|_: Value, _| async { Err::<String, _>(ToolError::execution("no")) }),
            ),
        ],
        ExecutorConfig::default(),
    );
    let turn = executor.turn(TurnOptions::default());
    for arguments in [json!({"n": 1}), json!({"n": 2}), json!({"m": 1})] {
        call(&turn, "echo", arguments).await;
    }
    call(&turn, "fails", json!({})).await;
    call(&turn, "made_up_1", json!({})).await;
    call(&turn, "made_up_2", json!({})).await;
    let statistics = serde_json::to_value(executor.statistics().snapshot()).expect("JSON");
    let of = |name: &str| {
        let all = statistics.as_array().expect("a list");
        all.iter()
            .find(|one| one["tool"] == name)
            .cloned()
            .unwrap_or_else(|| panic!("{statistics}"))
    };
    assert_eq!(
        (&of("echo")["successes"], &of("echo")["errors_by_kind"]),
        (&json!(2), &json!({"invalid_args": 1}))
    );
    assert_eq!(of("fails")["errors_by_kind"], json!({"execution": 1}));
    assert_eq!(of("(unknown)")["refused"], json!(2));
    assert_eq!(of("echo")["in_flight"], json!(0));
}

/// A tool that counts how often it runs, and says so.
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
    let executor = executor([tool], ExecutorConfig::default());
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
    let executor = executor([tool], ExecutorConfig::default());
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

/// A tool that counts its calls and says what each would do.
struct Planned(Arc<AtomicBool>);

impl Tool for Planned {
    fn call<'a>(
        &'a self,
        _: Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        self.0.store(true, Ordering::SeqCst);
        Box::pin(async { Ok("done".into()) })
    }

    fn validate<'a>(
        &'a self,
        arguments: &'a Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        let fits = arguments.value()["user"] != "nobody";
        let refused = || ToolError::new(ErrorKind::Constraint, "nobody cannot log in");
        Box::pin(std::future::ready(fits.then_some(()).ok_or_else(refused)))
    }

    fn plan(&self, arguments: &Arguments, _: &CallContext) -> Result<Option<Plan>, ToolError> {
        let text = |name: &str| arguments.value()[name].as_str().unwrap_or_default().to_owned();
        let argv =
            vec!["login".to_owned(), text("user"), format!("--password={}", text("password"))];
        Ok(Some(Plan::Command(CommandPlan { argv, ..CommandPlan::default() })))
    }
}

#[tokio::test]
async fn a_dry_run_says_what_policy_would_whether_an_answer_is_there_and_what_the_tool_would_do() {
    let ran = Arc::new(AtomicBool::new(false));
    let schema = json!({"properties": {
        "user": {"type": "string"},
        "password": {"type": "string", "writeOnly": true},
    }});
    let definition = define("login")
        .input_schema(schema)
        .annotations(Annotations { read_only: true, idempotent: true, ..Annotations::default() })
        .cache(CachePolicy::new());
    let login_entry = entry(definition, Planned(Arc::clone(&ran)));
    let executor = executor([login_entry], ExecutorConfig::default());
    let turn = executor.turn(TurnOptions::default());
    let login = |user: &str| {
        ToolCall::new("1", "login", json!({"user": user, "password": "hunter22"}).to_string())
    };

    let dry = turn.dry_run(login("ada")).await.expect("passes");
    assert!(matches!(dry.verdict, Verdict::Allow { by: DecidedBy::Definition }));
    let answer = dry.answer.expect("it is cached");
    assert!(!answer.is_there);
    let shown = dry.to_value();
    assert_eq!(shown["plan"]["argv"], json!(["login", "ada", "--password=[redacted]"]));
    assert_eq!(shown["arguments"]["password"], "[redacted]");
    let Some(Plan::Command(plan)) = &dry.plan else { panic!("a command") };
    assert_eq!(plan.argv[2], "--password=hunter22", "the host itself has all of it");
    assert!(!ran.load(Ordering::SeqCst));

    let refused = turn.dry_run(login("nobody")).await.expect_err("its own check");
    assert_eq!(refused.kind(), ErrorKind::Constraint);

    assert!(turn.call(login("ada")).await.is_success());
    let again = turn.dry_run(login("ada")).await.expect("passes").answer.expect("it is cached");
    assert!(again.is_there);
    assert_eq!(again.key, answer.key);
    let other = turn.dry_run(login("eve")).await.expect("passes").answer.expect("it is cached");
    assert!(!other.is_there && other.key != answer.key);
    assert_eq!(executor.cache_stats().hits, 0, "looking is no use of an answer");
}
