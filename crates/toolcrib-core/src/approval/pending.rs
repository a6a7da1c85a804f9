//! Calls that wait for approval, as an approver sees them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use toolcrib_tool::{CallId, ToolError};

use super::{ApprovalRequest, Decision};
use crate::approval::delegated;
use crate::approval::delegated::DelegatedCall;
use crate::call::nested::{ResumeLocation, ResumePermit};
use crate::call::turn::Turn;
use crate::suspension::{
    RedeemError, Resolution, Resolved, Settled, StoreError, Suspension, SuspensionId,
    SuspensionStore, Waiting, redeem_for_caller,
};

/// The waiting calls that a turn's approver may decide on: all calls of its tenant, by any user, of
/// tools within its toolset.
///
/// Made by [`Turn::approvals`], which requires the right to approve. After a decision the call
/// resumes *as its caller*: with the caller's identity and stored values, and with the toolset and
/// rules that the caller has at that moment ([`CallerRights`](super::CallerRights)). The caller
/// gets the answer, from [`Turn::outcome`] or from the run that the call is part of.
#[derive(Debug, Clone)]
pub struct Approvals {
    turn: Turn,
    all_tenants: bool,
}

/// Why a decision failed. A waiting call keeps waiting unless its client was revoked.
#[derive(Debug)]
#[non_exhaustive]
pub enum DecideError {
    /// The approver's changed arguments are invalid, or a rule denies the call with them.
    Arguments(ToolError),
    /// The client may no longer make the call. The call was denied with this text.
    Revoked(String),
    /// The call waits in another server, which alone knows the client's current rights, or in which
    /// its parent call is running. It still waits.
    Elsewhere {
        /// The other server's process.
        process: u32,
    },
    /// The call could not be resolved.
    Redeem(RedeemError),
}

/// A decision that took effect. The call resumes even if this is dropped.
#[derive(Debug)]
pub struct Decided(oneshot::Receiver<Settled>);

impl Decided {
    /// The outcome of the call, or what it waits for next, if there is one within `limit`;
    /// otherwise `None`. Needs a tokio runtime with its timer.
    pub async fn outcome(self, limit: Duration) -> Option<Settled> {
        tokio::time::timeout(limit, self.0).await.ok()?.ok()
    }
}

impl fmt::Display for DecideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arguments(error) => {
                write!(f, "the changed arguments are refused: {}", error.message())?;
                error.hints().iter().try_for_each(|hint| write!(f, "\n{hint}"))
            }
            Self::Revoked(reason) => write!(f, "the call was denied and did not run: {reason}"),
            Self::Elsewhere { process } => write!(
                f,
                "the call waits in the process {process}, which alone can go on with it: approve it there \
                 (`toolcrib run` and `toolcrib call` ask on their own terminal), or deny it here, unless a call \
                 that made it is at work there"
            ),
            Self::Redeem(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DecideError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Arguments(_) | Self::Revoked(_) | Self::Elsewhere { .. } => None,
            Self::Redeem(error) => Some(error),
        }
    }
}

impl From<RedeemError> for DecideError {
    fn from(error: RedeemError) -> Self {
        Self::Redeem(error)
    }
}

impl From<StoreError> for DecideError {
    fn from(error: StoreError) -> Self {
        Self::Redeem(error.into())
    }
}

impl Approvals {
    pub(crate) fn of(turn: &Turn) -> Self {
        Self { turn: turn.clone(), all_tenants: false }
    }

    /// The view of an operator of the server, who sees the calls of every tenant.
    #[must_use]
    pub fn of_all_tenants(mut self) -> Self {
        self.all_tenants = true;
        self
    }

    /// The waiting calls, oldest first, without expired ones.
    pub async fn list(&self) -> Result<Vec<ApprovalRequest>, StoreError> {
        let Some(store) = self.store() else { return Ok(Vec::new()) };
        let now = self.turn.state.shared.now();
        let waiting = store.all().await?;
        let mut requests = Vec::new();
        for one in waiting.iter().filter(|one| !one.is_expired(now) && self.sees(one)) {
            // A call that cannot be resumed is not listed.
            if self.turn.state.resume_location(one).await? != ResumeLocation::Nowhere {
                requests.extend(self.request_here(one).await?);
            }
        }
        Ok(requests)
    }

    /// One of them.
    pub async fn find(&self, id: &SuspensionId) -> Result<Option<ApprovalRequest>, StoreError> {
        let now = self.turn.state.shared.now();
        let found = self.seen(id).await?.filter(|one| !one.is_expired(now));
        match found {
            Some(one) => self.request_here(&one).await,
            None => Ok(None),
        }
    }

    /// How a call was resolved and by whom, if that is still recorded.
    pub async fn resolved(&self, id: &SuspensionId) -> Result<Option<Resolved>, StoreError> {
        let Some(store) = self.store() else { return Ok(None) };
        Ok(store.resolved(id).await?.filter(|first| self.saw(first)))
    }

    /// Decides on a call, which then resumes as its caller in the background. Returns as soon as
    /// the decision takes effect; [`Decided::outcome`] waits for the outcome.
    ///
    /// If this executor does not manage the client, and the call waits in another running server,
    /// it can only be approved there ([`DecideError::Elsewhere`]).
    ///
    /// Changed arguments are first checked like a model's; if they are refused, the call still
    /// waits. If the client may no longer make the call, it is denied, whatever the decision, and
    /// an approval fails with [`DecideError::Revoked`]. While the host shuts down, an approval fails with
    /// [`RedeemError::ShuttingDown`], and the call still waits.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub async fn decide(
        &self,
        id: &SuspensionId,
        decision: Decision,
    ) -> Result<Decided, DecideError> {
        let store = self.store().ok_or(RedeemError::Unknown)?;
        let found = self.waiting(id).await?;
        let approves = !matches!(decision, Decision::Deny { .. });
        if approves
            && !self.turn.state.knows_caller(&found)
            && let Some(process) = store.waits_elsewhere(id).await?
        {
            return Err(DecideError::Elsewhere { process });
        }
        if let ResumeLocation::Elsewhere(process) = self.turn.state.resume_location(&found).await? {
            return Err(DecideError::Elsewhere { process });
        }
        let refused = self.turn.state.caller_now(&found).err().filter(|_| approves);
        let caller = self.turn.as_caller(&found).map_err(DecideError::Arguments)?;
        let resolution = match &refused {
            None => decision.clone().into(),
            Some(reason) => Resolution::Revoke { reason: reason.clone() },
        };
        let permit = self.turn.state.permit_for(&resolution)?;
        if let (Decision::ApproveChanged { arguments }, None) = (&decision, &refused) {
            let checked = Box::pin(caller.check_changed(&found, arguments)).await;
            checked.map_err(DecideError::Arguments)?;
        }
        let decided = self.go_on(found, caller, resolution, permit).await?;
        refused.map_or(Ok(decided), |reason| Err(DecideError::Revoked(reason)))
    }

    /// Resolves a call and resumes it as its caller, in the background.
    async fn go_on(
        &self,
        found: Suspension,
        caller: Turn,
        resolution: Resolution,
        permit: ResumePermit,
    ) -> Result<Decided, DecideError> {
        let store = Arc::clone(self.store().ok_or(RedeemError::Unknown)?);
        let now = self.turn.state.shared.now();
        let (id, by) = (found.id(), self.turn.name());
        let grant = redeem_for_caller(&*store, id, found.identity(), now, resolution, by).await?;
        // Before the work begins, so that a revocation of the client either finds the call here or
        // is seen when it starts.
        let worked = DelegatedCall::begin(&found, &caller);
        let settled = Settled::running(found, now);
        let (tell, told) = oneshot::channel();
        tokio::spawn(async move {
            let settled = settled.ended(caller.resume_permitted(grant, permit).await);
            drop(worked);
            keep(&*store, &settled).await;
            caller.state.shared.settled.notify_waiters();
            // The receiver may be gone.
            drop(tell.send(settled));
        });
        Ok(Decided(told))
    }

    /// Ends the calls that these clients may no longer make: waiting calls are denied, and running
    /// calls that somebody else approved are cancelled. Hosts call this after they revoke clients
    /// or change their rights.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub async fn end_revoked(&self, clients: &[Arc<str>]) -> Result<(), DecideError> {
        delegated::end_revoked(&self.turn, clients);
        let Some(store) = self.store() else { return Ok(()) };
        let of_them = |one: &&Suspension| {
            let name = one.caller().client_name();
            self.sees(one) && clients.iter().any(|client| name == Some(client))
        };
        for one in store.all().await?.iter().filter(of_them) {
            let Err(reason) = self.turn.state.caller_now(one) else { continue };
            if !self.turn.state.knows_caller(one)
                && store.waits_elsewhere(one.id()).await?.is_some()
            {
                // The server in which it waits checks the client's rights.
                continue;
            }
            let caller = self.turn.as_caller(one).map_err(DecideError::Arguments)?;
            let revoked = Resolution::Revoke { reason };
            let permit = self.turn.state.permit_for(&revoked)?;
            match self.go_on(one.clone(), caller, revoked, permit).await {
                // It was resolved in the meantime.
                Ok(_)
                | Err(DecideError::Redeem(
                    RedeemError::Unknown | RedeemError::AlreadyResolved(_),
                )) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn store(&self) -> Option<&Arc<dyn SuspensionStore>> {
        self.turn.state.shared.suspensions.as_ref()
    }

    /// A waiting call; the error names who resolved it, if that is recorded.
    async fn waiting(&self, id: &SuspensionId) -> Result<Suspension, RedeemError> {
        let store = self.store().ok_or(RedeemError::Unknown)?;
        if let Some(found) = store.find(id).await? {
            return if self.sees(&found) { Ok(found) } else { Err(RedeemError::Unknown) };
        }
        let first = self.resolved(id).await?;
        Err(first
            .map_or(RedeemError::Unknown, |first| RedeemError::AlreadyResolved(Box::new(first))))
    }

    async fn seen(&self, id: &SuspensionId) -> Result<Option<Suspension>, StoreError> {
        let Some(store) = self.store() else { return Ok(None) };
        Ok(store.find(id).await?.filter(|one| self.sees(one)))
    }

    /// Whether the approver may see the call: not if it is of another tenant or of a tool outside
    /// the toolset.
    fn sees(&self, suspension: &Suspension) -> bool {
        let state = &self.turn.state;
        let tenant = self.all_tenants || suspension.caller().tenant() == state.values.tenant();
        matches!(suspension.waiting(), Waiting::Approval { .. })
            && tenant
            && state.reaches(suspension.tool())
    }

    /// Whether this approver saw the call while it waited.
    fn saw(&self, resolved: &Resolved) -> bool {
        let state = &self.turn.state;
        let tenant = self.all_tenants || resolved.tenant() == state.values.tenant();
        resolved.waited_for_approval() && tenant && state.reaches(resolved.tool())
    }

    /// Why the call would be refused even if it were approved now.
    fn obstacle(&self, suspension: &Suspension) -> Option<String> {
        let state = &self.turn.state;
        if let Err(reason) = state.caller_now(suspension) {
            return Some(reason);
        }
        let snapshot = state.shared.registry.snapshot();
        let Some(slot) = snapshot.slot(suspension.tool()) else {
            return Some("the tool is gone".to_owned());
        };
        if let Some(reason) = slot.entry.unavailable_reason() {
            return Some(format!("the tool is unavailable: {reason}"));
        }
        (slot.fingerprint() != suspension.definition_hash())
            .then(|| "the tool changed since the call was made".to_owned())
    }

    /// The request, which says if only another process can go on with the call.
    async fn request_here(
        &self,
        suspension: &Suspension,
    ) -> Result<Option<ApprovalRequest>, StoreError> {
        let Some(mut request) = self.request(suspension) else { return Ok(None) };
        if request.obstacle.is_none() && !self.turn.state.knows_caller(suspension) {
            let process = match self.store() {
                Some(store) => store.waits_elsewhere(suspension.id()).await?,
                None => None,
            };
            let elsewhere = process.map(|process| DecideError::Elsewhere { process }.to_string());
            request.obstacle = elsewhere;
        }
        Ok(Some(request))
    }

    fn request(&self, suspension: &Suspension) -> Option<ApprovalRequest> {
        let definition = self.turn.describe(suspension.tool()).map(Arc::clone);
        let mask = self.turn.state.shared.mask.load();
        let mut request = ApprovalRequest::of(suspension, definition)?;
        let obstacle = self.obstacle(suspension);
        request.obstacle = obstacle.map(|reason| mask.text(&reason).into_owned());
        // The caller chose both texts, and another person sees them.
        request.call_id = CallId::new(mask.text(request.call_id.as_str()).into_owned());
        request.session = request.session.map(|session| mask.text(&session).into());
        Some(request)
    }
}

/// If the store fails now, the caller loses its answer, but the decision stands.
async fn keep(store: &dyn SuspensionStore, settled: &Settled) {
    if let Err(error) = store.settle(settled).await {
        let call_id = settled.suspension().call_id();
        tracing::error!(%error, call_id, "the outcome of a decided call could not be stored");
    }
}
