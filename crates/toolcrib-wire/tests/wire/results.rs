//! Results in the format of each provider.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolcrib_tool::{CallId, Content, Link, ToolError, ToolOutput, ToolResult};
use toolcrib_wire::{
    McpData, anthropic_tool_result, gemini_function_response, mcp_call_tool_result,
    openai_call_record, openai_tool_message, plain_result, responses_call_output,
};

use crate::golden::{compare, pretty};

fn results() -> Vec<(&'static str, ToolResult)> {
    let took = Duration::from_millis(1500);
    let success = |output: ToolOutput| ToolResult::success(CallId::new("c1"), "see", output, took);
    let parts = ToolOutput::new()
        .with_content("a picture")
        .with_content(Content::Image { data: vec![0, 255, 7], mime_type: "image/png".into() })
        .with_content(Content::Audio { data: vec![1], mime_type: "audio/wav".into() })
        .with_content(Link::new("https://example.com/a", "a"))
        .with_content(Content::Blob {
            uri: "file:///tmp/report.pdf".into(),
            data: vec![37, 80],
            mime_type: "application/pdf".into(),
        });
    let described = {
        let mut link = Link::new("https://example.com/b", "b").mime_type("text/csv");
        link.title = Some("Table B".into());
        link.description = Some("What was measured.".into());
        link.size = Some(12);
        link
    };
    let files = ToolOutput::new()
        .with_content(Content::TextFile {
            uri: "file:///tmp/notes.md".into(),
            text: "# Notes\n".into(),
            mime_type: Some("text/markdown".into()),
        })
        .with_content(Content::TextFile {
            uri: "note://1".into(),
            text: "one".into(),
            mime_type: None,
        })
        .with_content(described)
        .with_data(json!({"files": 2}));
    let error = ToolError::unavailable("the camera is off")
        .with_hint("Switch it on.")
        .with_partial(ToolOutput::from("half a picture").with_data(json!([1])));
    vec![
        ("text", success(ToolOutput::from("four"))),
        ("data", success(ToolOutput::from(json!([1, {"b": 2, "a": 1}])))),
        ("text_and_data", success(ToolOutput::from("four").with_data(json!({"sum": 4})))),
        ("nothing", success(ToolOutput::new())),
        ("parts", success(parts)),
        ("files", success(files)),
        ("notes", success(ToolOutput::from("cut").with_meta("via", "cache")).with_truncated(true)),
        ("failure", ToolResult::failure(CallId::new("c1"), "see", error, took)),
    ]
}

#[test]
fn golden_results() {
    let views: serde_json::Map<String, Value> = results()
        .iter()
        .map(|(name, result)| {
            let views = json!({
                "record": openai_call_record("", result),
                "tool_message": openai_tool_message(result),
                "function_call_output": responses_call_output(result),
                "tool_result": anthropic_tool_result(result),
                "function_response": gemini_function_response("see_", result),
                "mcp_objects": mcp_call_tool_result(result, None, McpData::Objects),
                "mcp_any": mcp_call_tool_result(result, None, McpData::Any),
                "plain": plain_result(result),
            });
            ((*name).to_owned(), views)
        })
        .collect();
    compare("results.json", &pretty(&Value::Object(views)));
}

#[test]
fn the_texts_of_a_call_record_are_json() {
    for (_, result) in results() {
        let record = openai_call_record(" ", &result);
        let text =
            |value: &Value| -> Value { serde_json::from_str(value.as_str().unwrap()).unwrap() };
        assert_eq!(text(&record["function"]["arguments"]), json!({}));
        assert_eq!(text(&record["result"]), plain_result(&result));
        assert_eq!(record["skipped"], result.skipped());
        assert_eq!(record["execution_time"], 1.5);
    }
}

#[test]
fn bytes_survive_if_the_format_can_hold_them() {
    let (_, result) = results().into_iter().find(|(name, _)| *name == "parts").unwrap();
    let decoded = |text: &Value| STANDARD.decode(text.as_str().unwrap()).unwrap();
    let mcp = mcp_call_tool_result(&result, None, McpData::Any);
    assert_eq!(decoded(&mcp["content"][1]["data"]), [0, 255, 7]);
    assert_eq!(decoded(&mcp["content"][4]["resource"]["blob"]), [37, 80]);
    assert_eq!(decoded(&plain_result(&result)["content"][1]["data"]), [0, 255, 7]);
    let claude = anthropic_tool_result(&result);
    assert_eq!(decoded(&claude["content"][1]["source"]["data"]), [0, 255, 7]);
    assert_eq!(claude["content"][4]["type"], "document");
    // A sound has no block of its own there, but is still mentioned.
    assert_eq!(claude["content"][2]["text"], "[audio audio/wav, 1 bytes]");
}

#[test]
fn a_failed_call_does_not_promise_structured_content() {
    let (_, failure) = results().into_iter().find(|(name, _)| *name == "failure").unwrap();
    let schema = json!({"type": "object"});
    let answer = mcp_call_tool_result(&failure, Some(&schema), McpData::Objects);
    assert_eq!(answer["isError"], true);
    assert!(answer.get("structuredContent").is_none());
    assert_eq!(answer["_meta"]["toolcrib/error_kind"], "unavailable");
    assert_eq!(anthropic_tool_result(&failure)["is_error"], true);
}
