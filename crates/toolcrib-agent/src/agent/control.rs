//! Control of a run while it is driven.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use super::AgentInput;
use super::steering::{Inbox, Steering};

/// Cancels, pauses or steers a run while it is driven. Clones control the same run.
#[derive(Clone)]
pub struct RunControl {
    stop: Arc<watch::Sender<Option<Stop>>>,
    inbox: Arc<Inbox>,
}

/// How a run is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// It can be resumed.
    Pause(String),
    /// It has ended.
    Cancel(String),
}

impl Default for RunControl {
    fn default() -> Self {
        Self { stop: Arc::new(watch::Sender::new(None)), inbox: Arc::default() }
    }
}

impl RunControl {
    /// Control of a run that is about to be driven ([`Agent::run_with`](super::Agent::run_with)).
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels the run: the request is dropped, running calls are cancelled and answered, waiting calls are cancelled.
    pub fn cancel(&self, reason: impl Into<String>) {
        self.stop.send_replace(Some(Stop::Cancel(reason.into())));
    }

    /// Pauses the run: the request is dropped, and running calls are cancelled and answered. Waiting calls wait on.
    pub fn pause(&self, reason: impl Into<String>) {
        self.stop.send_if_modified(|stop| {
            let is_running = stop.is_none();
            if is_running {
                *stop = Some(Stop::Pause(reason.into()));
            }
            is_running
        });
    }

    /// Tells the model something. It reads it with the next request, and a run that was about to end goes on.
    ///
    /// The input is taken over at once. It is in the journal, so that nothing loses it any more, once the returned future
    /// has completed. Fails if nobody drives the run any more ([`Agent::steer`](super::Agent::steer) takes input for
    /// such runs), and if it has ended.
    pub fn steer(&self, input: impl Into<AgentInput>) -> Steering {
        self.inbox.put(input.into().0)
    }

    /// Control of a sub-agent's run: it is stopped with this one, but is told nothing that this one is told.
    pub(super) fn for_child(&self) -> Self {
        Self { stop: Arc::clone(&self.stop), inbox: Arc::default() }
    }

    pub(super) fn stop(&self) -> Option<Stop> {
        self.stop.borrow().clone()
    }

    /// Completes when the run is to stop.
    pub(super) async fn stopped(&self) {
        let mut changes = self.stop.subscribe();
        // The sender lives in `self`, so this cannot fail.
        let _ = changes.wait_for(Option::is_some).await;
    }

    pub(super) fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }
}

impl fmt::Debug for RunControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunControl").field("stop", &*self.stop.borrow()).finish_non_exhaustive()
    }
}
