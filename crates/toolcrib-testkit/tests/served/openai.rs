//! What is sent, as another implementation of OpenAI's types reads it.

use async_openai::types::chat::{CreateChatCompletionResponse, CreateChatCompletionStreamResponse};
use async_openai::types::responses::{CompactResource, Response, ResponseStreamEvent};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use toolcrib_tool::CallId;
use toolcrib_wire::chat::{ChatWriter, FinishReason};
use toolcrib_wire::responses::{compaction, compaction_item};

use crate::scripts::{script, usage};

#[test]
fn every_event_of_random_responses_is_read() {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut read = 0;
    for _ in 0..300 {
        let mut script = script().new_tree(&mut runner).unwrap().current();
        script.is_open_dialect = false;
        let played = script.play();
        // An item that its closed list of types does not have: only clients run that shell.
        if played.stream.contains("local_shell_call_output") {
            continue;
        }
        for event in &played.events {
            let parsed = serde_json::from_str::<ResponseStreamEvent>(event.json());
            if let Err(error) = parsed {
                panic!("{error}: {}", event.json());
            }
            read += 1;
        }
        let response = played.writer.to_value();
        serde_json::from_value::<Response>(response.clone())
            .unwrap_or_else(|error| panic!("{error}: {response}"));
    }
    assert!(read > 5_000, "{read} events are few");
}

#[test]
fn a_compaction_is_read() {
    let output = [compaction_item("cmp_1", "sealed")];
    let compaction = compaction("resp_1", 7, &output, &usage());
    serde_json::from_value::<CompactResource>(compaction).unwrap();
}

#[test]
fn chunks_and_completions_are_read() {
    let mut writer = ChatWriter::new("chatcmpl_1", 7, "m", true);
    let mut chunks = writer.text("Hello.");
    chunks.extend(writer.refusal("No."));
    chunks.extend(writer.call(&CallId::new("call_1"), "f"));
    chunks.extend(writer.end_arguments(&CallId::new("call_1"), r#"{"a": 1}"#));
    let whole = writer.clone().into_completion(FinishReason::ToolCalls, Some(&usage()));
    chunks.extend(writer.finish(FinishReason::ToolCalls, Some(&usage())));
    assert_eq!(chunks.pop().unwrap(), "data: [DONE]\n\n");
    for chunk in chunks {
        let data = chunk.strip_prefix("data: ").unwrap();
        serde_json::from_str::<CreateChatCompletionStreamResponse>(data)
            .unwrap_or_else(|error| panic!("{error}: {data}"));
    }
    let read: CreateChatCompletionResponse = serde_json::from_value(whole).unwrap();
    assert!(read.choices[0].message.tool_calls.is_some());
}
