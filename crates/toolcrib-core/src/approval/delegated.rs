//! Running calls that somebody other than their caller has decided on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::call::turn::Turn;
use crate::suspension::{Suspension, SuspensionId};

/// The running calls that somebody other than their caller has decided on, each with the turn it
/// runs in. No future waits for them, so only this table can end them.
#[derive(Debug, Default)]
pub(crate) struct DelegatedCalls(Mutex<HashMap<SuspensionId, (Suspension, Turn)>>);

/// Registers a running call until it is dropped.
#[derive(Debug)]
pub(super) struct DelegatedCall {
    turn: Turn,
    id: SuspensionId,
}

impl DelegatedCalls {
    fn calls(&self) -> MutexGuard<'_, HashMap<SuspensionId, (Suspension, Turn)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DelegatedCall {
    /// Registers a call that resumes in a turn of its caller.
    pub(super) fn begin(call: &Suspension, turn: &Turn) -> Self {
        let id = call.id().clone();
        turn.state.shared.delegated.calls().insert(id.clone(), (call.clone(), turn.clone()));
        Self { turn: turn.clone(), id }
    }
}

impl Drop for DelegatedCall {
    fn drop(&mut self) {
        self.turn.state.shared.delegated.calls().remove(&self.id);
    }
}

/// Ends the running calls that these clients may no longer make.
pub(super) fn end_revoked(turn: &Turn, clients: &[Arc<str>]) {
    let calls: Vec<_> = turn.state.shared.delegated.calls().values().cloned().collect();
    for (call, own) in calls {
        let name = call.caller().client_name();
        let is_theirs = clients.iter().any(|client| name == Some(client));
        if is_theirs && let Err(reason) = turn.state.caller_now(&call) {
            tracing::info!(tool = call.tool(), reason, "an approved call was ended");
            own.revoke();
        }
    }
}
