//! MCP, for whoever the token says is asking.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use schemars::JsonSchema;
use tower::Service as _;

use crate::client::Client;

/// A JSON-RPC message of MCP.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "read by the MCP service; here it is only described")]
pub(crate) struct Message {
    /// Always `2.0`.
    jsonrpc: String,
    /// The method; absent in answers.
    method: Option<String>,
}

pub(crate) async fn serve(
    Extension(client): Extension<Arc<Client>>,
    request: Request<Body>,
) -> Response {
    let mut service = client.mcp.clone();
    let Ok(response) = service.call(request).await;
    response.map(Body::new)
}
