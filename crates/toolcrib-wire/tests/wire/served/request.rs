//! Requests for responses.

use serde_json::{Value, json};
use toolcrib_tool::InputFormat;
use toolcrib_wire::model::{RequestHead, ToolChoice, Wire};
use toolcrib_wire::responses::{
    AllowedTool, BuiltInKind, CompactRequest, McpApproval, RequestTool, RequestToolChoice,
    ResponseRequest, TextFormat,
};

pub(crate) fn read(body: &Value) -> ResponseRequest {
    ResponseRequest::read(&body.to_string()).unwrap()
}

#[test]
fn every_member_is_read() {
    let request = read(&json!({
        "model": "coder",
        "input": "Hello.",
        "instructions": "Be brief.",
        "previous_response_id": "resp_1",
        "parallel_tool_calls": false,
        "max_tool_calls": 3,
        "max_output_tokens": 100,
        "temperature": 0.5,
        "top_p": 1,
        "presence_penalty": -1,
        "frequency_penalty": 0.25,
        "top_logprobs": 0,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {
            "format": {"type": "json_schema", "name": "door", "schema": {"type": "object"}, "strict": true},
            "verbosity": "high",
        },
        "include": ["reasoning.encrypted_content", "file_search_call.results"],
        "store": true,
        "background": true,
        "stream": true,
        "stream_options": {"include_obfuscation": true},
        "truncation": "auto",
        "context_management": [{"type": "compaction", "compact_threshold": 1000}],
        "metadata": {"a": "b"},
        "service_tier": "flex",
        "safety_identifier": "u1",
        "prompt_cache_key": "k",
        "user": null,
        "prompt_cache_retention": "24h",
        "tool_files": {"file_search": [{"vector_store_id": "v"}]},
    }));
    assert_eq!(request.model.as_deref(), Some("coder"));
    assert_eq!(request.previous_response_id.as_deref(), Some("resp_1"));
    assert_eq!(request.max_tool_calls, Some(3));
    assert_eq!(request.options.max_output_tokens, Some(100));
    assert_eq!(request.options.reasoning_effort.as_deref(), Some("low"));
    assert!(
        matches!(&request.options.format, TextFormat::JsonSchema { name, .. } if name == "door")
    );
    assert!(request.include.encrypted_reasoning && request.include.file_search_results);
    assert!(!request.include.code_outputs);
    assert!(request.store && request.background && request.stream && request.may_truncate);
    assert_eq!(request.compact_threshold, Some(1000));
    assert_eq!(request.metadata["a"], "b");
    assert_eq!(request.unused, ["prompt_cache_retention", "safety_identifier", "service_tier"]);

    let echo = request.echo();
    for (key, value) in [
        ("temperature", json!(0.5)),
        ("top_p", json!(1)),
        ("presence_penalty", json!(-1)),
        ("truncation", json!("auto")),
        ("service_tier", json!("default")),
        ("parallel_tool_calls", json!(false)),
        ("reasoning", json!({"effort": "low", "summary": "auto"})),
        ("metadata", json!({"a": "b"})),
    ] {
        assert_eq!(echo[key], value, "{key}");
    }
    assert_eq!(echo["text"]["verbosity"], "high");
}

#[test]
fn what_is_left_out_or_null_has_its_default() {
    for body in [json!({}), json!({"model": null, "store": null, "tools": null, "text": null})] {
        let request = read(&body);
        assert!(request.model.is_none() && request.store && !request.stream && request.generate);
        assert_eq!(request.tool_choice, RequestToolChoice::Auto);
        let echo = request.echo();
        assert_eq!(echo["tools"], json!([]));
        assert_eq!(echo["tool_choice"], "auto");
        assert_eq!(echo["text"], json!({"format": {"type": "text"}}));
        assert_eq!((&echo["temperature"], &echo["top_p"]), (&json!(1), &json!(1)));
        assert_eq!(echo["reasoning"], Value::Null);
    }
}

#[test]
fn tools_of_every_type_are_read_and_repeated_without_secrets() {
    let request = read(&json!({"model": "m", "input": "", "tools": [
        {"type": "function", "name": "f", "description": "F.", "parameters": {"type": "object"}, "strict": true},
        {"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "regex", "definition": "a+"}},
        {"type": "web_search", "search_context_size": "low"},
        {"type": "local_shell"},
        {"type": "mcp", "server_label": "files", "allowed_tools": {"tool_names": ["read"]},
         "require_approval": {"never": {"tool_names": ["read"]}}},
    ]}));
    let [function, custom, search, shell, mcp] = request.tools.as_slice() else { panic!() };
    assert_eq!(function.to_value()["strict"], true);
    let definition = function.client_definition(0).unwrap().unwrap();
    assert_eq!((definition.name(), definition.description()), ("f", "F."));
    assert!(
        matches!(custom, RequestTool::Custom(tool) if tool.format == InputFormat::Regex { definition: "a+".to_owned() })
    );
    assert!(custom.client_definition(1).unwrap().is_ok());
    assert!(matches!(search, RequestTool::BuiltIn(tool) if tool.kind == BuiltInKind::WebSearch));
    assert!(search.client_definition(2).is_none());
    assert_eq!(search.to_value()["search_context_size"], "low");
    assert!(shell.client_definition(3).unwrap().is_ok());
    let RequestTool::Mcp(server) = mcp else { panic!() };
    assert_eq!(server.allowed_tools.as_deref(), Some(&["read".to_owned()][..]));
    assert!(matches!(&server.approval, McpApproval::ByTool { never, .. } if never == &["read"]));
    assert_eq!(mcp.to_value()["server_label"], "files");
}

#[test]
fn choices_say_which_tools_the_model_may_call() {
    let tools = json!([{"type": "function", "name": "f"}, {"type": "custom", "name": "g"}]);
    let choose =
        |choice: Value| read(&json!({"model": "m", "tools": tools, "tool_choice": choice}));
    let allowed = choose(json!({
        "type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}, {"type": "function", "name": "h"}],
    }));
    assert!(allowed.tool_choice.allows(&allowed.tools[0]));
    assert!(!allowed.tool_choice.allows(&allowed.tools[1]));
    assert_eq!(allowed.tool_choice.to_model(), ToolChoice::Required);
    let unknown: Vec<_> = allowed.tool_choice.unknown_tools(&allowed.tools).collect();
    assert_eq!(
        unknown,
        [("tool_choice.tools[1]".to_owned(), &AllowedTool::Function("h".to_owned()))]
    );
    let one = choose(json!({"type": "custom", "name": "g"}));
    assert_eq!(one.tool_choice.to_model(), ToolChoice::Tool("g".to_owned()));
    assert_eq!(one.tool_choice.to_value(), json!({"type": "custom", "name": "g"}));
    let none = choose(json!("none"));
    assert!(!none.tool_choice.allows(&none.tools[0]));
}

#[test]
fn options_reach_each_provider_or_are_named() {
    let request = read(&json!({
        "model": "m", "temperature": 0.5, "top_p": 0.9, "presence_penalty": 1, "max_output_tokens": 9,
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}, "verbosity": "low"},
    }));
    let apply = |wire| {
        let mut head = RequestHead::new("m", "p/m");
        let left_out = request.options.apply(wire, &mut head);
        assert_eq!((head.temperature, head.max_output_tokens), (Some(0.5), Some(9)));
        assert_eq!(head.extra["top_p"], 0.9);
        (left_out, Value::Object(head.extra))
    };
    let (left_out, extra) = apply(Wire::Chat);
    assert!(left_out.is_empty(), "{left_out:?}");
    assert_eq!(extra["response_format"]["json_schema"]["name"], "n");
    let (left_out, extra) = apply(Wire::Responses);
    assert_eq!(left_out, ["presence_penalty"]);
    assert_eq!(extra["text"]["format"]["name"], "n");
    let (left_out, _) = apply(Wire::Anthropic);
    assert_eq!(left_out, ["presence_penalty", "text.format", "text.verbosity"]);
}

#[test]
fn groups_of_tools_are_left_out_and_named() {
    let body = json!({"model": "m", "input": "Hi.", "tools": [
        {"type": "namespace", "name": "agents", "description": "Agents.", "tools": []},
        {"type": "function", "name": "look", "parameters": {}},
    ]});
    let request = ResponseRequest::read(&body.to_string()).unwrap();
    assert_eq!((request.tools.len(), request.unused), (1, vec!["tools[0]".to_owned()]));
}

#[test]
fn a_message_on_a_websocket_streams_always_and_may_only_prepare() {
    for message in [
        json!({"type": "response.create", "model": "m", "input": "Hi.", "generate": false, "stream": true}),
        json!({"type": "response.create", "response": {"model": "m", "input": "Hi.", "generate": false}}),
    ] {
        let request = ResponseRequest::read_socket(&message.to_string()).unwrap();
        assert!(request.stream && !request.generate);
    }
    for (message, param) in [
        (json!({"type": "response.create", "stream": false}), "stream"),
        (json!({"type": "response.create", "background": true}), "background"),
        (json!({"type": "session.update"}), "type"),
        (json!({"model": "m"}), "type"),
    ] {
        let error = ResponseRequest::read_socket(&message.to_string()).unwrap_err();
        assert_eq!(error.param.as_deref(), Some(param), "{message}");
    }
}

#[test]
fn other_bodies_have_their_own_members() {
    let error = CompactRequest::read(r#"{"input": "x"}"#).unwrap_err();
    assert_eq!((error.status, error.param.as_deref()), (400, Some("model")));
    let compact = CompactRequest::read(
        r#"{"model": "m", "input": [{"type": "compaction", "encrypted_content": "s"}]}"#,
    );
    assert_eq!(compact.unwrap().input.len(), 1);
    assert!(
        ResponseRequest::read_counted(r#"{"model": "m", "input": "x", "personality": "friendly"}"#)
            .is_ok()
    );
    let error = ResponseRequest::read_counted(r#"{"model": "m", "stream": true}"#).unwrap_err();
    assert_eq!(error.param.as_deref(), Some("stream"));
}
