//! What the listener answers: the messages of MCP straight from a connection, all else by its route.
//!
//! What every route checks is checked here, too, in the same order and by the same functions; there is
//! only no router between, and nothing that is made for each request and each layer of it.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::FutureExt as _;
use hyper::body::Incoming;
use toolcrib_tool::BoxFuture;
use tower::ServiceExt as _;
use tower::util::BoxCloneSyncService;
use tracing::Instrument as _;

use crate::Right;
use crate::api::problem;
use crate::auth::bearer;
use crate::auth::client_limits::Counted;
use crate::auth::clients::LiveClients;
use crate::auth::host_check::{Admission, Reached};
use crate::auth::right::Access;
use crate::observability::request_log::{NO_ROUTE, Observed};
use crate::observability::traffic::Traffic;
use crate::serving::drained_body::Lingering;
use crate::serving::request_body;
use crate::serving::request_body::BodyLimits;

/// The path of MCP, as it is written in every config of a client.
const PATH: &str = "/mcp";

/// What a request has to pass.
pub(crate) struct Checks {
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) clients: Arc<LiveClients>,
    pub(crate) limits: BodyLimits,
}

/// Everything that has a route.
pub(crate) type Routes = BoxCloneSyncService<Request<Body>, Response, Infallible>;

/// Answers messages to [`PATH`]; all else goes to `routes`.
pub(crate) struct Direct {
    checks: Checks,
    routes: Routes,
}

impl Direct {
    pub(crate) fn new(checks: Checks, routes: Routes) -> Self {
        Self { checks, routes }
    }

    pub(crate) fn answer(
        &self,
        request: Request<Incoming>,
        reached: Option<Reached>,
    ) -> impl Future<Output = Result<Response, Infallible>> + Send {
        let (mut head, body) = request.into_parts();
        if let Some(reached) = reached {
            head.extensions.insert(reached);
        }
        let body = Lingering::new(&head.headers, body);
        let request = Request::from_parts(head, body);
        if request.method() == Method::POST && request.uri().path() == PATH {
            return self.checks.answer(request).map(Ok).left_future();
        }
        let routed = self.routes.clone().oneshot(request.map(Body::new));
        let routed: BoxFuture<'_, _> = Box::pin(routed);
        routed.right_future()
    }
}

/// How a request was answered: by which route, and to whom.
struct Answered {
    response: Response,
    route: &'static str,
    caller: Option<Arc<str>>,
}

impl Checks {
    async fn answer(&self, request: Request<Lingering>) -> Response {
        let observed = Observed::begin(&self.traffic, request.method(), request.headers());
        // Pinned first and lent: its state is large, and each hand-over would copy it.
        let checked = pin!(self.checked(request));
        let Answered { mut response, route, caller } = checked.instrument(observed.span()).await;
        if problem::is_bare_text(&response) {
            response = Box::pin(problem::from_bare_text(response)).await;
        }
        observed.end(route, caller.as_deref(), &mut response);
        response
    }

    async fn checked(&self, request: Request<Lingering>) -> Answered {
        let refused = |response, caller| Answered { response, route: NO_ROUTE, caller };
        let (mut parts, body) = request.into_parts();
        if let Err(problem) = self.admission.check(&parts.uri, &parts.headers, &parts.extensions) {
            return refused(problem.into_response(), None);
        }
        let clients = self.clients.now();
        let (client, pass) =
            match bearer::enter(&clients, Access::With(Right::Call), &parts.headers) {
                Ok(entered) => entered,
                Err(turned_away) => {
                    let caller = turned_away.caller().cloned();
                    return refused(turned_away.into_response(), caller);
                }
            };
        let caller = Some(Arc::clone(&client.name));
        let entered = client.let_in(Right::Call, None);
        // The token first: of a stranger no body is read.
        match request_body::read(body, self.limits).await {
            Ok(body) => {
                let answered = client.mcp().respond(&mut parts, body);
                let answered = answered.map(|response| response.map(Body::new));
                let response = bearer::unless_ended(entered.clone(), answered).await;
                let response =
                    response.map(|body| bearer::while_good(entered, Counted::new(body, pass)));
                Answered { response, route: PATH, caller }
            }
            Err(problem) => refused(problem.into_response(), caller),
        }
    }
}
