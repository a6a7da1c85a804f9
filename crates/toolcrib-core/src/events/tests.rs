//! Which listener gets which events of a call.

use std::time::Duration;

use futures_util::FutureExt;
use serde_json::json;
use toolcrib_tool::{
    CallId, Content, Phase, StatusUpdate, ToolDefinition, ToolDefinitionBuilder, ToolError,
    ToolOutput, ToolResult,
};

use super::*;

fn tool() -> ToolDefinitionBuilder {
    ToolDefinition::builder("demo").description("A demo.")
}

fn success(id: &str) -> ToolResult {
    ToolResult::success(CallId::new(id), "demo", ToolOutput::from("done"), Duration::ZERO)
}

fn failure(id: &str) -> ToolResult {
    let error = ToolError::execution("disk full");
    ToolResult::failure(CallId::new(id), "demo", error, Duration::ZERO)
}

/// One word per event: the call and what happened.
fn shown(event: &Event) -> String {
    let what = match event.payload() {
        Payload::Status(status) => status.phase.as_str().to_owned(),
        Payload::Output(part) => part.as_text().into_owned(),
        Payload::Completed(completion) => match completion.error {
            None => "completed".to_owned(),
            Some(kind) => kind.to_string(),
        },
        _ => event.name().to_owned(),
    };
    format!("{} {what}", event.call_id().map_or("-", CallId::as_str))
}

fn watched(subscription: &mut Subscription) -> Vec<String> {
    std::iter::from_fn(|| subscription.next().now_or_never().flatten())
        .map(|event| shown(&event))
        .collect()
}

fn read(reader: &mut EventReader) -> Vec<String> {
    let mut sequence = None;
    std::iter::from_fn(|| reader.next().now_or_never().flatten())
        .map(|event| {
            assert!(sequence.is_none_or(|before| event.sequence() == before + 1));
            sequence = Some(event.sequence());
            shown(&event)
        })
        .collect()
}

/// One of each, and who reads them.
fn all() -> (Listeners, Subscription, EventReader, EventReader) {
    let bus = EventBus::new(64);
    let watcher = bus.subscribe();
    let (channel, presented) = OutputChannel::new(&ChannelOptions::default());
    let (stream, streamed) = CallStream::new(&ChannelOptions::default());
    let listeners = Listeners::new().with_bus(bus).with_channel(channel).with_stream(stream);
    (listeners, watcher, presented, streamed)
}

#[tokio::test]
async fn everybody_hears_a_call_in_its_own_order() {
    let (listeners, mut watcher, mut presented, mut streamed) = all();
    let emitter = listeners.emitter(0, &CallId::new("c"), &tool().build().unwrap());
    emitter.prepare(Some(json!({"path": "/"})));
    let handle = emitter.handle();
    handle.status(StatusUpdate::doing());
    handle.stream(Content::text("part")).await;
    handle.status(StatusUpdate::success());
    handle.stream(Content::text("more")).await;
    emitter.record(&success("c"));
    handle.status(StatusUpdate::doing());
    handle.stream(Content::text("late")).await;
    drop(emitter);
    let expected = ["c call.prepare", "c DOING", "c part", "c more", "c SUCCESS", "c completed"];
    assert_eq!(watched(&mut watcher), expected);
    assert_eq!(read(&mut presented), expected);
    assert_eq!(read(&mut streamed), expected);
}

#[tokio::test]
async fn a_tool_that_says_success_and_fails_is_published_as_failed() {
    let (listeners, mut watcher, ..) = all();
    let emitter = listeners.emitter(0, &CallId::new("c"), &tool().build().unwrap());
    emitter.handle().status(StatusUpdate::success().with_result("all well").with_param("n", 1));
    assert_eq!(watched(&mut watcher), Vec::<String>::new());
    emitter.record(&failure("c"));
    let event = watcher.next().await.unwrap();
    let Payload::Status(status) = event.payload() else { panic!("{event:?}") };
    assert_eq!((status.phase, status.error.as_deref()), (Phase::Error, Some("disk full")));
    assert_eq!((&status.result, status.params.len()), (&None, 1));
    assert_eq!(watched(&mut watcher), ["c execution"]);
}

#[tokio::test]
async fn a_call_that_is_dropped_says_that_it_was_cancelled() {
    let (listeners, _, mut presented, _) = all();
    let definition = tool().build().unwrap();
    let first = listeners.emitter(0, &CallId::new("a"), &definition);
    let second = listeners.emitter(1, &CallId::new("b"), &definition);
    first.handle().status(StatusUpdate::doing());
    second.handle().status(StatusUpdate::doing());
    // A thread that could not be stopped keeps its handle; the floor is released all the same.
    let left_behind = first.handle();
    drop(first);
    second.record(&success("b"));
    left_behind.status(StatusUpdate::doing());
    assert_eq!(
        read(&mut presented),
        ["a DOING", "a ERROR", "a cancelled", "b DOING", "b SUCCESS", "b completed"]
    );
}

#[tokio::test]
async fn a_suspended_call_releases_the_floor_and_is_not_over() {
    let (listeners, _, mut presented, _) = all();
    let definition = tool().build().unwrap();
    let first = listeners.emitter(0, &CallId::new("a"), &definition);
    let second = listeners.emitter(1, &CallId::new("b"), &definition);
    first.prepare(None);
    first.suspend("approval");
    drop(first);
    second.record(&failure("b"));
    assert_eq!(read(&mut presented), ["a call.prepare", "a call.suspended", "b execution"]);
}

#[tokio::test]
async fn hidden_tools_are_presented_nowhere() {
    let (listeners, mut watcher, mut presented, mut streamed) = all();
    let emitter = listeners.emitter(0, &CallId::new("h"), &tool().hidden(true).build().unwrap());
    emitter.prepare(None);
    emitter.handle().status(StatusUpdate::doing());
    emitter.handle().stream(Content::text("secret")).await;
    let seen = listeners.emitter(1, &CallId::new("s"), &tool().build().unwrap());
    seen.handle().stream(Content::text("open")).await;
    emitter.record(&success("h"));
    seen.record(&success("s"));
    assert_eq!(read(&mut presented), ["s open", "s completed"]);
    assert_eq!(read(&mut streamed), ["s open", "s completed"]);
    assert_eq!(watched(&mut watcher), ["h call.prepare", "s open", "h completed", "s completed"]);
}

#[tokio::test]
async fn a_channel_without_a_reader_lets_in_only_final_tools() {
    let (channel, reader) = OutputChannel::new(&ChannelOptions::default());
    let listeners = Listeners::new().with_channel(channel.clone());
    let begun = listeners.emitter(0, &CallId::new("begun"), &tool().build().unwrap());
    drop(reader);
    let usual = listeners.emitter(1, &CallId::new("usual"), &tool().build().unwrap());
    let last = tool().final_output(true).build().unwrap();
    let last = listeners.emitter(2, &CallId::new("final"), &last);
    for emitter in [&begun, &usual, &last] {
        emitter.handle().stream(Content::text("word")).await;
        emitter.record(&success("any"));
    }
    let mut rest = channel.attach().unwrap();
    let first = rest.next().await.unwrap();
    assert_eq!((shown(&first).as_str(), first.final_output()), ("begun word", false));
    assert_eq!(shown(&rest.next().await.unwrap()), "begun completed");
    let event = rest.next().await.unwrap();
    assert_eq!((shown(&event).as_str(), event.final_output()), ("final word", true));
    assert_eq!(read(&mut rest), ["final completed"]);
}

#[test]
fn nobody_listens_where_nobody_was_asked_to() {
    assert!(Listeners::new().is_silent());
    let bus = EventBus::new(4);
    let listeners = Listeners::new().with_bus(bus.clone());
    assert!(listeners.is_silent());
    let subscription = bus.subscribe();
    assert!(!listeners.is_silent());
    drop(subscription);
    assert!(listeners.is_silent());
    assert!(!all().0.is_silent());
}

#[test]
fn voices_may_be_used_from_any_thread() {
    fn assert_send_and_sync<T: Send + Sync>() {}
    assert_send_and_sync::<EventEmitter>();
    assert_send_and_sync::<EmitterHandle>();
    assert_send_and_sync::<Listeners>();
    assert_send_and_sync::<EventReader>();
    assert_send_and_sync::<Subscription>();
}

/// All calls of a batch through their emitters, in every order, one of them hidden.
#[test]
fn whatever_the_order_a_batch_is_presented_as_whole_calls() {
    fn go(done: [usize; 3], order: &mut Vec<usize>, each: &mut dyn FnMut(&[usize])) {
        if done == [3; 3] {
            return each(order);
        }
        for call in 0..3 {
            if done[call] < 3 {
                let mut done = done;
                done[call] += 1;
                order.push(call);
                go(done, order, each);
                order.pop();
            }
        }
    }
    let definitions = [
        tool().build().unwrap(),
        tool().hidden(true).build().unwrap(),
        tool().final_output(true).build().unwrap(),
    ];
    let mut orders = 0;
    go([0; 3], &mut Vec::new(), &mut |order| {
        orders += 1;
        let (channel, mut reader) = OutputChannel::new(&ChannelOptions::default());
        let listeners = Listeners::new().with_channel(channel);
        let emitter = |call: usize| {
            listeners.emitter(call, &CallId::new(call.to_string()), &definitions[call])
        };
        let emitters = [emitter(0), emitter(1), emitter(2)];
        let mut done = [0; 3];
        let mut presented = Vec::new();
        for &call in order {
            match done[call] {
                0 => emitters[call].prepare(None),
                1 => emitters[call].handle().status(StatusUpdate::doing()),
                _ => emitters[call].record(&success("any")),
            }
            done[call] += 1;
            presented.extend(read(&mut reader));
        }
        let word = |call| order.iter().enumerate().filter(|(_, at)| **at == call).nth(1).unwrap().0;
        let calls = if word(0) < word(2) { [0, 2] } else { [2, 0] };
        let whole = |call| {
            ["call.prepare", "DOING", "SUCCESS", "completed"].map(|what| format!("{call} {what}"))
        };
        assert_eq!(presented, calls.map(whole).concat(), "{order:?}");
    });
    assert_eq!(orders, 1680);
}
