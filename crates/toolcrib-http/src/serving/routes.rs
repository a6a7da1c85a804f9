//! The routes, and the layers that every request passes.

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
use crate::api::responses;
use crate::api::{Api, endpoints};
use crate::auth::bearer;
use crate::auth::clients::LiveClients;
use crate::auth::host_check::{HostCheck, admit};
use crate::auth::right::Access;
use crate::observability::request_log::{Observer, observe};
use crate::observability::traffic::Traffic;
use crate::serving::request_body::{BodyLimits, collect};

/// The service that answers every request.
pub(crate) type Routes = BoxCloneSyncService<Request<Body>, Response, Infallible>;

/// Builds the routes with the checks in front of them.
pub(crate) fn app(
    api: Api,
    clients: &Arc<LiveClients>,
    host_check: HostCheck,
    limits: BodyLimits,
    traffic: Arc<Traffic>,
) -> Routes {
    let observer = Observer { traffic, mask: api.backend().executor().mask() };
    let mut routes = Router::new();
    for endpoint in endpoints() {
        let mut handler = endpoint.routed();
        if endpoint.access != Access::Open {
            // Check the token first, so that no body of an unknown client is read.
            handler = handler
                .layer(from_fn_with_state(limits, collect))
                .layer(from_fn_with_state((Arc::clone(clients), endpoint.access), bearer::require));
        }
        if endpoint.openai {
            let mask = api.backend().executor().mask();
            handler = handler.layer(map_response(problem::from_bare_text)).layer(map_response(
                move |response| {
                    let mask = mask.clone();
                    async move {
                        responses::error::from_problem(problem::masked(response, &mask).await).await
                    }
                },
            ));
        }
        routes = routes.route(endpoint.path, handler);
    }
    // `collect` applies the configured limit to every body. The framework's own limit of 2 MiB
    // would refuse smaller bodies, in plain text.
    let routes = routes
        .fallback(unknown_path)
        .layer(DefaultBodyLimit::disable())
        .layer(map_response(problem::from_bare_text))
        .with_state(api);
    // Layered around the router, since the host check comes before routing.
    let admitted = from_fn_with_state(Arc::new(host_check), admit).layer(routes);
    Routes::new(from_fn_with_state(observer, observe).layer(admitted))
}

async fn unknown_path() -> Problem {
    Problem::not_found(
        "nothing is served here: MCP clients connect to /mcp, and /openapi.json describes all other paths",
    )
}
