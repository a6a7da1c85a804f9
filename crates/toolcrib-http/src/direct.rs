//! The messages of MCP, straight from a connection to whoever answers them.
//!
//! What every route checks is checked here, too, in the same order and by the same functions; there is
//! only no router between, and nothing that is made for each request and each layer of it.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{Method, Request};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::{Either, FutureExt as _};
use toolcrib_tool::BoxFuture;
use tower::Service;
use tracing::Instrument as _;

use crate::Right;
use crate::admission::Admission;
use crate::bearer;
use crate::body::{self, BodyLimits};
use crate::client::Clients;
use crate::gate::Counted;
use crate::observe::{NO_ROUTE, Observed};
use crate::problem;
use crate::traffic::Traffic;

/// The path of MCP, as it is written in every config of a client.
const PATH: &str = "/mcp";

/// What a request has to pass.
pub(crate) struct Checks {
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) clients: Arc<Clients>,
    pub(crate) limits: BodyLimits,
}

/// Answers messages to [`PATH`]; all else goes to `routes`.
#[derive(Clone)]
pub(crate) struct Direct<R> {
    checks: Arc<Checks>,
    routes: R,
}

impl<R> Direct<R> {
    pub(crate) fn new(checks: Checks, routes: R) -> Self {
        Self { checks: Arc::new(checks), routes }
    }
}

impl<R> Service<Request<Body>> for Direct<R>
where
    R: Service<Request<Body>, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<BoxFuture<'static, Result<Response, Infallible>>, R::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.routes.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if request.method() != Method::POST || request.uri().path() != PATH {
            return self.routes.call(request).right_future();
        }
        let checks = Arc::clone(&self.checks);
        let answer: BoxFuture<'static, _> =
            Box::pin(async move { Ok(checks.answer(request).await) });
        answer.left_future()
    }
}

/// How a request was answered: by which route, and to whom.
struct Answered {
    response: Response,
    route: &'static str,
    caller: Option<Arc<str>>,
}

impl Checks {
    async fn answer(&self, request: Request<Body>) -> Response {
        let observed = Observed::begin(&self.traffic, &request);
        let answered = self.checked(request).instrument(observed.span()).await;
        let mut response = problem::from_bare_text(answered.response).await;
        observed.end(answered.route, answered.caller.as_deref(), &mut response);
        response
    }

    async fn checked(&self, request: Request<Body>) -> Answered {
        let refused = |response, caller| Answered { response, route: NO_ROUTE, caller };
        let (parts, body) = request.into_parts();
        if let Err(problem) = self.admission.check(&parts.uri, &parts.headers) {
            return refused(problem.into_response(), None);
        }
        let (client, pass) = match bearer::enter(&self.clients, Right::Call, &parts.headers) {
            Ok(entered) => entered,
            Err(turned_away) => {
                let caller = turned_away.caller().cloned();
                return refused(turned_away.into_response(), caller);
            }
        };
        let caller = Some(Arc::clone(&client.name));
        // The token first: of a stranger no body is read.
        match body::read(body, self.limits).await {
            Ok(body) => {
                let response = client.mcp().respond(parts, body).await;
                let response = response.map(|body| Body::new(Counted::new(body, pass)));
                Answered { response, route: PATH, caller }
            }
            Err(problem) => refused(problem.into_response(), caller),
        }
    }
}
