//! Revision 2025-11-25: a handshake, then requests in its session.

use serde_json::{Value, json};
use toolcrib_mcp::McpError;

use crate::fixture;
use crate::wire::Wire;

#[tokio::test]
async fn the_server_describes_itself_and_its_capabilities() {
    let (_wire, hello) = Wire::initialized(fixture::server()).await;
    assert_eq!(
        hello,
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {
                "logging": {},
                "tools": {"listChanged": true},
                "extensions": {"io.modelcontextprotocol/tasks": {}},
            },
            "serverInfo": {"name": "fixture", "title": "A fixture", "version": "1.2.3"},
            "instructions": "Add before you multiply.",
        })
    );
}

#[tokio::test]
async fn available_tools_are_listed_by_name_on_one_page() {
    let (mut wire, _) = Wire::initialized(fixture::server()).await;
    let answer = wire.request("tools/list", json!({})).await;
    let tools = answer["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), fixture::TOOLS);
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "add",
            "fail",
            "fail_promised",
            "lookup",
            "parts",
            "regional",
            "stats",
            "tenant",
            "wait",
            "words"
        ]
    );
    assert!(answer["result"].get("nextCursor").is_none());
    let add = &tools[0];
    assert_eq!(add["title"], "Add numbers");
    assert_eq!(add["description"], "Does add.");
    assert_eq!(add["inputSchema"]["required"], json!(["a", "b"]));
    assert_eq!(
        add["annotations"],
        json!({
            "title": "Add numbers",
            "readOnlyHint": true,
            "destructiveHint": false,
            "idempotentHint": true,
            "openWorldHint": false,
        })
    );
    let again = wire.request("tools/list", json!({})).await;
    assert_eq!(again["result"], answer["result"]);
}

#[tokio::test]
async fn output_schemas_that_do_not_allow_objects_are_wrapped() {
    let (mut wire, _) = Wire::initialized(fixture::server()).await;
    let answer = wire.request("tools/list", json!({})).await;
    let schema = |name: &str| output_schema(&answer, name);
    assert_eq!(schema("stats")["type"], "object");
    assert_eq!(schema("words")["properties"]["result"]["type"], "array");
    assert_eq!(schema("add"), Value::Null);
}

#[tokio::test]
async fn a_cursor_of_another_server_is_refused() {
    let (mut wire, _) = Wire::initialized(fixture::server()).await;
    let answer = wire.request("tools/list", json!({"cursor": "page-2"})).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert!(answer["error"]["message"].as_str().unwrap().contains("cursor"), "{answer}");
}

#[tokio::test]
async fn a_call_is_answered_with_its_text() {
    let (mut wire, _) = Wire::initialized(fixture::server()).await;
    let answer = wire.call("add", json!({"a": 2, "b": 3})).await;
    assert_eq!(
        answer["result"],
        json!({"content": [{"type": "text", "text": "5"}], "isError": false})
    );
}

#[tokio::test]
async fn data_is_structured_content_and_text() {
    let (mut wire, _) = Wire::initialized(fixture::server()).await;
    let stats = &wire.call("stats", json!({})).await["result"];
    assert_eq!(stats["structuredContent"], json!({"total": 3}));
    assert_eq!(stats["content"], json!([{"type": "text", "text": r#"{"total":3}"#}]));
    let words = &wire.call("words", json!({})).await["result"];
    assert_eq!(words["structuredContent"], json!({"result": ["b", "a"]}));
}

#[tokio::test]
async fn every_kind_of_part_arrives_as_its_own_kind() {
    let (mut wire, _) = Wire::initialized(fixture::server()).await;
    let result = &wire.call("parts", json!({})).await["result"];
    assert_eq!(
        result["content"],
        json!([
            {"type": "text", "text": "a text"},
            {"type": "image", "data": "AQID", "mimeType": "image/png"},
            {"type": "audio", "data": "BA==", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "file:///a.txt", "name": "a.txt", "mimeType": "text/plain"},
            {"type": "resource", "resource": {
                "uri": "mem://b", "mimeType": "application/zip", "blob": "BQ==",
            }},
        ])
    );
    assert_eq!(result["_meta"], json!({"toolcrib/notes": {"engine": "fast"}}));
}

#[tokio::test]
async fn a_failure_is_a_result_that_says_what_to_do() {
    let (mut wire, _) = Wire::initialized(fixture::server()).await;
    let result = &wire.call("fail", json!({})).await["result"];
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("Error executing fail: the disk is full\nFree some space."), "{text}");
    assert_eq!(result["_meta"]["toolcrib/error_kind"], "execution");
    assert_eq!(result["structuredContent"], json!({"written": 7}));
}

#[tokio::test]
async fn a_failure_contains_no_structured_content() {
    let (mut wire, _) = Wire::initialized(fixture::server()).await;
    let result = &wire.call("fail_promised", json!({})).await["result"];
    assert_eq!(result["isError"], true);
    assert!(result.get("structuredContent").is_none(), "{result}");
}

#[tokio::test]
async fn bad_arguments_are_a_result_that_names_the_problem() {
    let (mut wire, _) = Wire::initialized(fixture::server()).await;
    for arguments in [json!({"a": 1, "b": "two"}), json!({"a": 1}), json!({"a": 1, "b": 2, "c": 3})]
    {
        let result = &wire.call("add", arguments.clone()).await["result"];
        assert_eq!(result["isError"], true, "{arguments}");
        assert_eq!(result["_meta"]["toolcrib/error_kind"], "invalid_args", "{arguments}");
    }
    // Omitted arguments are an empty object.
    let answer = wire.request("tools/call", json!({"name": "add"})).await;
    assert_eq!(answer["result"]["_meta"]["toolcrib/error_kind"], "invalid_args");
}

#[tokio::test]
async fn an_unknown_name_is_a_protocol_error_that_names_the_near_one() {
    let (mut wire, _) = Wire::initialized(fixture::server()).await;
    let answer = wire.call("wrods", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("Did you mean `words`"), "{message}");
}

#[tokio::test]
async fn a_tool_that_finds_nothing_or_cannot_run_is_not_an_unknown_name() {
    let (mut wire, _) = Wire::initialized(fixture::server()).await;
    for (name, kind) in [("lookup", "not_found"), ("missing", "unavailable")] {
        let answer = wire.call(name, json!({})).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert_eq!(answer["result"]["_meta"]["toolcrib/error_kind"], kind);
    }
}

#[tokio::test]
async fn host_values_reach_the_tool_and_clients_cannot_set_them() {
    let (mut wire, _) = Wire::initialized(fixture::server()).await;
    let params = json!({"name": "tenant", "arguments": {}, "_meta": {"tenant": "evil"}});
    let answer = wire.request("tools/call", params).await;
    assert_eq!(answer["result"]["content"][0]["text"], "\"acme\"");
}

#[tokio::test]
async fn undeclared_features_are_refused() {
    let (mut wire, _) = Wire::initialized(fixture::server()).await;
    for (method, params) in [
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "x"})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "file:///x"})),
        ("resources/subscribe", json!({"uri": "file:///x"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}}),
        ),
        ("made/up", json!({})),
    ] {
        let answer = wire.request(method, params).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
}

#[tokio::test]
async fn an_invalid_line_does_not_end_the_connection() {
    let (mut wire, _) = Wire::initialized(fixture::server()).await;
    wire.send_text("{not json").await;
    let complaint = wire.receive().await;
    assert_eq!(complaint["error"]["code"], -32700, "{complaint}");
    // A client that sends back everything it receives causes no loop.
    wire.send(&complaint).await;
    wire.send(&json!({"jsonrpc": "2.0", "id": 9, "nonsense": true})).await;
    let complaint = wire.receive().await;
    assert_eq!(complaint["error"]["code"], -32600, "{complaint}");
    let answer = wire.call("add", json!({"a": 1, "b": 1})).await;
    assert_eq!(answer["result"]["content"][0]["text"], "2");
}

#[tokio::test]
async fn the_end_of_input_ends_serving_cleanly() {
    let (mut wire, _) = Wire::initialized(fixture::server()).await;
    wire.call("add", json!({"a": 1, "b": 1})).await;
    wire.close().await.unwrap();
    Wire::connect(fixture::server()).close().await.unwrap();
}

#[tokio::test]
async fn a_shutdown_ends_serving_cleanly() {
    let (mut wire, _) = Wire::initialized(fixture::server()).await;
    wire.call("add", json!({"a": 1, "b": 1})).await;
    wire.shut_down().await.unwrap();
    Wire::connect(fixture::server()).shut_down().await.unwrap();
}

#[tokio::test]
async fn a_client_that_skips_the_handshake_is_told_so() {
    let mut wire = Wire::connect(fixture::server());
    wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
        "progressToken": 1, "progress": 1,
    }}))
    .await;
    let error = wire.close().await.unwrap_err();
    assert!(matches!(error, McpError::Handshake { .. }), "{error}");
    assert!(error.to_string().contains("`initialize`"), "{error}");
}

pub(crate) fn output_schema(answer: &Value, name: &str) -> Value {
    let tools = answer["result"]["tools"].as_array().unwrap();
    tools.iter().find(|tool| tool["name"] == name).unwrap()["outputSchema"].clone()
}
