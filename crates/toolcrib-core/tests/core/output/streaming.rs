//! The stream of one call: its events, then its answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use toolcrib_core::events::{EventBus, Payload};
use toolcrib_core::suspension::MemorySuspensions;
use toolcrib_core::{Answer, AnswerStream, Executor, StreamItem, Turn, TurnOptions};
use toolcrib_tool::{
    Approval, CallContext, ErrorKind, NoArguments, ToolCall, ToolEntry, ToolResult, tool_fn,
};

use crate::harness::{define, entry, registry, turn};

fn talks(name: &str) -> ToolEntry {
    let body = |_: NoArguments, cx: CallContext| async move {
        for part in ["one ", "two "] {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cx.stream(part).await;
        }
        "done"
    };
    ToolEntry::from_fn(name, "Talk.", body).expect("it is right")
}

fn made(name: &str) -> ToolCall {
    ToolCall::new("call_1", name, "{}")
}

/// The names of the events, followed by the answers.
async fn read(stream: AnswerStream) -> (Vec<&'static str>, Vec<Answer>) {
    let (mut events, mut answers) = (Vec::new(), Vec::new());
    let mut items = stream;
    while let Some(item) = StreamExt::next(&mut items).await {
        match item {
            StreamItem::Event(event) => {
                assert!(answers.is_empty(), "nothing comes behind the answer");
                events.push(event.name());
            }
            StreamItem::Answer(answer) => answers.push(answer),
        }
    }
    assert!(items.next().await.is_none(), "it stays over");
    (events, answers)
}

async fn result(stream: AnswerStream) -> (Vec<&'static str>, ToolResult) {
    let (events, mut answers) = read(stream).await;
    match (answers.pop(), answers.pop()) {
        (Some(Answer::Done(result)), None) => (events, result),
        other => panic!("one answer, and it is final: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_yields_what_the_call_says_and_then_its_answer_once_though_the_turn_lives_on() {
    let turn = turn([talks("talk")]);
    for _ in 0..2 {
        let (events, result) = result(turn.stream(made("talk"))).await;
        assert_eq!(result.text(), "done");
        assert_eq!(events.first(), Some(&"call.prepare"));
        assert_eq!(events.iter().filter(|name| **name == "call.output").count(), 2);
    }
    assert!(turn.call(made("talk")).await.is_success());
}

#[tokio::test(start_paused = true)]
async fn dropping_a_stream_ends_the_work_of_its_call_and_no_other() {
    struct Ended(Arc<AtomicBool>);
    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let ended = Arc::new(AtomicBool::new(false));
    let tell = Arc::clone(&ended);
    let endless = tool_fn(move |_: Value, cx: CallContext| {
        let guard = Ended(Arc::clone(&tell));
        async move {
            cx.stream("begun").await;
            std::future::pending::<()>().await;
            drop(guard);
            "never"
        }
    });
    let turn = turn([entry(define("endless"), endless), talks("talk")]);
    let mut stream = turn.stream(made("endless"));
    let other = turn.stream(made("talk"));
    while let Some(StreamItem::Event(event)) = stream.next().await {
        if event.name() == "call.output" {
            break;
        }
    }
    assert!(!ended.load(Ordering::SeqCst));
    drop(stream);
    assert!(ended.load(Ordering::SeqCst));
    assert!(result(other).await.1.is_success());
}

#[tokio::test(start_paused = true)]
async fn cancelling_the_turn_answers_its_streams() {
    let turn = turn([talks("talk")]);
    let stream = turn.stream(made("talk"));
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        turn.cancel();
    };
    let ((_, result), ()) = tokio::join!(result(stream), cancel);
    assert_eq!(result.error_kind(), Some(ErrorKind::Cancelled));
}

#[tokio::test]
async fn a_call_that_is_refused_is_answered_on_its_stream() {
    let turn = turn([talks("talk")]);
    let (_, unknown) = result(turn.stream(made("tlak"))).await;
    assert_eq!(unknown.error_kind(), Some(ErrorKind::NotFound));
    let (_, misfit) = result(turn.stream(ToolCall::new("1", "talk", json!({"a": 1})))).await;
    assert_eq!(misfit.error_kind(), Some(ErrorKind::InvalidArgs));
}

#[tokio::test(start_paused = true)]
async fn a_hidden_tool_says_nothing_on_its_stream_and_is_answered() {
    let hidden = ToolEntry::from_fn_with(
        "hidden",
        "Talk unheard.",
        |definition| definition.hidden(true),
        |_: NoArguments, cx: CallContext| async move {
            cx.stream("unheard").await;
            "done"
        },
    );
    let (events, result) =
        result(turn([hidden.expect("it is right")]).stream(made("hidden"))).await;
    assert!(events.is_empty(), "{events:?}");
    assert_eq!(result.text(), "done");
}

#[tokio::test(start_paused = true)]
async fn the_executors_bus_hears_a_streamed_call_too() {
    let bus = EventBus::new(16);
    let executor = Executor::builder(registry([talks("talk")])).events(bus.clone()).build();
    let mut heard = bus.subscribe();
    result(executor.turn(TurnOptions::default()).stream(made("talk"))).await;
    let first = heard.next().await.expect("it was told");
    assert!(matches!(first.payload(), Payload::Prepare { .. }), "{first:?}");
}

fn with_store(entries: Vec<ToolEntry>) -> Turn {
    let store = Arc::new(MemorySuspensions::new());
    Executor::builder(registry(entries)).suspensions(store).build().turn(TurnOptions::default())
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_a_call_that_waits_ends_with_the_suspension_also_where_a_call_within_waits() {
    let remove =
        || entry(define("remove").approval(Approval::Always), tool_fn(|_: Value, _| async { "" }));
    let cleans =
        ToolEntry::from_fn("clean", "Clean.", |_: NoArguments, cx: CallContext| async move {
            cx.stream("cleaning").await;
            cx.call(ToolCall::new("n", "remove", "{}")).await.into_result()
        });
    let turn = with_store(vec![remove(), cleans.expect("it is right")]);
    for tool in ["remove", "clean"] {
        let (_, answers) = read(turn.stream(made(tool))).await;
        assert!(matches!(answers.as_slice(), [Answer::Suspended(_)]), "{tool}: {answers:?}");
    }
}
