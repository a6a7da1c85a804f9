//! Which path is answered by what, and what every request passes on its way.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn_with_state, map_response};
use tower::Layer as _;

use crate::api::problem;
use crate::api::problem::Problem;
use crate::api::{Api, endpoints};
use crate::auth::bearer;
use crate::auth::clients::LiveClients;
use crate::auth::host_check::{Admission, admit};
use crate::auth::right::Access;
use crate::observability::request_log::observe;
use crate::observability::traffic::Traffic;
use crate::serving::direct::{Checks, Direct, Routes};
use crate::serving::request_body::{BodyLimits, collect};

/// Everything the listener answers.
pub(crate) fn app(
    api: Api,
    clients: &Arc<LiveClients>,
    admission: Admission,
    limits: BodyLimits,
    traffic: Arc<Traffic>,
) -> Direct {
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
    let admission = Arc::new(admission);
    let admitted = from_fn_with_state(Arc::clone(&admission), admit).layer(routes);
    let observed = from_fn_with_state(Arc::clone(&traffic), observe).layer(admitted);
    let clients = Arc::clone(clients);
    Direct::new(Checks { traffic, admission, clients, limits }, Routes::new(observed))
}

async fn unknown_path() -> Problem {
    Problem::not_found(
        "nothing is served here: MCP clients connect to /mcp, others find everything in /openapi.json",
    )
}
