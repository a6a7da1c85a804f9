//! The same server, from the view of a complete MCP client.

use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::{ClientLifecycleMode, ClientServiceExt as _, ServiceExt as _};
use serde_json::json;

use crate::fixture;

fn add() -> CallToolRequestParams {
    let arguments = json!({"a": 20, "b": 22});
    CallToolRequestParams::new("add").with_arguments(arguments.as_object().unwrap().clone())
}

#[tokio::test]
async fn a_client_with_a_handshake_lists_and_calls() {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(theirs);
    let server = fixture::server();
    let serving =
        tokio::spawn(async move { server.serve_io(read, write, std::future::pending()).await });
    let client = ().serve(ours).await.unwrap();
    assert_eq!(client.list_all_tools().await.unwrap().len(), fixture::TOOLS);
    let result = client.call_tool(add()).await.unwrap();
    assert_eq!(result.content[0].as_text().unwrap().text, "42");
    assert!(client.list_all_prompts().await.is_err());
    client.cancel().await.unwrap();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_client_without_a_handshake_lists_and_calls() {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(theirs);
    let server = fixture::server();
    let serving =
        tokio::spawn(async move { server.serve_io(read, write, std::future::pending()).await });
    let lifecycle =
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let client = ().serve_with_lifecycle(ours, lifecycle).await.unwrap();
    assert_eq!(client.list_all_tools().await.unwrap().len(), fixture::TOOLS);
    let result = client.call_tool(add()).await.unwrap();
    assert_eq!(result.content[0].as_text().unwrap().text, "42");
    client.cancel().await.unwrap();
    serving.await.unwrap().unwrap();
}
