//! The events of a response: the life of each kind of item, and rules that hold in any order.

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_tool::{
    CallId, Content, ErrorKind, Link, ToolCall, ToolError, ToolOutput, ToolResult,
};
use toolcrib_wire::responses::{
    CallKind, EventName, Finished, RequiredAction, ResponseEvent, ResponseStream, StreamError,
    StreamErrorKind,
};

use crate::golden::{compare, pretty};

pub(crate) fn stream() -> ResponseStream {
    let mut ids = 0;
    ResponseStream::new(move || {
        ids += 1;
        ids.to_string()
    })
}

fn success(output: impl Into<ToolOutput>) -> ToolResult {
    ToolResult::success(CallId::new("call_1"), "tool", output.into(), Duration::ZERO)
}

fn failure(kind: ErrorKind, message: &str) -> ToolResult {
    let error = ToolError::new(kind, message);
    ToolResult::failure(CallId::new("call_1"), "tool", error, Duration::ZERO)
}

/// Prepares, runs and completes a call.
fn life(kind: CallKind, tool: &str, arguments: &Value, result: &ToolResult) -> Vec<ResponseEvent> {
    let mut stream = stream();
    let call = ToolCall::new("call_1", tool, arguments.to_string());
    let mut events = stream.prepare(&call, kind).unwrap();
    events.extend(stream.working(call.id()).unwrap());
    // Reported once.
    assert_eq!(stream.working(call.id()).unwrap(), []);
    let Finished { events: last, outstanding, .. } = stream.complete(result).unwrap();
    assert_eq!(outstanding, None);
    events.extend(last);
    let output: Vec<Value> = stream.output().map(|(_, item)| item.clone()).collect();
    let done: Vec<Value> = done_items(&events).cloned().collect();
    assert_eq!(output, done);
    events
}

fn done_items(events: &[ResponseEvent]) -> impl Iterator<Item = &Value> {
    events
        .iter()
        .filter(|event| event.name() == EventName::ItemDone)
        .filter_map(ResponseEvent::item)
}

/// The call's item in its final state.
fn item(kind: CallKind, arguments: &Value, result: &ToolResult) -> Value {
    done_items(&life(kind, "tool", arguments, result)).next().unwrap().clone()
}

fn lines(events: &[ResponseEvent]) -> Value {
    events.iter().map(ResponseEvent::to_value).collect()
}

fn image() -> Content {
    Content::Image { data: vec![1, 2, 3], mime_type: "image/png".into() }
}

fn mcp() -> CallKind {
    CallKind::Mcp { server_label: "docs".into() }
}

fn image_life() -> Vec<ResponseEvent> {
    let mut stream = stream();
    let call = ToolCall::new("call_1", "image_generate", r#"{"prompt": "a boat"}"#);
    let mut events = stream.prepare(&call, CallKind::of_tool(call.name())).unwrap();
    events.extend(stream.partial_image(call.id(), &[1]).unwrap());
    events.extend(stream.partial_image(call.id(), &[1, 2]).unwrap());
    events.extend(stream.complete(&success(image())).unwrap().events);
    events
}

fn handed_over(kind: CallKind, tool: &str, arguments: &str) -> Value {
    let mut stream = stream();
    let call = ToolCall::new("call_1", tool, arguments);
    let mut events = stream.prepare(&call, kind).unwrap();
    let finished = stream.hand_over(call.id()).unwrap();
    events.extend(finished.events);
    let action = RequiredAction::new(finished.outstanding);
    json!({"events": lines(&events), "required_action": action.to_value()})
}

/// A function whose arguments come in pieces.
fn streamed() -> Vec<ResponseEvent> {
    let mut stream = stream();
    let id = CallId::new("call_1");
    let mut events = stream.open(&id, "add", CallKind::Function).unwrap();
    for piece in [r#"{"a""#, "", ": 1"] {
        events.extend(stream.write(&id, piece).unwrap());
    }
    events.extend(stream.arguments(&id, r#"{"a": 1}"#).unwrap());
    events.extend(stream.complete(&success("1")).unwrap().events);
    events
}

#[test]
fn golden_lives() {
    let search = json!({"query": "berths", "top_k": 2});
    let documents = ToolOutput::from("two").with_data(json!({"results": [
        {"document_id": "d1", "path": "a.md", "score": 0.9, "snippet": "A berth is free.", "page": 3},
        {"file_id": "f2", "text": "None is.", "attributes": {"lang": "en"}},
    ]}));
    let pages = ToolOutput::from(json!([{"url": "https://example.com/a", "title": "A"}]))
        .with_content("one page");
    let printed = ToolOutput::from("42")
        .with_content(image())
        .with_data(json!({"stdout": "42\n", "stderr": "slow\n", "exit_code": 0}));
    let lives = json!({
        "function_call": lines(&life(
            CallKind::Function, "add", &json!({"a": 1}), &success(ToolOutput::from(json!({"sum": 1}))),
        )),
        "function_call streamed": lines(&streamed()),
        "function_call handed over": handed_over(CallKind::Function, "open_door", r#"{"door":2}"#),
        "custom_tool_call": lines(&life(
            CallKind::Custom, "patch", &json!({"input_data": "*** Begin"}), &success(image()),
        )),
        "file_search_call": lines(&life(
            CallKind::FileSearch, "knowledge_search", &search, &success(documents),
        )),
        "web_search_call": lines(&life(CallKind::WebSearch, "web_search", &search, &success(pages))),
        "image_generation_call": lines(&image_life()),
        "code_interpreter_call": lines(&life(
            CallKind::CodeInterpreter, "execute_python", &json!({"code": "print(6*7)"}), &success(printed),
        )),
        "mcp_call": lines(&life(mcp(), "lookup", &json!({"id": 7}), &success("seven"))),
        "mcp_call failed": lines(&life(
            mcp(), "lookup", &json!({"id": 8}), &failure(ErrorKind::Execution, "no such id"),
        )),
        "local_shell_call": handed_over(
            CallKind::LocalShell, "local_shell",
            r#"{"command": ["ls", "-a"], "env": {"LANG": "C"}, "timeout_ms": 500, "working_directory": "/src"}"#,
        ),
    });
    compare("responses-events.json", &pretty(&lives));
}

#[test]
fn event_names_match_the_api() {
    let names: Vec<&str> = EventName::ALL.iter().map(|name| name.as_str()).collect();
    let spelled = "output_item.added output_item.done \
        function_call_arguments.delta function_call_arguments.done \
        custom_tool_call_input.delta custom_tool_call_input.done \
        file_search_call.in_progress file_search_call.searching file_search_call.completed \
        web_search_call.in_progress web_search_call.searching web_search_call.completed \
        image_generation_call.in_progress image_generation_call.generating \
        image_generation_call.partial_image image_generation_call.completed \
        code_interpreter_call.in_progress code_interpreter_call.interpreting \
        code_interpreter_call.completed \
        code_interpreter_call_code.delta code_interpreter_call_code.done \
        mcp_call.in_progress mcp_call_arguments.delta mcp_call_arguments.done \
        mcp_call.completed mcp_call.failed";
    let expected: Vec<String> =
        spelled.split_whitespace().map(|name| format!("response.{name}")).collect();
    assert_eq!(names, expected);
}

#[test]
fn a_failure_is_never_called_completed() {
    let error = failure(ErrorKind::Execution, "the disk is full");
    let cancelled = failure(ErrorKind::Cancelled, "cancelled");
    let arguments = json!({"query": "q", "code": "1/0"});
    for (kind, failed, cut_short) in [
        (CallKind::FileSearch, "failed", "incomplete"),
        (CallKind::WebSearch, "failed", "failed"),
        (CallKind::ImageGeneration, "failed", "failed"),
        (CallKind::CodeInterpreter, "failed", "incomplete"),
        (mcp(), "failed", "incomplete"),
    ] {
        assert_eq!(item(kind.clone(), &arguments, &error)["status"], failed, "{kind:?}");
        assert_eq!(item(kind.clone(), &arguments, &cancelled)["status"], cut_short, "{kind:?}");
        for result in [&error, &cancelled] {
            let events = life(kind.clone(), "tool", &arguments, result);
            assert!(events.iter().all(|event| !event.name().as_str().ends_with(".completed")));
        }
    }
}

#[test]
fn an_mcp_call_reports_its_failure_as_error_not_output() {
    for kind in [ErrorKind::Execution, ErrorKind::Cancelled] {
        let item = item(mcp(), &json!({}), &failure(kind, "no such id"));
        assert_eq!(item["output"], Value::Null);
        assert_eq!(item["error"]["type"], "mcp_tool_execution_error");
    }
}

#[test]
fn a_failed_function_call_is_complete_and_its_output_reports_the_failure() {
    let error = failure(ErrorKind::Execution, "the disk is full");
    let events = life(CallKind::Function, "save", &json!({}), &error);
    let items: Vec<&Value> = done_items(&events).collect();
    assert_eq!(items[0]["status"], "completed");
    assert_eq!(items[1]["type"], "function_call_output");
    assert!(items[1]["output"].as_str().unwrap().contains("the disk is full"));
    let cancelled = failure(ErrorKind::Cancelled, "cancelled");
    let events = life(CallKind::Function, "save", &json!({}), &cancelled);
    assert_eq!(done_items(&events).nth(1).unwrap()["status"], "incomplete");
}

#[test]
fn failed_code_shows_its_output_and_its_error() {
    let partial = ToolOutput::new().with_data(json!({"stdout": "1\n", "stderr": ""}));
    let error = ToolError::execution("ZeroDivisionError").with_partial(partial);
    let id = CallId::new("call_1");
    let result = ToolResult::failure(id, "execute_python", error, Duration::ZERO);
    let item = item(CallKind::CodeInterpreter, &json!({"code": "1/0"}), &result);
    assert_eq!(
        item["outputs"],
        json!([{"type": "logs", "logs": "1\n"}, {"type": "logs", "logs": "ZeroDivisionError"}])
    );
}

#[test]
fn a_stored_picture_is_reported_by_its_address() {
    let link = Link::new("https://example.com/boat.png", "boat.png");
    let item = item(CallKind::ImageGeneration, &json!({}), &success(Content::from(link)));
    assert_eq!(item["result"], "https://example.com/boat.png");
}

#[test]
fn a_search_without_data_returns_its_text() {
    let found =
        item(CallKind::FileSearch, &json!({"queries": ["a", "b"]}), &success("nothing new"));
    assert_eq!(found["queries"], json!(["a", "b"]));
    assert_eq!(found["results"], json!([{"text": "nothing new"}]));
}

#[test]
fn corrected_arguments_are_sent_completely() {
    let mut stream = stream();
    let id = CallId::new("call_1");
    let _ = stream.open(&id, "add", CallKind::Function).unwrap();
    let _ = stream.write(&id, "{'a': 1").unwrap();
    let events = stream.arguments(&id, r#"{"a":1}"#).unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].to_value()["arguments"], r#"{"a":1}"#);
    let done = stream.complete(&success("1")).unwrap().events;
    assert_eq!(done[0].item().unwrap()["arguments"], r#"{"a":1}"#);
}

#[test]
fn steps_out_of_order_are_refused_and_change_nothing() {
    let mut stream = stream();
    let id = CallId::new("call_1");
    let call = ToolCall::new("call_1", "tool", "{}");
    let reason = |error: StreamError| error.reason;
    let result = success("x");

    assert_eq!(reason(stream.complete(&result).unwrap_err()), StreamErrorKind::NotPrepared);
    assert_eq!(reason(stream.write(&id, "x").unwrap_err()), StreamErrorKind::NotPrepared);
    let shell = stream.prepare(&call, CallKind::LocalShell).unwrap_err();
    assert!(shell.to_string().contains("`command`"), "{shell}");
    assert!(stream.open(&id, "local_shell", CallKind::LocalShell).is_err());

    let events = stream.open(&id, "tool", mcp()).unwrap();
    // Refused steps have used no numbers.
    assert_eq!(events[0].sequence_number(), 0);
    assert_eq!(events[0].item_id(), "mcp_1");
    assert_eq!(reason(stream.prepare(&call, mcp()).unwrap_err()), StreamErrorKind::AlreadyPrepared);
    assert_eq!(reason(stream.working(&id).unwrap_err()), StreamErrorKind::ArgumentsOpen);
    assert_eq!(reason(stream.complete(&result).unwrap_err()), StreamErrorKind::ArgumentsOpen);
    assert_eq!(reason(stream.hand_over(&id).unwrap_err()), StreamErrorKind::ArgumentsOpen);
    let _ = stream.arguments(&id, "{}").unwrap();
    assert_eq!(reason(stream.write(&id, "x").unwrap_err()), StreamErrorKind::ArgumentsDone);
    assert_eq!(reason(stream.arguments(&id, "{}").unwrap_err()), StreamErrorKind::ArgumentsDone);
    let wrong = stream.partial_image(&id, &[1]).unwrap_err();
    assert_eq!(wrong.to_string(), r#"call "call_1": a mcp_call shows no pictures while it runs"#);
    assert!(matches!(
        reason(stream.hand_over(&id).unwrap_err()),
        StreamErrorKind::NoSuchStep { item: "mcp_call", .. }
    ));

    let finished = stream.complete(&result).unwrap();
    // After added, in_progress, arguments delta and done.
    assert_eq!(finished.events[0].sequence_number(), 4);
    assert_eq!(reason(stream.complete(&result).unwrap_err()), StreamErrorKind::AlreadyDone);
    assert_eq!(reason(stream.write(&id, "x").unwrap_err()), StreamErrorKind::AlreadyDone);
    assert_eq!(reason(stream.abandon(&id).unwrap_err()), StreamErrorKind::AlreadyDone);
    assert_eq!(reason(stream.prepare(&call, mcp()).unwrap_err()), StreamErrorKind::AlreadyDone);
    assert_eq!(stream.close(), []);
}

#[test]
fn a_closed_stream_leaves_no_item_open() {
    let mut stream = stream();
    let open = CallId::new("b");
    let _ = stream.prepare(&ToolCall::new("z", "web_search", "{}"), CallKind::WebSearch).unwrap();
    let _ = stream.open(&open, "add", CallKind::Function).unwrap();
    let _ = stream.write(&open, r#"{"a"#).unwrap();
    let events = stream.close();
    let items: Vec<&Value> = done_items(&events).collect();
    assert_eq!(events.len(), 2);
    assert_eq!(
        (&items[0]["type"], &items[0]["status"]),
        (&json!("web_search_call"), &json!("failed"))
    );
    assert_eq!(
        (&items[1]["arguments"], &items[1]["status"]),
        (&json!("{\"a"), &json!("incomplete"))
    );
}

#[test]
fn ids_stay_unique_if_their_source_repeats_itself() {
    let mut stream = ResponseStream::new(|| "same".to_owned());
    let mut ids = Vec::new();
    for id in ["a", "b", "c"] {
        let events = stream.prepare(&ToolCall::new(id, "t", "{}"), CallKind::Function).unwrap();
        ids.push(events[0].item_id().to_owned());
    }
    assert_eq!(ids, ["fc_same", "fc_same_", "fc_same__"]);
}

#[test]
fn other_events_and_items_share_the_numbers() {
    let mut stream = stream();
    assert_eq!(stream.take_sequence_number(), 0);
    assert_eq!(stream.take_output_index(), 0);
    let events = stream.prepare(&ToolCall::new("a", "t", ""), CallKind::Function).unwrap();
    assert_eq!((events[0].sequence_number(), events[0].output_index()), (1, 1));
    assert_eq!(events[1].to_value()["delta"], "{}");
    assert_eq!(stream.take_sequence_number(), 4);
}
