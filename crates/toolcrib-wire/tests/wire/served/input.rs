//! The input of requests, and what a model gets of it.

use serde_json::{Value, json};
use toolcrib_tool::Content;
use toolcrib_wire::model::{Conversation, Item, RequestHead, ToolChoice, Wire};
use toolcrib_wire::responses::{InputKind, SubmissionKind};

use super::request::read;

/// The body of a request to a model with this input.
fn sent(wire: Wire, input: &Value) -> Value {
    let request = read(&json!({"model": "m", "input": input}));
    let head = RequestHead::new("m", "p/m");
    let mut conversation = Conversation::new(wire, &head).unwrap();
    conversation.push(&request.history("p/m")).unwrap();
    serde_json::from_str(&conversation.request(&ToolChoice::Auto).unwrap()).unwrap()
}

#[test]
fn history_reaches_every_provider_as_what_it_means() {
    let input = json!([
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": "Hello."}]},
        {"type": "message", "id": "msg_of_client", "role": "assistant", "phase": "commentary",
         "content": [{"type": "output_text", "text": "Let me see."}]},
        {"type": "function_call", "id": "fc_of_client", "call_id": "c1", "name": "f", "arguments": "{\"a\":1}"},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"type": "mcp_call", "id": "mcp_1", "server_label": "toolcrib", "name": "g", "arguments": "{}",
         "output": "two", "error": null},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "x:unknown", "id": "x"},
    ]);
    let responses = sent(Wire::Responses, &input);
    let kinds: Vec<&str> = responses["input"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    let expected = [
        "message",
        "message",
        "message",
        "function_call",
        "function_call_output",
        "function_call",
        "function_call_output",
    ];
    assert_eq!(kinds, expected);
    // Ids of the client's making mean nothing to the provider.
    assert!(!responses.to_string().contains("of_client"), "{responses}");
    assert_eq!(responses["input"][2]["phase"], "commentary");
    let chat = sent(Wire::Chat, &input);
    let roles: Vec<&str> = chat["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "tool"]);
    sent(Wire::Anthropic, &input);
}

#[test]
fn encrypted_reasoning_goes_back_to_its_source_only() {
    let input = json!([
        {"role": "user", "content": "Hello."},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"},
        {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"role": "assistant", "content": "Hi."},
    ]);
    let same = sent(Wire::Responses, &input);
    assert_eq!(same["input"][1]["encrypted_content"], "sealed");
    assert_eq!(same["input"].as_array().unwrap().len(), 3);
    assert!(!sent(Wire::Chat, &input).to_string().contains("sealed"));
    let request = read(&json!({"model": "m", "input": input}));
    let elsewhere = request.history("other/m");
    let mut conversation =
        Conversation::new(Wire::Responses, &RequestHead::new("m", "p/m")).unwrap();
    conversation.push(&elsewhere).unwrap();
    assert!(!conversation.request(&ToolChoice::Auto).unwrap().contains("sealed"));
}

#[test]
fn outputs_of_earlier_calls_are_told_apart_from_history() {
    let request = read(&json!({"model": "m", "previous_response_id": "resp_1", "input": [
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": ""},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"type": "function_call", "call_id": "c2", "name": "f", "arguments": ""},
        {"type": "custom_tool_call_output", "call_id": "c3", "output": [{"type": "input_text", "text": "three"}]},
        {"type": "local_shell_call_output", "id": "c4", "output": "four"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": false, "reason": "No."},
    ]}));
    let submitted: Vec<_> = request
        .submissions()
        .map(|it| {
            (it.index, it.kind, it.answer.call_id.as_str(), it.answer.output.text().into_owned())
        })
        .collect();
    assert_eq!(
        submitted,
        [
            (3, SubmissionKind::Custom, "c3", "three".to_owned()),
            (4, SubmissionKind::LocalShell, "c4", "four".to_owned()),
        ]
    );
    assert_eq!(request.unanswered_calls(), ["c2"]);
    let approval = request.approvals().next().unwrap();
    assert_eq!((approval.request_id.as_str(), approval.approve), ("mcpr_1", false));
    // Only what is whole is history: the call with its output, and the call without.
    assert_eq!(request.history("p/m").len(), 3);
}

#[test]
fn pictures_and_files_are_read_with_their_bytes() {
    let request = read(&json!({"model": "m", "input": [{"role": "user", "content": [
        {"type": "input_image", "image_url": "data:image/png;base64,AQI=", "detail": "low"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AQI="},
    ]}]}));
    let InputKind::Message(message) = &request.input[0].kind else { panic!() };
    assert!(matches!(&message.content[0], Content::Image { data, .. } if data == &[1, 2]));
    assert!(matches!(&message.content[1], Content::Blob { uri, .. } if uri == "a.pdf"));
}

#[test]
fn items_are_listed_whole_with_ids() {
    let request = read(&json!({"model": "m", "input": [
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": "Hi.", "phase": "final_answer"},
        {"type": "function_call", "id": "fc_9", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "reasoning", "summary": []},
    ]}));
    let mut made = 0;
    let mut new_id = |prefix: &str| {
        made += 1;
        format!("{prefix}{made}")
    };
    let listed: Vec<Value> = request.input.iter().map(|item| item.to_value(&mut new_id)).collect();
    assert_eq!(
        listed[0],
        json!({
            "id": "msg_1", "type": "message", "status": "completed", "role": "user",
            "content": [{"type": "input_text", "text": "Hello."}],
        })
    );
    assert_eq!(listed[1]["content"][0]["type"], "output_text");
    assert_eq!((&listed[2]["id"], &listed[2]["status"]), (&json!("fc_9"), &json!("completed")));
    assert_eq!(listed[3], json!({"id": "rs_3", "type": "reasoning", "summary": []}));
}

#[test]
fn a_text_is_one_message_and_a_long_input_costs_in_proportion() {
    let request = read(&json!({"model": "m", "input": "Hello."}));
    assert!(matches!(&request.history("p/m")[..], [Item::Input(_)]));
    let processor_time = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        std::time::Duration::try_from(now).unwrap()
    };
    let time = |calls: usize| {
        let items: Vec<Value> = (0..calls)
            .flat_map(|call| {
                let id = format!("c{call}");
                [
                    json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"}),
                    json!({"type": "function_call_output", "call_id": id, "output": "x"}),
                ]
            })
            .collect();
        let body = json!({"model": "m", "input": items}).to_string();
        let best = (0..3).map(|_| {
            // What other threads do meanwhile does not count.
            let start = processor_time();
            let request = toolcrib_wire::responses::ResponseRequest::read(&body).unwrap();
            assert!(request.unanswered_calls().is_empty());
            processor_time().saturating_sub(start)
        });
        best.min().unwrap()
    };
    let (small, large) = (time(2_000), time(16_000));
    // Eight times the input; a quadratic reader would take 64 times as long.
    assert!(large < small * 24 + std::time::Duration::from_millis(20), "{small:?} and {large:?}");
}
