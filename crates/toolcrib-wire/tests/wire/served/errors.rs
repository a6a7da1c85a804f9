//! Wrong requests name their parameter.

use serde_json::{Value, json};
use toolcrib_wire::chat::ChatRequest;
use toolcrib_wire::responses::ResponseRequest;

#[track_caller]
fn refused(body: &Value, param: &str, code: &str) {
    let error = ResponseRequest::read(&body.to_string()).unwrap_err();
    assert_eq!(error.param.as_deref(), Some(param), "{error}");
    assert_eq!(error.code.as_deref(), Some(code), "{error}");
    assert_eq!(error.status, 400);
    assert!(error.message.contains(param.split('.').next_back().unwrap()), "{error}");
}

#[test]
fn requests_for_responses() {
    let function = |extra: Value| {
        let mut tool = json!({"type": "function", "name": "f"});
        tool.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({"tools": [tool]})
    };
    let of = |item: Value| json!({"input": [{"role": "user", "content": "a"}, item]});
    for (body, param, code) in [
        (json!({"mdoel": "m"}), "mdoel", "unknown_parameter"),
        (json!({"model": 7}), "model", "invalid_type"),
        (json!({"model": ""}), "model", "invalid_value"),
        (json!({"temperature": 3}), "temperature", "invalid_value"),
        (json!({"top_logprobs": 2}), "top_logprobs", "unsupported_parameter"),
        (
            json!({"include": ["message.output_text.logprobs"]}),
            "include[0]",
            "unsupported_parameter",
        ),
        (json!({"include": ["everything"]}), "include[0]", "invalid_value"),
        (json!({"prompt": {"id": "p"}}), "prompt", "unsupported_parameter"),
        (json!({"store": false, "background": true}), "background", "invalid_value"),
        (
            json!({"previous_response_id": "a", "conversation": "b"}),
            "conversation",
            "mutually_exclusive_parameters",
        ),
        (json!({"metadata": {"a": 1}}), "metadata.a", "invalid_type"),
        (
            json!({"text": {"format": {"type": "json_schema", "name": "n"}}}),
            "text.format.schema",
            "missing_required_parameter",
        ),
        (json!({"reasoning": {"effort": "huge"}}), "reasoning.effort", "invalid_value"),
        (json!({"tools": [{"type": "function"}]}), "tools[0].name", "missing_required_parameter"),
        (json!({"tools": [{"type": "computer"}]}), "tools[0].type", "unsupported_parameter"),
        (json!({"tools": [{"type": "function", "name": "a b"}]}), "tools[0].name", "invalid_value"),
        (
            function(json!({"defer_loading": true})),
            "tools[0].defer_loading",
            "unsupported_parameter",
        ),
        (function(json!({"colour": 1})), "tools[0].colour", "unknown_parameter"),
        (
            json!({"tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "f"}]}),
            "tools[1]",
            "invalid_value",
        ),
        (
            json!({"tools": [{"type": "mcp", "server_label": "a", "authorization": "t"}]}),
            "tools[0].authorization",
            "unsupported_parameter",
        ),
        (
            json!({"tool_choice": {"type": "allowed_tools", "tools": []}}),
            "tool_choice.tools",
            "invalid_value",
        ),
        (json!({"input": 7}), "input", "invalid_type"),
        (of(json!({"role": "robot", "content": ""})), "input[1].role", "invalid_value"),
        (of(json!({"role": "user"})), "input[1].content", "missing_required_parameter"),
        (
            of(json!({"role": "user", "content": [{"type": "input_image", "file_id": "f"}]})),
            "input[1].content[0]",
            "invalid_value",
        ),
        (
            of(
                json!({"role": "user", "content": [{"type": "input_image", "image_url": "data:x"}]}),
            ),
            "input[1].content[0]",
            "invalid_value",
        ),
        (
            of(json!({"type": "function_call_output", "output": ""})),
            "input[1].call_id",
            "missing_required_parameter",
        ),
        (
            of(json!({"type": "function_call_output", "call_id": "c", "output": 7})),
            "input[1].output",
            "invalid_type",
        ),
        (
            of(json!({"type": "mcp_approval_response", "approval_request_id": "a"})),
            "input[1].approve",
            "missing_required_parameter",
        ),
        (of(json!({"type": "compaction_trigger"})), "input[1]", "unsupported_parameter"),
        (
            json!({"input": [
                {"type": "function_call_output", "call_id": "c", "output": ""},
                {"type": "function_call_output", "call_id": "c", "output": ""},
            ]}),
            "input[1]",
            "invalid_value",
        ),
    ] {
        refused(&body, param, code);
    }
}

#[test]
fn bodies_that_are_no_object() {
    for body in ["", "[]", "{\"a\": 1, \"a\": 2}", "{\"model\": \"\\ud800\"}"] {
        let error = ResponseRequest::read(body).unwrap_err();
        assert_eq!(error.code.as_deref(), Some("invalid_json"), "{body}");
    }
}

#[test]
fn requests_for_chat_completions() {
    let with = |extra: Value| {
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "a"}]});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        body
    };
    let said = |message: Value| with(json!({"messages": [message]}));
    for (body, param) in [
        (json!({"messages": [{"role": "user", "content": "a"}]}), "model"),
        (json!({"model": "m"}), "messages"),
        (json!({"model": "m", "messages": []}), "messages"),
        (with(json!({"n": 2})), "n"),
        (with(json!({"logprobs": true})), "logprobs"),
        (with(json!({"functions": []})), "functions"),
        (with(json!({"function_call": "auto"})), "function_call"),
        (with(json!({"audio": {}})), "audio"),
        (with(json!({"modalities": ["audio"]})), "modalities[0]"),
        (with(json!({"top_k": 3})), "top_k"),
        (with(json!({"stream_options": {"colour": 1}})), "stream_options.colour"),
        (with(json!({"stop": ["a", "b", "c", "d", "e"]})), "stop"),
        (with(json!({"tools": [{"type": "function", "function": {}}]})), "tools[0].function.name"),
        (with(json!({"tools": [{"type": "function", "name": "f"}]})), "tools[0].name"),
        (with(json!({"response_format": {"type": "json_schema"}})), "response_format.name"),
        (said(json!({"role": "function", "name": "f", "content": ""})), "messages[0].role"),
        (said(json!({"role": "assistant"})), "messages[0].content"),
        (said(json!({"role": "tool", "content": ""})), "messages[0].tool_call_id"),
        (
            said(json!({"role": "user", "content": [{"type": "video"}]})),
            "messages[0].content[0].type",
        ),
        (
            said(
                json!({"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "%", "format": "wav"}}]}),
            ),
            "messages[0].content[0].input_audio",
        ),
        (
            said(
                json!({"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {}}]}),
            ),
            "messages[0].tool_calls[0].function.name",
        ),
        (said(json!({"role": "user", "content": "", "colour": 1})), "messages[0].colour"),
    ] {
        let error = ChatRequest::read(&body.to_string()).unwrap_err();
        assert_eq!(error.param.as_deref(), Some(param), "{error}: {body}");
        assert_eq!(error.status, 400);
    }
}
