//! Stand-ins for tools: mocks, and recordings of answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use toolcrib_core::{
    Executor, ExecutorConfig, Mock, Registry, RegistryBuilder, Scratch, Turn, TurnOptions,
};
use toolcrib_testkit::recording::{Recorder, Recording, Replay};
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, ErrorKind, Layer, Source, Tool, ToolCall, ToolDefinition,
    ToolEntry, ToolError, ToolOutcome, ToolOutput,
};

fn definition(name: &str) -> ToolDefinition {
    ToolDefinition::builder(name)
        .description("A tool for a test.")
        .input_schema(json!({"additionalProperties": true}))
        .build()
        .expect("valid")
}

fn turn(registry: Registry) -> Turn {
    Executor::new(registry, ExecutorConfig::default()).turn(TurnOptions::default())
}

/// Counts its real runs.
#[derive(Default)]
struct Real {
    ran: AtomicUsize,
}

impl Tool for Real {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        let run = self.ran.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            if arguments.value()["fail"] == true {
                return Err(ToolError::execution("it broke")
                    .with_hint("mend it")
                    .with_partial("half"));
            }
            Ok(ToolOutput::from(format!("run {run}")).with_data(json!({"run": run})).into())
        })
    }

    fn validate<'a>(
        &'a self,
        arguments: &'a Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            if arguments.value()["odd"] == true {
                return Err(ToolError::new(ErrorKind::Constraint, "odd is not allowed"));
            }
            Ok(())
        })
    }
}

fn real() -> (Arc<Real>, Registry) {
    let real = Arc::new(Real::default());
    let source = Source::new(Layer::Host, "app");
    let mut builder = RegistryBuilder::new();
    let _ = builder.register(ToolEntry::new(definition("real"), Arc::clone(&real) as _, source));
    (real, Registry::new(builder.build()))
}

#[tokio::test]
async fn a_mock_answers_in_order_and_the_last_answer_stays() {
    let mock = Mock::tool(definition("mock"))
        .answers("one")
        .fails(ErrorKind::RateLimited, "later")
        .answers_with(|args| json!({"got": args}));
    let turn = turn(Scratch::default().mock(&mock).build().expect("built"));
    let mut results = Vec::new();
    for number in 0..4 {
        let arguments = json!({"n": number}).to_string();
        results.push(turn.call(ToolCall::new(number.to_string(), "mock", arguments)).await);
    }
    assert_eq!(results[0].text(), "one");
    assert_eq!(results[1].error().map(ToolError::kind), Some(ErrorKind::RateLimited));
    assert_eq!(results[2].data(), Some(&json!({"got": {"n": 2}})));
    assert_eq!(results[3].data(), Some(&json!({"got": {"n": 3}})));
    let calls = mock.calls();
    assert_eq!(calls.len(), 4);
    assert_eq!((calls[3].call_id.as_str(), &calls[3].arguments), ("3", &json!({"n": 3})));
}

#[tokio::test]
async fn a_mock_that_was_told_nothing_says_so() {
    let turn =
        turn(Scratch::default().mock(&Mock::tool(definition("mute"))).build().expect("built"));
    let result = turn.call(ToolCall::new("1", "mute", "{}")).await;
    assert_eq!(result.error().map(ToolError::kind), Some(ErrorKind::Unavailable));
    assert!(result.text().contains("has no answer"), "{}", result.text());
}

#[tokio::test]
async fn a_mock_in_a_copy_never_reaches_the_original() {
    let (real, live) = real();
    let mock = Mock::of(&live.snapshot().get("real").expect("there").definition).answers("mocked");
    let copy = live.snapshot().scratch().mock(&mock).tool("more", |_, _| async { "more" });
    let copy = turn(copy.build().expect("built"));
    assert_eq!(copy.call(ToolCall::new("1", "real", "{}")).await.text(), "mocked");
    assert_eq!(copy.call(ToolCall::new("2", "more", "{}")).await.text(), "more");
    assert_eq!(real.ran.load(Ordering::Relaxed), 0);
    assert_eq!(live.snapshot().entries().len(), 1);
    assert_eq!(turn(live).call(ToolCall::new("1", "real", "{}")).await.text(), "run 0");
}

#[test]
fn a_scratch_tool_of_an_impossible_name_fails_the_build() {
    let error = Registry::scratch().tool("no name", |_, _| async { "" }).build().expect_err("name");
    assert!(error.to_string().contains("no name"), "{error}");
}

#[tokio::test]
async fn a_replay_answers_as_the_tools_did_and_runs_none() {
    let (real, live) = real();
    let recorder = Recorder::new();
    let real_turn = turn(Registry::new(recorder.wrap(&live.snapshot())));
    let calls = [r#"{"b":1,"a":2}"#, r#"{"a":2,"b":1}"#, r#"{"fail":true}"#, r#"{"odd":true}"#];
    let mut originals = Vec::new();
    for arguments in calls {
        originals.push(real_turn.call(ToolCall::new("1", "real", arguments)).await);
    }
    assert_eq!(real.ran.load(Ordering::Relaxed), 3, "the odd one was refused");

    let text = recorder.recording().to_jsonl();
    let recording = Recording::from_jsonl(&text).expect("what was written is read");
    assert_eq!(recording.to_jsonl(), text);
    assert_eq!(recording.calls().len(), 4);
    let replay = Replay::new(recording);
    let replayed = turn(Registry::new(replay.wrap(&live.snapshot())));
    for (arguments, original) in calls.into_iter().zip(&originals) {
        let again = replayed.call(ToolCall::new("1", "real", arguments)).await;
        assert_eq!(again.text(), original.text());
        assert_eq!(again.data(), original.data());
        assert_eq!(again.error().map(ToolError::kind), original.error().map(ToolError::kind));
        assert_eq!(again.error().map(ToolError::hints), original.error().map(ToolError::hints));
    }
    assert_eq!(real.ran.load(Ordering::Relaxed), 3);
    assert!(replay.unused().is_empty());

    let missing = replayed.call(ToolCall::new("1", "real", r#"{"z":0}"#)).await;
    assert_eq!(missing.error().map(ToolError::kind), Some(ErrorKind::Unavailable));
    assert!(
        missing.text().contains(r#"no further call of `real` with {"z":0}"#),
        "{}",
        missing.text()
    );
}

#[test]
fn a_line_that_is_no_call_is_named() {
    let line = r#"{"arguments":{},"outcome":{"pending":{"ticket":"7"}},"tool":"t"}"#;
    let text = format!("{line}\n\n{}\n", line.replace("pending", "odd"));
    let error = Recording::from_jsonl(&text).expect_err("an unknown outcome");
    assert!(error.to_string().starts_with("line 3 of the recording"), "{error}");
    let replay = Replay::new(Recording::from_jsonl(line).expect("a call"));
    assert_eq!(replay.unused(), [("t".to_owned(), "{}".to_owned(), 1)]);
}

#[test]
fn a_recording_of_a_newer_form_is_refused() {
    let line = r#"{"arguments":{},"form":1,"outcome":{"pending":{"ticket":"7"}},"tool":"t"}"#;
    let known = Recording::from_jsonl(line).expect("a call");
    assert_eq!(known, Recording::from_jsonl(&line.replace(r#""form":1,"#, "")).expect("form 1"));
    assert_eq!(known.to_jsonl().trim_end(), line);
    let newer = line.replace(r#""form":1"#, r#""form":2,"signed":true"#);
    let refused = Recording::from_jsonl(&newer).expect_err("it is newer").to_string();
    assert!(refused.contains("a newer toolcrib wrote it (form 2"), "{refused}");
}
