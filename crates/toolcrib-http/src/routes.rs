//! Which path is answered by what.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Request, StatusCode};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::IntoResponse;
use axum::routing::get;
use serde_json::json;
use toolcrib_mcp::McpHttpService;
use tower::{Layer, Service};

use crate::admission::{Admission, admit};
use crate::problem::{self, Problem};
use crate::server::Gauges;
use crate::{Token, bearer};

/// Everything the listener answers. `token` is absent where nobody is asked for one.
pub(crate) fn app(
    mcp: McpHttpService,
    token: Option<Token>,
    admission: Admission,
    gauges: Gauges,
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
    let open = Router::new().route("/health", get(health)).with_state(gauges);
    let routes =
        guarded.merge(open).fallback(unknown_path).layer(map_response(problem::from_bare_text));
    // Around the router and not on its routes: admission comes before routing.
    from_fn_with_state(Arc::new(admission), admit).layer(routes)
}

/// That the server lives, and numbers: no token is asked for here, so nothing is named.
async fn health(State(gauges): State<Gauges>) -> impl IntoResponse {
    let mut record = json!({"status": "ok"});
    for (name, number) in gauges() {
        record[name] = json!(number);
    }
    ([(CONTENT_TYPE, "application/json")], record.to_string())
}

async fn unknown_path() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "nothing is served here: MCP clients connect to /mcp")
}
