//! The runs of agents on which this server works.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use toolcrib_core::run::RunId;

use crate::api::problem::Problem;
use crate::auth::entitlement::{AdmittedRequest, Entitlement};
use crate::{AgentRunError, AgentRunEvent, AgentRunFollowers, AgentRunInput};

/// How many events clients may be behind before they miss some.
const KEPT_EVENTS: usize = 1_024;

/// The runs on which this server works, each only once at a time.
#[derive(Clone, Default)]
pub(crate) struct ActiveRuns(Arc<Mutex<HashMap<RunId, ActiveRun>>>);

/// A run on which this server works.
#[derive(Clone)]
pub(in crate::api) struct ActiveRun {
    said: mpsc::UnboundedSender<AgentRunInput>,
    events: broadcast::Sender<AgentRunEvent>,
    /// Of the client that works on it, with whose tools, rules and values.
    worker: Option<Arc<Entitlement>>,
    /// Cancels the run.
    pub(in crate::api) cancel: CancellationToken,
    /// Cancelled when the work has ended.
    pub(in crate::api) ended: CancellationToken,
}

/// Marks a run as worked on until it is dropped.
pub(in crate::api) struct Work {
    runs: ActiveRuns,
    id: RunId,
    pub(in crate::api) run: ActiveRun,
    /// What clients say to it, until somebody takes it over.
    pub(in crate::api) said: Option<mpsc::UnboundedReceiver<AgentRunInput>>,
}

impl ActiveRun {
    /// Whether the work on the run does nothing that this client may not do itself.
    pub(in crate::api) fn may_be_told_by(&self, client: &Entitlement) -> bool {
        match &self.worker {
            Some(worker) => client.allows_calls_of(worker),
            None => client.allows_every_call(),
        }
    }

    /// Says something to the run. `None` if it came to rest before it was stored.
    pub(in crate::api) async fn say(&self, text: String) -> Option<Result<(), AgentRunError>> {
        let (recorded, done) = oneshot::channel();
        self.said.send(AgentRunInput { text, recorded }).ok()?;
        done.await.ok()
    }

    /// What happens in the run from now on.
    pub(in crate::api) fn events(&self) -> broadcast::Receiver<AgentRunEvent> {
        self.events.subscribe()
    }

    pub(in crate::api) fn followers(&self) -> AgentRunFollowers {
        AgentRunFollowers::new(self.events.clone())
    }
}

impl ActiveRuns {
    fn open(&self) -> MutexGuard<'_, HashMap<RunId, ActiveRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::api) fn get(&self, id: &RunId) -> Option<ActiveRun> {
        self.open().get(id).cloned()
    }

    /// Begins work on a run. Fails if there is work on it already.
    pub(in crate::api) fn begin(&self, id: &RunId) -> Result<Work, Problem> {
        let mut runs = self.open();
        if runs.contains_key(id) {
            let detail = "this server works on the run now: wait until it rests, or cancel it";
            return Err(Problem::new(StatusCode::CONFLICT, detail).nothing_done());
        }
        let (sender, said) = mpsc::unbounded_channel();
        let (cancel, ended) = (CancellationToken::new(), CancellationToken::new());
        let events = broadcast::Sender::new(KEPT_EVENTS);
        let worker = AdmittedRequest::of_this_request();
        let worker = worker.map(|request| Arc::clone(request.admitted_with()));
        let run = ActiveRun { said: sender, events, worker, cancel, ended };
        runs.insert(id.clone(), run.clone());
        Ok(Work { runs: self.clone(), id: id.clone(), run, said: Some(said) })
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.runs.open().remove(&self.id);
        self.run.ended.cancel();
    }
}
