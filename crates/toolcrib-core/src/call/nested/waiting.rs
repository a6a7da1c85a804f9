//! A nested call that waits for somebody, together with its ancestors.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedMutexGuard, oneshot};
use toolcrib_tool::{ErrorKind, ToolError};

use super::{Paused, RootCall};
use crate::admission::Lineage;
use crate::approval::THE_HOST;
use crate::call::cancellation::Cancellation;
use crate::call::executor::Shared;
use crate::call::nested::live_calls::LiveCall;
use crate::storage::bounds::Full;
use crate::storage::clock::Timestamp;
use crate::suspension::{
    Grant, RedeemError, Resolution, ResolutionKind, Resolved, Suspension, SuspensionId,
    SuspensionStore, redeem_for_caller,
};

/// How long callers that ask for the outcome have to end an expired call before it ends itself.
const LATE: Duration = Duration::from_secs(2);

/// How often to retry a failing store.
const AGAIN: Duration = Duration::from_secs(1);

/// How long a decision may take to arrive after its record was taken.
const ON_ITS_WAY: Duration = Duration::from_secs(10);

/// A nested call that is about to wait, or waits. Dropping it withdraws the call completely.
pub(crate) struct NestedWait {
    shared: Arc<Shared>,
    root: Arc<RootCall>,
    suspension: Box<Suspension>,
    granted: oneshot::Receiver<Grant>,
    /// `None` once its ancestors are resumed.
    paused: Option<Paused>,
    _asking: OwnedMutexGuard<()>,
    /// Whether its record is in the store and not known to be taken.
    is_kept: bool,
}

impl NestedWait {
    /// Registers a waiting call before anybody can find it in the store.
    pub(crate) fn begin(
        shared: &Arc<Shared>,
        lineage: &Lineage,
        suspension: &Suspension,
        paused: Paused,
        asking: OwnedMutexGuard<()>,
    ) -> Result<Self, Full> {
        let root = lineage.outermost();
        let (grant, granted) = oneshot::channel();
        shared.live_calls.add(suspension, LiveCall { root: Arc::clone(root), grant })?;
        Ok(Self {
            shared: Arc::clone(shared),
            root: Arc::clone(root),
            suspension: Box::new(suspension.clone()),
            granted,
            paused: Some(paused),
            _asking: asking,
            is_kept: false,
        })
    }

    /// Records that it is in the store now.
    pub(crate) fn kept(&mut self) {
        self.is_kept = true;
    }

    /// Tells the caller and waits for the decision. When this returns, the ancestors continue. The
    /// error is the answer of the nested call.
    pub(crate) async fn decision(mut self, cancelled: &Cancellation) -> Result<Grant, ToolError> {
        self.root.wait(self.suspension.clone());
        let shutdown = Arc::clone(&self.shared);
        let decided = tokio::select! {
            biased;
            decided = self.decided() => decided,
            () = cancelled.cancelled() => Err(withdrawn()),
            () = shutdown.shutdown.begun() => Err(self.shut_down()),
        };
        let grant = decided?;
        self.is_kept = false;
        if let Some(paused) = self.paused.take() {
            tokio::select! {
                biased;
                () = paused.end() => {}
                () = cancelled.cancelled() => return Err(withdrawn()),
            }
        }
        Ok(grant)
    }

    async fn decided(&mut self) -> Result<Grant, ToolError> {
        let mut look = self.time_left().map(|left| left + LATE);
        loop {
            let granted = match look {
                None => Some((&mut self.granted).await),
                Some(wait) => tokio::time::timeout(wait, &mut self.granted).await.ok(),
            };
            match granted {
                Some(Ok(grant)) => return Ok(grant),
                // The sender was dropped by whoever took the call to decide on it.
                Some(Err(_)) => return Err(withdrawn()),
                None => {}
            }
            match self.expired().await {
                Ok(grant) => return Ok(grant),
                Err(RedeemError::NotExpired) => {
                    look = self.time_left().map(|left| left.max(AGAIN));
                }
                Err(RedeemError::Unknown | RedeemError::AlreadyResolved(_)) => {
                    self.is_kept = false;
                    let granted = tokio::time::timeout(ON_ITS_WAY, &mut self.granted).await;
                    return granted.ok().and_then(Result::ok).ok_or_else(withdrawn);
                }
                Err(error) => {
                    tracing::warn!(%error, "an expired waiting call cannot be ended yet");
                    look = Some(AGAIN);
                }
            }
        }
    }

    /// The grant for an expired call.
    async fn expired(&self) -> Result<Grant, RedeemError> {
        let store = self.shared.suspensions.as_ref().ok_or(RedeemError::Unknown)?;
        let (id, identity) = (self.suspension.id(), self.suspension.identity());
        let now = self.shared.now();
        redeem_for_caller(&**store, id, identity, now, Resolution::Expire, THE_HOST).await
    }

    /// The remaining time to wait; `None` means forever.
    fn time_left(&self) -> Option<Duration> {
        let expires_at = self.suspension.expires_at();
        (expires_at != Timestamp::NEVER).then(|| expires_at.since(self.shared.now()))
    }

    /// The host shuts down. A call that can be repeated stays in the store; any other ends now, so
    /// that its tool can report what it has done.
    fn shut_down(&mut self) -> ToolError {
        if self.suspension.within().is_some_and(crate::suspension::Within::is_repeatable) {
            self.is_kept = false;
            self.root.leave();
        }
        let message = "the host is shutting down, and nobody has decided on the call";
        ToolError::new(ErrorKind::Cancelled, message).with_hint("Nothing was run.")
    }
}

impl Drop for NestedWait {
    fn drop(&mut self) {
        let id = self.suspension.id();
        let was_undecided = self.shared.live_calls.take(id).is_some();
        if !(self.is_kept && was_undecided) {
            return;
        }
        let (Some(store), Ok(runtime)) =
            (self.shared.suspensions.clone(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let resolved =
            Resolved::new(&self.suspension, ResolutionKind::Cancelled, THE_HOST, self.shared.now());
        runtime.spawn(take_back(store, id.clone(), resolved));
    }
}

/// Removes a call that no longer waits from the store.
async fn take_back(store: Arc<dyn SuspensionStore>, id: SuspensionId, resolved: Resolved) {
    if let Err(error) = store.take(&id, &resolved).await {
        tracing::warn!(%error, "a call that no longer waits could not be removed from the store");
    }
}

fn withdrawn() -> ToolError {
    let message = "it was withdrawn while it waited";
    ToolError::new(ErrorKind::Cancelled, message).with_hint("Nothing was run.")
}
