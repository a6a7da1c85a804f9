//! Which path is answered by what.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Request, StatusCode};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::IntoResponse;
use axum::routing::get;
use toolcrib_mcp::McpHttpService;
use tower::{Layer, Service};

use crate::admission::{Admission, admit};
use crate::problem::{self, Problem};
use crate::{Token, bearer};

/// Everything the listener answers. `token` is absent where nobody is asked for one.
pub(crate) fn app(
    mcp: McpHttpService,
    token: Option<Token>,
    admission: Admission,
) -> impl Service<
    Request<Body>,
    Response = axum::response::Response,
    Error = std::convert::Infallible,
    Future: Send,
> + Clone
+ Send
+ 'static {
    // A route added here is behind the token; only `open` is not.
    let mut guarded = Router::new().route_service("/mcp", mcp);
    if let Some(token) = token {
        guarded = guarded.route_layer(from_fn_with_state(Arc::new(token), bearer::require));
    }
    let open = Router::new().route("/health", get(health));
    let routes =
        guarded.merge(open).fallback(unknown_path).layer(map_response(problem::from_bare_text));
    // Around the router and not on its routes: admission comes before routing.
    from_fn_with_state(Arc::new(admission), admit).layer(routes)
}

/// That the server lives, and nothing about what it serves: no token is asked for here.
async fn health() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], r#"{"status":"ok"}"#)
}

async fn unknown_path() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "nothing is served here: MCP clients connect to /mcp")
}
