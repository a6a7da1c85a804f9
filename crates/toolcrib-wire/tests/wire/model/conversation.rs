//! The bytes of requests.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_tool::{Content, ToolDefinition, ToolError, ToolResult};
use toolcrib_wire::export;
use toolcrib_wire::model::{
    Conversation, DecoderSettings, Input, Item, ModelItem, RequestHead, Role, ToolChoice, Wire,
    read_answer,
};

use super::{answer, decode, items, recordings, result, settings};

fn head() -> RequestHead {
    RequestHead::new("m", "test/m").with_instructions("Be brief.")
}

fn request(conversation: &Conversation) -> Value {
    serde_json::from_str(&conversation.request(&ToolChoice::Auto).unwrap()).unwrap()
}

#[test]
fn a_chat_request_has_the_documented_members() {
    let definition = ToolDefinition::builder("weather")
        .description("Tells the weather.")
        .input_schema(json!({"properties": {"city": {"type": "string"}}}))
        .build()
        .unwrap();
    let mut head = head().with_tools(&export([&definition], Wire::Chat.target()));
    head.max_output_tokens = Some(500);
    head.temperature = Some(0.5);
    head.reasoning_effort = Some("low".to_owned());
    head.cache_key = Some("run_1".to_owned());
    head.parallel_calls = Some(false);
    head.extra.insert("top_p".to_owned(), json!(0.9));
    let mut conversation = Conversation::new(Wire::Chat, &head).unwrap();
    let picture = Content::Image { data: vec![1, 2, 3], mime_type: "image/png".to_owned() };
    let sound = Content::Audio { data: vec![1], mime_type: "audio/wav".to_owned() };
    let content = vec![Content::text("Look."), picture, sound];
    conversation.push(&[Item::Input(Input { role: Role::User, content })]).unwrap();
    let body = conversation.request(&ToolChoice::Tool("weather".to_owned())).unwrap();
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["tools"][0]["function"]["name"], "weather");
    let mut rest = body;
    rest.as_object_mut().unwrap().remove("tools");
    assert_eq!(
        rest,
        json!({
            "model": "m",
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_completion_tokens": 500,
            "temperature": 0.5,
            "reasoning_effort": "low",
            "prompt_cache_key": "run_1",
            "parallel_tool_calls": false,
            "top_p": 0.9,
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [
                    {"type": "text", "text": "Look."},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AQID"}},
                    {"type": "input_audio", "input_audio": {"data": "AQ==", "format": "wav"}},
                ]},
            ],
            "tool_choice": {"type": "function", "function": {"name": "weather"}},
        })
    );
}

#[test]
fn dialects_change_roles_limits_and_media() {
    let mut head = head();
    head.stream = false;
    head.max_output_tokens = Some(5);
    head.accepts_media = false;
    head.chat.developer_role = true;
    head.chat.max_tokens = true;
    let mut conversation = Conversation::new(Wire::Chat, &head).unwrap();
    let picture = Content::Image { data: vec![1, 2, 3], mime_type: "image/png".to_owned() };
    conversation
        .push(&[
            Item::Input(Input { role: Role::User, content: vec![Content::text("Look."), picture] }),
            Item::Input(Input { role: Role::System, content: vec![Content::text("Hurry.")] }),
        ])
        .unwrap();
    assert_eq!(
        request(&conversation),
        json!({
            "model": "m",
            "max_tokens": 5,
            "messages": [
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "content": "Look.\n\n[image image/png, 3 bytes]"},
                {"role": "developer", "content": "Hurry."},
            ],
        })
    );
    head.extra.insert("messages".to_owned(), json!([]));
    let error = Conversation::new(Wire::Chat, &head).unwrap_err();
    assert_eq!(error.at, "/extra/messages");
}

#[test]
fn an_answer_goes_back_to_its_source_byte_for_byte_and_to_others_as_its_view() {
    let answer = answer(Wire::Chat, "reasoning_details");
    let mut own = Conversation::new(Wire::Chat, &head()).unwrap();
    own.push(&items(answer.items.clone())).unwrap();
    own.push(&[result("toolu_1")]).unwrap();
    let text = own.request(&ToolChoice::Auto).unwrap();
    let members = answer.items[0].raw();
    let members = &members[1..members.len() - 1];
    let call = answer.items[1].raw();
    let message =
        format!(r#"{{"role":"assistant","content":null,{members},"tool_calls":[{call}]}}"#);
    assert!(text.contains(&message), "{text}");

    let mut other = Conversation::new(Wire::Chat, &RequestHead::new("n", "test/n")).unwrap();
    other.push(&items(answer.items.clone())).unwrap();
    other.push(&[result("toolu_1")]).unwrap();
    assert_eq!(
        request(&other)["messages"],
        json!([
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "toolu_1", "type": "function",
                    "function": {"name": "weather", "arguments": "{\"city\":\"Graz\"}"}}]},
            {"role": "tool", "tool_call_id": "toolu_1", "content": "sunny"},
        ])
    );

    let mut silent = head();
    silent.chat.send_reasoning = false;
    let mut silent = Conversation::new(Wire::Chat, &silent).unwrap();
    silent.push(&items(answer.items)).unwrap();
    silent.push(&[result("toolu_1")]).unwrap();
    assert_eq!(request(&silent)["messages"][1].get("reasoning_details"), None);
}

#[test]
fn an_id_that_other_providers_refuse_is_replaced_in_the_call_and_its_result() {
    let raw = r#"{"id":"a/very|odd id","type":"function","function":{"name":"weather","arguments":"{}"}}"#;
    let call = ModelItem::read(Wire::Chat, "elsewhere/m", raw).unwrap();
    let mut conversation = Conversation::new(Wire::Chat, &head()).unwrap();
    conversation.push(&[call.into()]).unwrap();
    conversation.push(&[result("a/very|odd id")]).unwrap();
    let body = request(&conversation);
    let id = body["messages"][1]["tool_calls"][0]["id"].as_str().unwrap();
    assert!(id.starts_with("call_") && id.len() <= 40);
    assert_eq!(body["messages"][2]["tool_call_id"], id);
}

#[test]
fn calls_and_results_cannot_be_separated() {
    let answer = answer(Wire::Chat, "parallel_calls_interleaved");
    let mut conversation = Conversation::new(Wire::Chat, &head()).unwrap();
    assert_eq!(conversation.push(&[result("call_a")]).unwrap_err().at, "/0");
    conversation.push(&items(answer.items.clone())).unwrap();
    let before = conversation.size();
    for wrong in [
        vec![Item::user("Go on.")],
        vec![result("call_a")],
        vec![result("call_a"), Item::user("Go on."), result("call_b")],
        vec![result("call_a"), result("call_b"), result("call_b")],
        items(answer.items),
    ] {
        conversation.push(&wrong).unwrap_err();
        assert_eq!(conversation.size(), before, "a refused push changes nothing");
    }
    let error = conversation.request(&ToolChoice::Auto).unwrap_err();
    assert_eq!(
        error.to_string(),
        "2 calls have no result yet, among them \"call_a\": push the results first"
    );
    let failed =
        ToolResult::failure("call_b".into(), "time", ToolError::denied("no"), Duration::ZERO);
    conversation.push(&[result("call_a"), failed.into(), Item::user("Go on.")]).unwrap();
    assert_eq!(request(&conversation)["messages"].as_array().unwrap().len(), 5);
}

#[test]
fn choices_stand_after_the_items_and_need_tools() {
    let definition = ToolDefinition::builder("weather").description("Tells.").build().unwrap();
    let with_tools = head().with_tools(&export([&definition], Wire::Chat.target()));
    for (head, has_choice) in [(head(), false), (with_tools, true)] {
        let mut conversation = Conversation::new(Wire::Chat, &head).unwrap();
        conversation.push(&[Item::user("Hi.")]).unwrap();
        let auto = conversation.request(&ToolChoice::Auto).unwrap();
        let none = conversation.request(&ToolChoice::None).unwrap();
        assert_eq!(auto != none, has_choice);
        assert!(none.starts_with(auto.strip_suffix('}').unwrap()), "the bytes before stay equal");
    }
}

proptest! {
    /// A raw item comes back byte for byte, whatever members it has.
    #[test]
    fn raw_items_survive(
        text in ".{1,20}",
        id in "[a-z/| ]{1,50}",
        extra in "[a-z]{1,8}",
        number in any::<f64>().prop_filter("JSON has no such number", |number| number.is_finite()),
    ) {
        let call = format!(
            "{{\"id\":{},  \"type\":\"function\",\"function\":{{\"arguments\":{},\"name\":\"n\"}},\"x{extra}\" :{{\"n\":{number:e}}}}}",
            json!(id), json!(text),
        );
        let body = format!(
            "{{\"choices\":[{{\"finish_reason\":\"stop\",\"message\":{{\"role\":\"assistant\",\"content\":{},\"x{extra}\":[{number:e}],\"tool_calls\":[{call}]}}}}]}}",
            json!(text),
        );
        let answer = read_answer(Wire::Chat, body.as_bytes(), &DecoderSettings::new("test/m")).unwrap();
        if !text.trim().is_empty() {
            prop_assert_eq!(answer.items.last().unwrap().raw(), &call);
        }
        let stored = serde_json::to_string(&answer.items).unwrap();
        let read: Vec<ModelItem> = serde_json::from_str(&stored).unwrap();
        prop_assert_eq!(&read, &answer.items);
        let mut conversation = Conversation::new(Wire::Chat, &head()).unwrap();
        conversation.push(&items(read)).unwrap();
        conversation.push(&[result(&id)]).unwrap();
        let request = conversation.request(&ToolChoice::Auto).unwrap();
        prop_assert!(request.contains(answer.items.last().unwrap().raw()));
        let kept = format!("\"x{extra}\":[{number:e}]");
        prop_assert!(request.contains(&kept));
        serde_json::from_str::<Value>(&request).unwrap();
    }

    /// Whatever was said, every request begins with the bytes of the one before, and rebuilding gives equal bytes.
    #[test]
    fn requests_share_all_earlier_bytes(
        wire in prop::sample::select(Wire::ALL),
        order in prop::collection::vec(0_usize..40, 1..12),
    ) {
        let mut conversation = Conversation::new(wire, &head()).unwrap();
        let mut pushed: Vec<Vec<Item>> = Vec::new();
        let recordings = recordings(wire);
        let mut before = String::new();
        for (round, pick) in order.into_iter().enumerate() {
            let mut settings = settings();
            settings.call_id_prefix = format!("call_{round}");
            let (_, stream) = &recordings[pick % recordings.len()];
            let mut groups = vec![vec![Item::user(format!("Round {round}."))]];
            if let (_, Ok(answer)) = decode(wire, [&**stream], settings) {
                let results: Vec<Item> = answer.calls().map(|call| result(call.id.as_str())).collect();
                groups.push(items(answer.items));
                groups.push(results);
            }
            for group in groups {
                conversation.push(&group).unwrap();
                pushed.push(group);
            }
            let request = conversation.request(&ToolChoice::Auto).unwrap();
            let shared = before.trim_end_matches("]}");
            prop_assert!(request.starts_with(shared), "round {}", round);
            serde_json::from_str::<Value>(&request).unwrap();
            before = request;
        }
        let mut rebuilt = Conversation::new(wire, &head()).unwrap();
        for group in &pushed {
            rebuilt.push(group).unwrap();
        }
        prop_assert_eq!(rebuilt.request(&ToolChoice::Auto).unwrap(), before);
    }
}
