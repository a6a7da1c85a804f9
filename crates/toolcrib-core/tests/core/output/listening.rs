//! The events of a batch while it runs.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_core::events::{
    ChannelOptions, Event, EventBus, EventReader, Listeners, OutputChannel, Payload,
};
use toolcrib_core::masking::Mask;
use toolcrib_core::suspension::MemorySuspensions;
use toolcrib_core::{Executor, TurnOptions};
use toolcrib_tool::{
    Approval, CallContext, Content, ErrorKind, Phase, StatusUpdate, ToolCall, ToolError, tool_fn,
};

use crate::harness::{define, entry, registry};

/// Emits its id after `after` milliseconds, twice, and ends.
fn talkative() -> impl toolcrib_tool::Tool {
    tool_fn(|args: Value, cx: CallContext| async move {
        let after = args["after"].as_u64().unwrap_or(0);
        tokio::time::sleep(Duration::from_millis(after)).await;
        cx.status(StatusUpdate::doing().with_tip("speaking"));
        cx.stream("one ").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        cx.stream("two").await;
        "done"
    })
}

async fn all(mut reader: EventReader) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = reader.next().await {
        events.push(event);
    }
    events
}

fn names(events: &[Event]) -> Vec<String> {
    let name = |event: &Event| {
        format!("{} {}", event.call_id().map_or("-", |id| id.as_str()), event.name())
    };
    events.iter().map(name).collect()
}

/// Runs a batch with one channel.
async fn presented(executor: &Executor, calls: Vec<ToolCall>) -> Vec<Event> {
    let (channel, reader) = OutputChannel::new(&ChannelOptions::default());
    let listeners = Listeners::new().with_channel(channel);
    let batch = async {
        let turn = executor.turn(TurnOptions::default().listeners(listeners));
        turn.call_batch(calls).await
    };
    tokio::join!(batch, all(reader)).1
}

#[tokio::test(start_paused = true)]
async fn calls_run_at_once_and_are_presented_whole_by_their_first_word() {
    let executor =
        Executor::builder(registry([entry(define("talk").input_schema(json!({})), talkative())]))
            .build();
    let call = |id: &str, after: u64| ToolCall::new(id, "talk", json!({"after": after}));
    let calls = vec![call("late", 30), call("early", 10), call("middle", 20)];
    let events = presented(&executor, calls).await;
    let whole = |id: &str| {
        ["prepare", "status", "output", "output", "status", "completed"]
            .map(|stage| format!("{id} call.{stage}"))
    };
    let expected = [whole("early"), whole("middle"), whole("late")].concat();
    assert_eq!(names(&events), expected);
    let numbers: Vec<_> = events.iter().map(Event::sequence).collect();
    assert_eq!(numbers, (1..=18).collect::<Vec<_>>());
    let Payload::Prepare { arguments } = events[0].payload() else { panic!("{:?}", events[0]) };
    assert_eq!(arguments, &Some(json!({"after": 10})));
}

#[tokio::test(start_paused = true)]
async fn a_hidden_tool_is_heard_by_the_model_only() {
    let executor = Executor::builder(registry([
        entry(define("talk").input_schema(json!({})), talkative()),
        entry(define("whisper").hidden(true), talkative()),
    ]))
    .build();
    let calls = vec![ToolCall::new("h", "whisper", "{}"), ToolCall::new("t", "talk", "{}")];
    let events = presented(&executor, calls).await;
    assert!(events.iter().all(|event| event.call_id().is_some_and(|id| id.as_str() == "t")));
    assert_eq!(events.len(), 6);
}

#[tokio::test]
async fn the_result_has_the_last_word_over_what_a_tool_said_of_itself() {
    let boasting = tool_fn(|_: Value, cx: CallContext| async move {
        cx.status(StatusUpdate::success().with_tip("all fine"));
        Err::<String, _>(ToolError::execution("it broke"))
    });
    let executor = Executor::builder(registry([entry(define("boast"), boasting)])).build();
    let events = presented(&executor, vec![ToolCall::new("1", "boast", "{}")]).await;
    assert_eq!(names(&events), ["1 call.prepare", "1 call.status", "1 call.completed"]);
    let Payload::Status(last) = events[1].payload() else { panic!("{:?}", events[1]) };
    assert_eq!((last.phase, last.error.as_deref()), (Phase::Error, Some("it broke")));
}

#[tokio::test]
async fn a_secret_split_over_streamed_parts_and_status_is_never_shown() {
    let leaking = tool_fn(|_: Value, cx: CallContext| async move {
        cx.status(StatusUpdate::doing().with_tip("using hunter22"));
        for part in ["the password is hun", "ter", "22", ", hunte"] {
            cx.stream(part).await;
        }
        "hunter22 worked"
    });
    let mask = Mask::new(["hunter22".to_owned()]).expect("a mask");
    let executor = Executor::builder(registry([entry(define("leak"), leaking)])).mask(mask).build();
    let events = presented(&executor, vec![ToolCall::new("1", "leak", "{}")]).await;
    let heard: String = events
        .iter()
        .filter_map(|event| match event.payload() {
            Payload::Output(Content::Text(text)) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(heard, "the password is [masked], hunte");
    assert!(events.iter().all(|event| !event.to_value().to_string().contains("hunter22")));
    let result = executor.turn(TurnOptions::default()).call(ToolCall::new("1", "leak", "{}")).await;
    assert_eq!(result.text(), "[masked] worked");
}

#[tokio::test(start_paused = true)]
async fn the_bus_tells_of_a_pause_once_and_of_calls_that_wait() {
    let hanging = tool_fn(|_: Value, _| async {
        std::future::pending::<()>().await;
        "never"
    });
    let asking = tool_fn(|_: Value, _| async { "asked" });
    let bus = EventBus::new(64);
    let mut watcher = bus.subscribe();
    let executor = Executor::builder(registry([
        entry(define("hang").timeout(Duration::from_millis(10)), hanging),
        entry(define("ask").approval(Approval::Always), asking),
    ]))
    .suspensions(Arc::new(MemorySuspensions::new()))
    .events(bus)
    .build();
    let turn = executor.turn(TurnOptions::default());
    for number in 0..4 {
        turn.call(ToolCall::new(number.to_string(), "hang", "{}")).await;
    }
    let paused = turn.call(ToolCall::new("4", "hang", "{}")).await;
    assert_eq!(paused.error_kind(), Some(ErrorKind::Paused));
    turn.call(ToolCall::new("5", "ask", "{}")).await;
    drop((turn, executor));

    let mut heard = Vec::new();
    while let Some(event) = watcher.next().await {
        heard.push(event);
    }
    let times = heard.iter().filter(|event| event.name() == "task.paused").count();
    assert_eq!(times, 1);
    let heard = names(&heard);
    assert!(heard.contains(&"5 call.suspended".to_owned()), "{heard:?}");
    assert!(!heard.contains(&"5 call.completed".to_owned()), "{heard:?}");
}

#[tokio::test]
async fn a_dropped_call_is_published_as_cancelled() {
    let bus = EventBus::new(64);
    let mut watcher = bus.subscribe();
    let hanging = tool_fn(|_: Value, _| async {
        std::future::pending::<()>().await;
        "never"
    });
    let executor =
        Executor::builder(registry([entry(define("hang"), hanging)])).events(bus).build();
    let turn = executor.turn(TurnOptions::default());
    let call = turn.call(ToolCall::new("1", "hang", "{}"));
    assert!(tokio::time::timeout(Duration::from_millis(20), call).await.is_err());
    let mut last = None;
    while last.as_ref().is_none_or(|event: &Event| event.name() != "call.completed") {
        last = watcher.next().await;
    }
    let Some(Payload::Completed(completion)) = last.as_ref().map(Event::payload) else {
        panic!("{last:?}")
    };
    assert_eq!(completion.error, Some(ErrorKind::Cancelled));
}
