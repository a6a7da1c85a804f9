//! Progress of calls, from the server to whoever watches them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use toolcrib_tool::{CallContext, StatusUpdate, visible};

/// A call's progress is told at most this often: a server that floods it slows nobody down.
const INTERVAL: Duration = Duration::from_millis(50);
/// More of a message is not shown.
const MESSAGE_MAX: usize = 300;

/// The calls that wait for an answer, by the token of their progress.
#[derive(Debug, Default)]
pub(crate) struct Progress(Mutex<HashMap<ProgressToken, Followed>>);

#[derive(Debug)]
struct Followed {
    call: CallContext,
    told: Option<Instant>,
}

/// Ends the following of a call when it is dropped.
pub(crate) struct Following {
    progress: Arc<Progress>,
    token: ProgressToken,
}

impl Progress {
    /// Tells whoever watches the call of the progress with this token.
    pub(crate) fn follow(self: &Arc<Self>, token: ProgressToken, call: CallContext) -> Following {
        self.calls().insert(token.clone(), Followed { call, told: None });
        Following { progress: Arc::clone(self), token }
    }

    /// How many calls wait for an answer.
    pub(crate) fn in_flight(&self) -> usize {
        self.calls().len()
    }

    pub(crate) fn deliver(&self, progress: &ProgressNotificationParam) {
        let call = {
            let mut calls = self.calls();
            let Some(followed) = calls.get_mut(&progress.progress_token) else { return };
            if followed.told.is_some_and(|told| told.elapsed() < INTERVAL) {
                return;
            }
            followed.told = Some(Instant::now());
            followed.call.clone()
        };
        let mut update = StatusUpdate::doing().with_param("progress", progress.progress);
        if let Some(total) = progress.total {
            update = update.with_param("total", total);
        }
        if let Some(message) = &progress.message {
            let tip: String = visible(message).chars().take(MESSAGE_MAX).collect();
            update = update.with_tip(tip);
        }
        call.status(update);
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, Followed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.progress.calls().remove(&self.token);
    }
}
