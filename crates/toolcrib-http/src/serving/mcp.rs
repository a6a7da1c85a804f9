//! The MCP endpoint, which serves each client through its own MCP service.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::Path;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use toolcrib_mcp::McpHttpService;
use toolcrib_tool::visible;
use tower::Service as _;

use crate::api::problem::Problem;
use crate::auth::client::{Client, ToolsetError};

/// An MCP message in JSON-RPC.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "read by the MCP service; here it is only described")]
pub(crate) struct Message {
    /// Always `2.0`.
    jsonrpc: String,
    /// The method; absent in responses.
    method: Option<String>,
}

pub(crate) async fn serve(
    Extension(client): Extension<Arc<Client>>,
    request: Request<Body>,
) -> Response {
    answer(client.mcp().clone(), request).await
}

/// The same, limited to one toolset: nothing else is listed, found, described or called.
pub(crate) async fn serve_within(
    Extension(client): Extension<Arc<Client>>,
    Path(toolset): Path<String>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let service = client.mcp_within(&toolset).map_err(|none| match none {
        ToolsetError::Unknown => Problem::not_found(format!(
            "there is no toolset named `{}`: toolsets are defined under `toolsets` in the server's config",
            visible(&toolset)
        )),
        ToolsetError::Bound(bound) => Problem::new(
            StatusCode::FORBIDDEN,
            format!("the token of `{}` is for the toolset `{bound}`: use /mcp", client.name),
        ),
    })?;
    Ok(answer(service, request).await)
}

async fn answer(mut service: McpHttpService, request: Request<Body>) -> Response {
    let Ok(response) = service.call(request).await;
    response.map(Body::new)
}
