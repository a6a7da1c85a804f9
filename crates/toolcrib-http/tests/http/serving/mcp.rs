//! MCP through the listener, in both revisions, and the answers to invalid requests.

use serde_json::{Value, json};
use toolcrib_http::{Right, ServerConfig};

use crate::fixture::{Running, TOKEN, client, config, start, start_with};
use crate::raw_client::{Ask, Reply};

fn message(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn stateless(ask: Ask, method: &str, name: Option<&str>) -> Ask {
    let ask = ask.with("mcp-protocol-version", "2026-07-28").with("mcp-method", method);
    name.into_iter().fold(ask, |ask, name| ask.with("mcp-name", name))
}

fn with_meta(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

#[tokio::test]
async fn a_client_with_a_handshake_initialises_lists_and_calls() {
    let server = start(config()).await;
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    });
    let hello = Ask::mcp(server.address, message("initialize", &hello)).send().await;
    assert_eq!((hello.status, hello.header("content-type")), (200, Some("text/event-stream")));
    let session = hello.header("mcp-session-id").unwrap().to_owned();

    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let ready = Ask::mcp(server.address, ready).with("mcp-session-id", &session);
    assert_eq!(ready.send().await.status, 202);

    // A request without a session is independent.

    let list = Ask::mcp(server.address, message("tools/list", &json!({}))).send().await.json();
    let names: Vec<_> = list["result"]["tools"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 11);

    let call = json!({"name": "echo", "arguments": {"x": [1, "é"]}});
    let answer = Ask::mcp(server.address, message("tools/call", &call)).send().await.json();
    assert_eq!(answer["result"]["structuredContent"], json!({"x": [1, "é"]}));
    server.end().await;
}

#[tokio::test]
async fn a_client_without_a_handshake_discovers_lists_and_calls() {
    let server = start(config()).await;
    let ask = |method: &str, name: Option<&str>, params: Value| {
        stateless(Ask::mcp(server.address, message(method, &with_meta(params))), method, name)
    };
    let found = ask("server/discover", None, json!({})).send().await.json();
    assert!(
        found["result"]["supportedVersions"].as_array().unwrap().contains(&"2026-07-28".into())
    );
    let list = ask("tools/list", None, json!({})).send().await.json();
    assert_eq!(list["result"]["ttlMs"], 0);
    let call = json!({"name": "echo", "arguments": {"x": 1}});
    let answer = ask("tools/call", Some("echo"), call.clone()).send().await.json();
    assert_eq!(answer["result"]["structuredContent"], json!({"x": 1}));

    // Proxies rely on the headers, so headers that contradict the body are refused.
    let lie = ask("tools/call", Some("wait"), call).send().await;
    assert_eq!(lie.status, 400);
    assert_eq!(lie.json()["error"]["code"], -32020);
    server.end().await;
}

#[tokio::test]
async fn a_malformed_body_is_a_json_rpc_error_and_the_server_lives_on() {
    let server = start(config()).await;
    for (body, code) in [("{\"jsonrpc\":", -32700), ("[1]", -32600)] {
        let refused = Ask::mcp(server.address, body).send().await;
        assert_eq!(refused.status, 400);
        assert_eq!(refused.json()["error"]["code"], code);
    }
    let list = Ask::mcp(server.address, message("tools/list", &json!({}))).send().await;
    assert_eq!(list.status, 200);
    server.end().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_before_it_is_sent() {
    let server = start(config()).await;
    let announced = Ask::mcp(server.address, "").with("content-length", "4194305").send().await;
    assert_eq!(announced.status, 413);
    assert!(announced.problem().contains("4194304"));
    server.end().await;
}

#[tokio::test]
async fn a_body_of_unknown_length_is_refused_once_it_is_over_the_limit() {
    let server =
        start(ServerConfig { body_limit: toolcrib_tool::units::SizeLimit(64), ..config() }).await;
    let chunk = format!("41\r\n{}\r\n", "x".repeat(0x41));
    let chunked = Ask::mcp(server.address, "")
        .body(chunk)
        .without("content-length")
        .with("transfer-encoding", "chunked");
    let refused = chunked.send().await;
    assert_eq!(refused.status, 413);
    server.end().await;
}

#[tokio::test]
async fn refusals_of_the_transport_are_problems_too() {
    let server = start(config()).await;
    let ask = Ask::mcp(server.address, message("tools/list", &json!({})));
    let unacceptable = ask.clone().with("accept", "text/html").send().await;
    assert_eq!(unacceptable.status, 406);
    assert!(unacceptable.problem().contains("text/event-stream"));
    let unsupported = ask.with("content-type", "text/plain").send().await;
    assert_eq!(unsupported.status, 415);
    unsupported.problem();
    let bearer = format!("Bearer {TOKEN}");
    let get = Ask::new(server.address, "GET /mcp").with("authorization", &bearer).send().await;
    assert_eq!(get.status, 405);
    assert_eq!(get.header("allow"), Some("POST"));
    get.problem();
    server.end().await;
}

async fn listed(server: &Running, who: Option<&str>, path: &str) -> Reply {
    let ask =
        Ask::mcp(server.address, message("tools/list", &json!({}))).on(&format!("POST {path}"));
    let ask = match who {
        Some(who) => ask.of(who),
        None => ask,
    };
    ask.send().await
}

fn names(list: &Reply) -> Vec<String> {
    let list = list.json();
    let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn each_toolset_has_an_endpoint_beyond_which_nothing_is_listed_or_called() {
    let server = start(config()).await;
    assert_eq!(names(&listed(&server, None, "/mcp/echoes").await), ["echo"]);
    assert_eq!(names(&listed(&server, None, "/mcp").await).len(), 11);
    let call = |name: &str| {
        let call = message("tools/call", &json!({"name": name, "arguments": {"x": 1}}));
        Ask::mcp(server.address, call).on("POST /mcp/echoes").send()
    };
    assert_eq!(call("echo").await.json()["result"]["structuredContent"], json!({"x": 1}));
    assert_eq!(call("whoami").await.json()["error"]["code"], -32602);
    // A session belongs to the endpoint where it was opened.
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    });
    let hello = Ask::mcp(server.address, message("initialize", &hello)).on("POST /mcp/echoes");
    let session = hello.send().await.header("mcp-session-id").unwrap().to_owned();
    let list = message("tools/list", &json!({}));
    let elsewhere = Ask::mcp(server.address, list).with("mcp-session-id", &session).send().await;
    assert_eq!(elsewhere.status, 404);
    let unknown = listed(&server, None, "/mcp/nowhere").await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.problem().contains("there is no toolset named `nowhere`"));
    server.end().await;
}

#[tokio::test]
async fn a_token_for_one_toolset_reaches_no_other() {
    let tokens = [
        client("ada", |_| {}),
        client("bob", |bob| bob.toolset = Some("echoes".into())),
        client("watcher", |watcher| watcher.rights = vec![Right::Observe]),
    ];
    let server = start(ServerConfig { tokens: tokens.into(), ..config() }).await;
    assert_eq!(names(&listed(&server, Some("ada"), "/mcp/greetings").await), ["greet"]);
    assert_eq!(names(&listed(&server, Some("bob"), "/mcp/echoes").await), ["echo"]);
    // This includes missing ones, so that nobody learns which exist.
    for other in ["/mcp/greetings", "/mcp/nowhere"] {
        let refused = listed(&server, Some("bob"), other).await;
        assert_eq!((refused.status, refused.kind().as_str()), (403, "forbidden"));
        assert!(refused.problem().contains("is for the toolset `echoes`: use /mcp"));
    }
    assert_eq!(listed(&server, Some("watcher"), "/mcp/echoes").await.status, 403);
    server.end().await;
    // A session for all clients binds them.
    let bound = ServerConfig { toolset: Some("echoes".into()), ..config() };
    let server = start(bound).await;
    assert_eq!(names(&listed(&server, None, "/mcp/echoes").await), ["echo"]);
    assert_eq!(listed(&server, None, "/mcp/greetings").await.status, 403);
    server.end().await;
}

/// The result of a call of `remove` by a client that can be asked and always consents.
async fn remove_by_an_eager_client(server: &Running, who: Option<&str>) -> Value {
    call_by_an_eager_client(server, who, "remove", json!({})).await
}

/// The same for any tool.
async fn call_by_an_eager_client(
    server: &Running,
    who: Option<&str>,
    tool: &str,
    arguments: Value,
) -> Value {
    let mut params = with_meta(json!({
        "name": tool,
        "arguments": arguments,
        "inputResponses": {"answer": {"action": "accept", "content": {"approve": true}}},
    }));
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    params["_meta"][capabilities] = json!({"elicitation": {"form": {}}});
    for _ in 0..3 {
        let ask = Ask::mcp(server.address, message("tools/call", &params));
        let ask = match who {
            Some(who) => ask.of(who),
            None => ask,
        };
        let answer = stateless(ask, "tools/call", Some(tool)).send().await.json();
        let result = answer["result"].clone();
        if result["resultType"] != "input_required" {
            return result;
        }
        params["requestState"] = result["requestState"].clone();
    }
    panic!("it is asked again and again");
}

#[tokio::test]
async fn over_mcp_a_call_through_tool_call_asks_and_goes_on() {
    let server = start_with(config(), toolcrib_core::meta::meta_entries()).await;
    let arguments = json!({"name": "remove", "arguments": {"path": "a"}});
    let removed = call_by_an_eager_client(&server, None, "tool_call", arguments).await;
    assert_ne!(removed["isError"], true, "{removed}");
    assert_eq!(removed["content"][0]["text"], r#"removed {"path":"a"}"#, "{removed}");
    server.end().await;
}

#[tokio::test]
async fn over_mcp_a_tool_whose_own_call_needs_approval_asks_and_goes_on_where_it_was() {
    let server = start_with(config(), [crate::api::runs::cleaning()]).await;
    let cleaned = call_by_an_eager_client(&server, None, "clean", json!({})).await;
    assert_eq!(cleaned["content"][0]["text"], r#"1: removed {"path":"a"}"#, "{cleaned}");
    server.end().await;
}

/// Settings with a client that may only call, and one that may also approve.
fn agent_and_approver() -> ServerConfig {
    let with = |name, rights: &[Right]| {
        let rights = rights.to_vec();
        client(name, move |client: &mut toolcrib_http::ClientConfig| client.rights = rights)
    };
    let tokens = [with("agent", &[Right::Call]), with("person", &[Right::Call, Right::Approve])];
    ServerConfig { tokens: tokens.into(), ..config() }
}

#[tokio::test]
async fn over_mcp_a_tool_that_waits_is_not_begun_again_when_its_call_is_repeated() {
    let server = start_with(agent_and_approver(), [crate::api::runs::cleaning()]).await;
    let refused = call_by_an_eager_client(&server, Some("agent"), "clean", json!({})).await;
    assert_eq!(refused["_meta"]["toolcrib/error_kind"], "requires_approval", "{refused}");
    let list = Ask::api(server.address, "GET /v1/approvals").of("person").send().await.json();
    let id = list["approvals"][0]["id"].as_str().expect("it waits").to_owned();
    let approve = Ask::api(server.address, &format!("POST /v1/approvals/{id}")).of("person");
    let decided = approve.json(&json!({"decision": "approve"})).send().await;
    assert!(decided.status < 300, "{}", decided.body);
    let again = call_by_an_eager_client(&server, Some("agent"), "clean", json!({})).await;
    assert_eq!(again["content"][0]["text"], r#"1: removed {"path":"a"}"#, "{again}");
    server.end().await;
}

#[tokio::test]
async fn over_mcp_only_clients_with_the_right_to_approve_are_asked_for_approval() {
    let server = start(agent_and_approver()).await;
    let refused = remove_by_an_eager_client(&server, Some("agent")).await;
    assert_eq!(refused["_meta"]["toolcrib/error_kind"], "requires_approval", "{refused}");
    for allowed in [Some("person"), None] {
        let removed = remove_by_an_eager_client(&server, allowed).await;
        assert_ne!(removed["isError"], true, "{removed}");
    }
    server.end().await;

    let open = start(ServerConfig { token: None, no_auth: true, ..config() }).await;
    let refused = remove_by_an_eager_client(&open, None).await;
    assert_eq!(refused["_meta"]["toolcrib/error_kind"], "requires_approval", "{refused}");
    open.end().await;
}
