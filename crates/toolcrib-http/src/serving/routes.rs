//! Which path is answered by what, and what every request passes on its way.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Response;
use tower::Layer as _;
use tower::util::BoxCloneSyncService;

use crate::api::problem;
use crate::api::problem::Problem;
use crate::api::{Api, endpoints};
use crate::auth::bearer;
use crate::auth::clients::LiveClients;
use crate::auth::host_check::{Admission, admit};
use crate::auth::right::Access;
use crate::observability::request_log::observe;
use crate::observability::traffic::Traffic;
use crate::serving::request_body::{BodyLimits, collect};

/// Answers every request that the listener takes.
pub(crate) type Routes = BoxCloneSyncService<Request<Body>, Response, Infallible>;

/// Makes the routes, with the checks in front of them.
pub(crate) fn app(
    api: Api,
    clients: &Arc<LiveClients>,
    admission: Admission,
    limits: BodyLimits,
    traffic: Arc<Traffic>,
) -> Routes {
    let mut routes = Router::new();
    for endpoint in endpoints() {
        let mut handler = endpoint.routed();
        if endpoint.access != Access::Open {
            // The token first: of a stranger no body is read.
            handler = handler
                .layer(from_fn_with_state(limits, collect))
                .layer(from_fn_with_state((Arc::clone(clients), endpoint.access), bearer::require));
        }
        routes = routes.route(endpoint.path, handler);
    }
    // `collect` holds every body to the configured limit. The framework's own limit of 2 MiB would
    // refuse bodies below it, in plain text.
    let routes = routes
        .fallback(unknown_path)
        .layer(DefaultBodyLimit::disable())
        .layer(map_response(problem::from_bare_text))
        .with_state(api);
    // Around the router and not on its routes: admission comes before routing.
    let admitted = from_fn_with_state(Arc::new(admission), admit).layer(routes);
    Routes::new(from_fn_with_state(traffic, observe).layer(admitted))
}

async fn unknown_path() -> Problem {
    Problem::not_found(
        "nothing is served here: MCP clients connect to /mcp, others find everything in /openapi.json",
    )
}
