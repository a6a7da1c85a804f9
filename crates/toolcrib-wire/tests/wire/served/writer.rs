//! Responses as they are written.

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_tool::{CallId, ErrorKind, ToolCall, ToolError, ToolResult};
use toolcrib_wire::api::StreamEvent;
use toolcrib_wire::model::{ModelItem, Wire};
use toolcrib_wire::responses::{
    CallKind, Dialect, Include, Phase, ResponseFailure, ResponseResource, ResponseStatus,
    ResponseWriter, WriterSettings,
};

use super::request::read;

fn writer(dialect: Dialect, include: Include) -> ResponseWriter {
    let request = read(&json!({"model": "m", "input": "Hello."}));
    let resource = ResponseResource::new("resp_1", 7, "m", &request);
    let mut ids = 0;
    let new_id = move || {
        ids += 1;
        ids.to_string()
    };
    ResponseWriter::new(resource, WriterSettings::new(dialect, include), new_id)
}

fn names(events: &[StreamEvent]) -> Vec<&str> {
    events.iter().map(StreamEvent::name).collect()
}

fn value(event: &StreamEvent) -> Value {
    serde_json::from_str(event.json()).unwrap()
}

fn said(item: &Value) -> ModelItem {
    ModelItem::read(Wire::Responses, "p/m", item.to_string()).unwrap()
}

fn mcp() -> CallKind {
    CallKind::Mcp { server_label: "toolcrib".into() }
}

#[test]
fn a_message_has_its_events_and_the_phase_of_the_answer() {
    let mut writer = writer(Dialect::OpenAi, Include::default());
    let mut events = writer.text("Hel");
    events.extend(writer.text("lo."));
    events.extend(writer.answered(&[said(&json!({
        "type": "message", "role": "assistant", "phase": "final_answer",
        "content": [{"type": "output_text", "text": "Hello. Bye."}],
    }))]));
    events.extend(writer.complete(9, None));
    assert_eq!(
        names(&events),
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let done = value(&events[9]);
    assert_eq!(done["item"]["content"][0]["text"], "Hello. Bye.");
    assert_eq!(done["item"]["phase"], "final_answer");
    assert_eq!(value(&events[10])["response"]["completed_at"], 9);
    assert!(events[10].is_terminal() && !events[9].is_terminal());
    assert!(writer.text("more").is_empty());
}

#[test]
fn an_event_is_one_text_with_two_lines() {
    let mut writer = writer(Dialect::OpenAi, Include::default());
    writer.begin();
    let events = writer.text("a\n\ndata: b\r\u{2028}");
    for event in events {
        let frame = event.as_sse().strip_suffix("\n\n").unwrap();
        assert_eq!(frame.lines().count(), 2, "{frame}");
        assert_eq!(frame.lines().next(), Some(&*format!("event: {}", event.name())));
        assert_eq!(value(&event)["type"], event.name());
        assert_eq!(event.clone().into_sse(), event.as_sse());
    }
}

#[test]
fn reasoning_is_a_summary_and_can_be_sent_back_if_the_client_asks() {
    let reasoning = said(&json!({
        "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "sealed",
    }));
    for (include, sealed) in [(Include::default(), None), (Include::ALL, Some("sealed"))] {
        for streamed in [true, false] {
            let mut writer = writer(Dialect::OpenAi, include);
            if streamed {
                writer.reasoning("Hm.");
                writer.text("Hi.");
            }
            writer.answered(&[reasoning.clone(), said(&json!({
                "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}],
            }))]);
            let output = writer.output();
            assert_eq!(output.len(), 2, "{output:?}");
            assert_eq!(output[0]["summary"], json!([{"type": "summary_text", "text": "Hm."}]));
            assert_eq!(output[0]["encrypted_content"].as_str(), sealed);
            assert_eq!(output[1]["content"][0]["text"], "Hi.");
        }
    }
}

#[test]
fn a_lost_answer_becomes_commentary_and_its_calls_have_failed() {
    let mut writer = writer(Dialect::OpenAi, Include::default());
    writer.text("Let me");
    let id = CallId::new("call_1");
    writer.open_call(&id, "find", mcp()).unwrap();
    writer.call_arguments(&id, "{\"a\":").unwrap();
    let events = writer.lost_answer().unwrap();
    assert!(names(&events).contains(&"response.mcp_call.failed"));
    writer.text("Let me see.");
    writer.complete(9, None);
    let output = writer.output();
    assert_eq!(
        (&output[0]["status"], &output[0]["phase"]),
        (&json!("completed"), &json!("commentary"))
    );
    assert_eq!(output[1]["status"], "failed");
    assert_eq!(output[2]["content"][0]["text"], "Let me see.");
}

#[test]
fn a_lost_answer_with_a_call_for_the_client_fails_the_response() {
    let mut writer = writer(Dialect::OpenAi, Include::default());
    let id = CallId::new("call_1");
    writer.open_call(&id, "f", CallKind::Function).unwrap();
    let lost = writer.lost_answer().unwrap_err();
    assert_eq!(lost.call_id, id);
    let events = writer.fail(ResponseFailure::new("server_error", lost.to_string()), None);
    assert_eq!(names(&events), ["response.output_item.done", "error", "response.failed"]);
    let error = value(&events[1]);
    assert_eq!(error["code"], error["error"]["code"]);
    assert_eq!(error["message"], error["error"]["message"]);
    assert_eq!(value(&events[2])["response"]["error"]["code"], "server_error");
}

#[test]
fn a_call_that_ran_here_is_nothing_that_a_client_would_run() {
    let call = ToolCall::new("call_1", "find", "{}");
    let result = ToolResult::success(call.id().clone(), "find", "found".into(), Duration::ZERO);
    let mut openai = writer(Dialect::OpenAi, Include::default());
    openai.prepare_call(&call, mcp()).unwrap();
    openai.approved(call.id(), "mcpr_1").unwrap();
    openai.complete_call(&result).unwrap();
    let output = openai.output();
    assert_eq!((output.len(), &output[0]["type"]), (1, &json!("mcp_call")));
    assert_eq!(
        (&output[0]["output"], &output[0]["approval_request_id"]),
        (&json!("found"), &json!("mcpr_1"))
    );

    let mut open = writer(Dialect::Open, Include::default());
    open.prepare_call(&call, mcp()).unwrap();
    open.complete_call(&result).unwrap();
    let output = open.output();
    assert_eq!(
        (&output[0]["type"], &output[1]["type"]),
        (&json!("function_call"), &json!("function_call_output"))
    );
    assert_eq!(output[1]["output"], "found");

    // Also one that does not end.
    let mut open = writer(Dialect::Open, Include::default());
    open.prepare_call(&call, mcp()).unwrap();
    open.incomplete("approval_pending", None);
    let output = open.output();
    assert_eq!(output[1]["type"], "function_call_output");
    assert_eq!(open.to_value()["incomplete_details"]["reason"], "approval_pending");
}

#[test]
fn a_call_for_the_client_is_handed_over_and_one_that_is_cut_fails_a_whole_response() {
    let mut done = writer(Dialect::OpenAi, Include::default());
    let id = CallId::new("call_1");
    done.open_call(&id, "f", CallKind::Function).unwrap();
    done.call_arguments(&id, "{}").unwrap();
    let mut cut = writer(Dialect::OpenAi, Include::default());
    cut.open_call(&id, "f", CallKind::Function).unwrap();
    let events = done.end_arguments(&id, "{}").unwrap();
    assert_eq!(value(&events[0])["name"], "f");
    let (_, outstanding) = done.hand_over(&id).unwrap();
    assert_eq!(outstanding.unwrap().arguments, "{}");
    done.complete(9, None);
    assert_eq!(done.output()[0]["status"], "completed");
    cut.complete(9, None);
    assert_eq!(cut.resource().status, ResponseStatus::Failed);
}

#[test]
fn a_failed_or_cancelled_call_is_not_incomplete_in_the_middle_of_a_response() {
    for kind in [ErrorKind::Execution, ErrorKind::Cancelled] {
        for call_kind in [mcp(), CallKind::CodeInterpreter, CallKind::FileSearch] {
            let mut writer = writer(Dialect::OpenAi, Include::ALL);
            let call = ToolCall::new("call_1", "find", "{}");
            writer.prepare_call(&call, call_kind).unwrap();
            let error = ToolError::new(kind, "no");
            let failed = ToolResult::failure(call.id().clone(), "find", error, Duration::ZERO);
            writer.complete_call(&failed).unwrap();
            assert_eq!(writer.output()[0]["status"], "failed");
        }
    }
}

#[test]
fn what_nobody_asked_for_is_not_shown() {
    let results = json!({"results": [{"file_id": "f", "text": "secret"}]});
    for (include, is_shown) in [(Include::default(), false), (Include::ALL, true)] {
        let mut writer = writer(Dialect::OpenAi, include);
        let call = ToolCall::new("call_1", "knowledge_search", r#"{"query": "q"}"#);
        let mut events = writer.prepare_call(&call, CallKind::FileSearch).unwrap();
        let output = toolcrib_tool::ToolOutput::from("x").with_data(results.clone());
        let result = ToolResult::success(call.id().clone(), "s", output, Duration::ZERO);
        events.extend(writer.complete_call(&result).unwrap());
        let sent: String = events.iter().map(StreamEvent::json).collect();
        assert_eq!(sent.contains("secret"), is_shown);
        assert_eq!(writer.to_value().to_string().contains("secret"), is_shown);
    }
}

#[test]
fn a_refused_step_sends_nothing_and_uses_no_number() {
    let mut writer = writer(Dialect::OpenAi, Include::default());
    writer.text("Hello.");
    let before = writer.next_sequence_number();
    let shell = ToolCall::new("call_1", "local_shell", r#"{"command": 7}"#);
    assert!(writer.prepare_call(&shell, CallKind::LocalShell).is_err());
    assert!(writer.hand_over(&CallId::new("call_1")).is_err());
    assert_eq!(writer.next_sequence_number(), before);
    writer.complete(9, None);
    let call = ToolCall::new("call_2", "f", "{}");
    assert!(writer.prepare_call(&call, CallKind::Function).is_err());
}

#[test]
fn another_process_goes_on_with_the_numbers_and_items_of_the_first() {
    let mut first = writer(Dialect::OpenAi, Include::default());
    first.message("One.", Some(Phase::Commentary));
    let stored = first.to_value();
    let (resource, output) = ResponseResource::from_value(stored.clone()).unwrap();
    assert_eq!(resource.to_value(output.clone()), stored);
    let next = first.next_sequence_number() + 10;
    let mut second =
        ResponseWriter::resumed(resource, WriterSettings::default(), output, next, || {
            "1".to_owned()
        });
    let events = second.message("Two.", None);
    assert_eq!(events[0].name(), "response.output_item.added");
    assert_eq!(events[0].sequence_number(), next);
    let added = value(&events[0]);
    assert_eq!(added["output_index"], 1);
    assert_ne!(added["item"]["id"], first.output()[0]["id"]);
    second.complete(9, None);
    assert_eq!(second.output().len(), 2);
}
