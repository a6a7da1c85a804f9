//! The HTTP API: state and functions that its handlers share.

pub(crate) mod agent_runs;
pub(crate) mod approvals;
pub(crate) mod calls;
pub(crate) mod endpoint;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod openapi;
pub(crate) mod operations;
pub(crate) mod problem;
pub(crate) mod query;
pub mod reports;
pub(crate) mod responses;
pub(crate) mod result;
mod route_table;
pub(crate) mod run_body;
pub(crate) mod runs;
pub(crate) mod stream;
pub(crate) mod tools;

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use toolcrib_tool::exact;
use tracing::{Instrument as _, Span};

use crate::Backend;
use crate::api::agent_runs::active::ActiveRuns;
use crate::api::problem::Problem;
use crate::api::responses::live::LiveResponses;
use crate::auth::client_limits::Permit;
use crate::auth::entitlement::AdmittedRequest;
use crate::idempotency::Idempotency;
use crate::idempotency::memory::MemoryAnswers;
use crate::observability::traffic::Traffic;

pub(crate) use crate::api::route_table::endpoints;

/// The state that all handlers share. Clones are cheap.
#[derive(Clone)]
pub(crate) struct Api(Arc<ApiState>);

struct ApiState {
    backend: Arc<dyn Backend>,
    traffic: Arc<Traffic>,
    idempotency: Idempotency,
    /// Work that continues even if its client disconnects.
    tasks: TaskTracker,
    /// Cancelled when the server stops.
    closing: CancellationToken,
    /// The runs of agents that are worked on.
    active_runs: ActiveRuns,
    /// The responses that are made.
    live_responses: LiveResponses,
    /// The `OpenAPI` document, built once.
    document: Bytes,
}

impl Api {
    pub(crate) fn new(backend: Arc<dyn Backend>, traffic: Arc<Traffic>) -> Self {
        let answers = backend.answers().unwrap_or_else(|| Arc::<MemoryAnswers>::default());
        let idempotency = Idempotency::new(answers);
        let document = crate::api::openapi::document(&endpoints(), env!("CARGO_PKG_VERSION"));
        Self(Arc::new(ApiState {
            backend,
            traffic,
            idempotency,
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            active_runs: ActiveRuns::default(),
            live_responses: LiveResponses::default(),
            document: document.to_string().into(),
        }))
    }

    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.0.backend
    }

    pub(crate) fn traffic(&self) -> &Traffic {
        &self.0.traffic
    }

    pub(crate) fn idempotency(&self) -> &Idempotency {
        &self.0.idempotency
    }

    /// Runs work to completion, even if the client disconnects. Until then it counts as a request
    /// and belongs to it in logs and limits. Its calls still end if the client's access is revoked
    /// ([`AdmittedRequest::withdraw_if_ended`]).
    pub(crate) async fn run_to_completion<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Problem> {
        let done = self.spawn(work).await;
        done.map_err(|error| Problem::internal("the request could not be finished", &error))
    }

    /// Begins work as [`run_to_completion`](Self::run_to_completion) does, without waiting for it.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let request = self.this_request();
        self.0.tasks.spawn(Box::pin(request.during(work)))
    }

    /// The current request, for work that continues without it.
    pub(crate) fn this_request(&self) -> ContinuedRequest {
        ContinuedRequest {
            permit: Permit::of_this_request(),
            admitted: AdmittedRequest::of_this_request(),
            span: Span::current(),
            _task: self.0.tasks.token(),
        }
    }

    fn active_runs(&self) -> &ActiveRuns {
        &self.0.active_runs
    }

    fn live_responses(&self) -> &LiveResponses {
        &self.0.live_responses
    }

    /// Cancelled when the server stops, for streams that have no end of their own.
    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.0.closing
    }

    /// Waits for all work that continues without its clients.
    pub(crate) async fn wait_for_tasks(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Runs a function that may block on files.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Backend) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let backend = Arc::clone(self.backend());
        let done = tokio::task::spawn_blocking(move || work(&*backend)).await;
        done.map_err(|error| Problem::internal("the request could not be finished", &error))
    }

    fn document(&self) -> Bytes {
        self.0.document.clone()
    }
}

/// A request whose work continues without it: until its end, it counts as a request and belongs to it in logs and limits.
pub(crate) struct ContinuedRequest {
    permit: Option<Arc<Permit>>,
    admitted: Option<AdmittedRequest>,
    span: Span,
    _task: TaskTrackerToken,
}

impl ContinuedRequest {
    /// Does the work.
    pub(crate) async fn during<T>(self, work: impl Future<Output = T>) -> T {
        let Self { permit, admitted, span, _task } = self;
        let work = async move {
            match admitted {
                Some(admitted) => admitted.during(work).await,
                None => work.await,
            }
        };
        let work = async move {
            match permit {
                Some(permit) => permit.during(work).await,
                None => work.await,
            }
        };
        work.instrument(span).await
    }
}

/// A JSON response.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    match json_text(body) {
        Ok(body) => (status, [("content-type", "application/json")], body).into_response(),
        Err(error) => Problem::internal("the answer could not be written", &error).into_response(),
    }
}

/// A body as JSON text, with exact numbers in results.
pub(crate) fn json_text(body: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string(body)?;
    Ok(match exact::restore(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(restored) => restored,
    })
}

/// Whether the client asks for an event stream.
pub(crate) fn wants_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get("accept").and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| {
        accepted.split(',').any(|one| one.trim().to_ascii_lowercase().starts_with(EVENTS))
    })
}

pub(crate) const EVENTS: &str = "text/event-stream";
