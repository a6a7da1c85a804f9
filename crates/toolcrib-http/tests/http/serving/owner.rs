//! The owner's socket: every right without a token, and none of it for clients of the listener.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::timeout;
use toolcrib_http::{HttpServer, OwnerClient, OwnerError, OwnerSocket, Right, ServerConfig};

use crate::fixture::{client, config, served, start};
use crate::raw_client::Ask;

#[tokio::test]
async fn the_owner_has_every_right_without_a_token() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).unwrap();
    let path = directory.path().join("1.sock");
    let socket = OwnerSocket::bind(&path).await.unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let (crib, mcp) = served(Arc::default());
    let server = HttpServer::for_owner(socket, crib, mcp).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async move { drop(stopped.await) }));

    let owner = OwnerClient::new(&path);
    assert_eq!(owner.get("/v1/status").await.unwrap()["reserved"], json!(["a"]));
    let called = owner.post("/v1/tools/echo/call", Some(&json!({"arguments": {"x": 1}}))).await;
    assert_eq!(called.unwrap()["data"], json!({"x": 1}));
    let status = owner.get("/v1/names/echo").await.unwrap();
    assert_eq!(status["owner"], "host fixture");
    let released = owner.post("/v1/names/echo/release", None).await.unwrap();
    assert_eq!(released["released"], false);
    // If the server refuses, the error contains its message.
    let refused = owner.post("/v1/reload", None).await.unwrap_err();
    assert_eq!(refused.status(), Some(409));
    assert_eq!(refused.to_string(), "nothing was changed: a.yaml is broken");

    stop.send(()).unwrap();
    timeout(Duration::from_secs(20), serving).await.expect("an end in time").unwrap().unwrap();
    assert!(!path.exists());
    let gone = owner.get("/v1/status").await.unwrap_err();
    assert!(matches!(gone, OwnerError::Connection { .. }), "{gone}");
}

#[tokio::test]
async fn a_client_that_may_only_call_reaches_nothing_that_operates_the_server() {
    let tokens = [client("model", |model| model.rights = vec![Right::Call])];
    let server = start(ServerConfig { tokens: tokens.into(), ..config() }).await;
    let document = Ask::new(server.address, "GET /openapi.json").send().await.json();
    let mut refused = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let needs = operation["description"].as_str().unwrap_or_default();
            let operates = ["`approve`", "`observe`", "`operate`"];
            if !operates.iter().any(|right| needs.contains(right)) || needs.contains("`call`") {
                continue;
            }
            let path = path.replace("{id}", "1").replace("{name}", "echo");
            let line = format!("{} {path}", method.to_uppercase());
            let answer = Ask::new(server.address, &line).of("model").json(&json!({})).send().await;
            assert_eq!(answer.status, 403, "{line}: {}", answer.body);
            refused += 1;
        }
    }
    assert!(refused >= 8, "{refused}");
    // It is no tool or method of MCP either.
    let ask = |method: &str| {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}});
        Ask::mcp(server.address, message).of("model").send()
    };
    let listed = ask("tools/list").await.json();
    let tools = listed["result"]["tools"].as_array().unwrap();
    let is_operation = |tool: &Value| {
        let name = tool["name"].as_str().unwrap();
        ["reload", "release", "status", "stats", "audit", "approve"].contains(&name)
    };
    assert!(!tools.iter().any(is_operation), "{listed}");
    assert_eq!(ask("reload").await.json()["error"]["code"], -32601);
    server.end().await;
}
