//! The work for a response.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;
use toolcrib_agent::{AgentBuilder, AgentEvent, RunReport};
use toolcrib_core::suspension::{StoreError, Suspension};
use toolcrib_http::{
    AgentRunControl, AgentRunError, AgentRunStep, AgentRunStop, BegunResponse, ResponseId,
    ResponseLog,
};
use toolcrib_tool::BoxFuture;
use toolcrib_wire::api::StreamEvent;

use super::presenter::Presenter;
use crate::agents::served::{driven, followed};

/// Time in Unix seconds.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// How work on a response begins and ends.
#[derive(Default)]
pub(super) struct Plan {
    /// Decisions on waiting calls, which come first.
    pub(super) decisions: Vec<AgentRunStep>,
    /// Whether the run is removed at the end unless its client has calls of it.
    pub(super) is_forgotten: bool,
}

/// A response that `presenter` shows, as far as `events` have shown it, and the work that is left.
pub(super) fn begun(
    id: ResponseId,
    builder: AgentBuilder,
    presenter: Presenter,
    events: Vec<StreamEvent>,
    plan: Plan,
) -> BegunResponse {
    let (run, value) = (id.run.clone(), presenter.value());
    let work = move |log: ResponseLog, outside: AgentRunControl| {
        log.push(events);
        let (shown, broken) = (Arc::new(Mutex::new(presenter)), Arc::new(Notify::new()));
        let outside = stopped_by(outside, Arc::clone(&broken));
        let follows = followed(run.clone(), outside.followers.clone());
        let (own, presenter, sink, breaks) = (run.clone(), Arc::clone(&shown), log.clone(), broken);
        let listener = move |event: &AgentEvent<'_>| {
            follows(event);
            if *event.run() != own {
                return;
            }
            let mut presenter = presenter.lock().unwrap_or_else(PoisonError::into_inner);
            sink.push(presenter.event(event, now()));
            if presenter.is_broken() {
                breaks.notify_one();
            }
        };
        let viewed = Arc::clone(&shown);
        let counter = move || viewed.lock().unwrap_or_else(PoisonError::into_inner).shown();
        let agent = builder.on_event(listener).counted_by(counter).build();
        let Plan { decisions: mut steps, is_forgotten } = plan;
        steps.push(AgentRunStep::Resume);
        let done = async move {
            let done = driven(&agent, &run, steps, outside).await;
            let state = agent.load(&run).await;
            let waiting: Vec<Suspension> =
                state.iter().flat_map(RunReport::waiting).cloned().collect();
            let has_calls = state.as_ref().is_ok_and(|it| it.run().handed_over().next().is_some());
            let is_over = state.as_ref().is_ok_and(|report| report.outcome().is_some());
            let is_stored = {
                let mut presenter = shown.lock().unwrap_or_else(PoisonError::into_inner);
                match (done, state) {
                    (Ok(()), Ok(report)) => log.push(presenter.rest(report.run(), &waiting)),
                    // Another server works on it.
                    (Err(AgentRunError::Store(StoreError::Claimed { .. })), _) => {}
                    (Err(error), _) => log.push(lost(&mut presenter, &error)),
                    (_, Err(error)) => log.push(lost(&mut presenter, &error)),
                }
                log.end(presenter.value());
                presenter.is_stored()
            };
            let is_left = !is_over && !has_calls && (is_forgotten || !waiting.is_empty());
            // Nobody can go on with it, so nobody needs to decide.
            if is_left
                && !is_stored
                && let Err(error) = agent.cancel(&run, "its request has ended").await
            {
                tracing::warn!(%run, %error, "a run was not cancelled although its request has ended");
            }
            if is_forgotten
                && !has_calls
                && let Err(error) = agent.remove(&run).await
            {
                tracing::warn!(%run, %error, "the run of an ended request stays");
            }
        };
        Box::pin(done) as BoxFuture<'static, ()>
    };
    BegunResponse { id, value, work: Box::new(work), unstored: None }
}

/// A run that also ends if its response is broken.
fn stopped_by(outside: AgentRunControl, broken: Arc<Notify>) -> AgentRunControl {
    let AgentRunControl { stopped, said, followers } = outside;
    let stopped = Box::pin(async move {
        tokio::select! {
            stop = stopped => stop,
            () = broken.notified() => {
                AgentRunStop::Cancel("the client had seen a part of an answer that was lost".to_owned())
            }
        }
    });
    AgentRunControl { stopped, said, followers }
}

fn lost(presenter: &mut Presenter, error: &dyn std::fmt::Display) -> Vec<StreamEvent> {
    tracing::error!(%error, "a response could not be continued");
    let message = "the response could not be continued: the server's log says why";
    presenter.failed("server_error", message.to_owned())
}
