//! Calls that wait for approval, as whoever may approve them sees them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use toolcrib_tool::{CallId, ToolCall, ToolError};

use super::{ApprovalRequest, Decision};
use crate::approval::delegated;
use crate::approval::delegated::DelegatedCall;
use crate::approval::policy::Verdict;
use crate::call::nested::ResumeLocation;
use crate::call::turn::Turn;
use crate::suspension::{
    RedeemError, Resolution, Resolved, Settled, StoreError, Suspension, SuspensionId,
    SuspensionStore, Waiting, redeem_for_caller,
};

/// The calls that wait for approval and that a turn's approver may decide on: those of its tenant,
/// of tools within its toolset, whoever made them.
///
/// Made by [`Turn::approvals`], which hands it out only with the right to approve. After a decision
/// the call goes on *as its caller*: with the caller's identity and kept values, and with the toolset
/// and rules that the caller has at that moment ([`CallerRights`](super::CallerRights)). Its answer is
/// the caller's: [`Turn::outcome`] has it, and so has the run that the call is part of.
#[derive(Debug, Clone)]
pub struct Approvals {
    turn: Turn,
    all_tenants: bool,
}

/// Why a decision did not hold. The call still waits, if it did, unless its client was revoked.
#[derive(Debug)]
#[non_exhaustive]
pub enum DecideError {
    /// The approver's own arguments are not right, or a rule denies the call with them.
    Arguments(ToolError),
    /// The client that made the call may no longer make it. The call was denied with this text and
    /// waits no more.
    Revoked(String),
    /// The call waits in another server, which alone knows what its client may do now, or in which the
    /// call that made it is at work. It still waits.
    Elsewhere {
        /// The other server's process.
        process: u32,
    },
    /// The call could not be resolved.
    Redeem(RedeemError),
}

/// A decision that holds. The call goes on, also when this is dropped.
#[derive(Debug)]
pub struct Decided(oneshot::Receiver<Settled>);

impl Decided {
    /// What has become of the call, where it has an outcome or waits for something else within
    /// `limit`; else `None`. Needs a tokio runtime with its timer.
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
                "the call waits in the server with process {process}, which alone can go on with it: decide \
                 on it there (`toolcrib approvals` asks all servers)"
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

    /// The same for an operator of the server, who sees the calls of every tenant.
    #[must_use]
    pub fn of_all_tenants(mut self) -> Self {
        self.all_tenants = true;
        self
    }

    /// The calls that wait, the oldest first. Those whose time is over are left out.
    pub async fn list(&self) -> Result<Vec<ApprovalRequest>, StoreError> {
        let Some(store) = self.store() else { return Ok(Vec::new()) };
        let now = self.turn.state.shared.now();
        let waiting = store.all().await?;
        let mut requests = Vec::new();
        for one in waiting.iter().filter(|one| !one.is_expired(now) && self.sees(one)) {
            // Nobody is asked about a call that cannot be gone on with.
            if self.turn.state.standing(one).await? != ResumeLocation::Nowhere {
                requests.extend(self.request(one));
            }
        }
        Ok(requests)
    }

    /// One of them.
    pub async fn find(&self, id: &SuspensionId) -> Result<Option<ApprovalRequest>, StoreError> {
        let now = self.turn.state.shared.now();
        let found = self.seen(id).await?.filter(|one| !one.is_expired(now));
        Ok(found.and_then(|one| self.request(&one)))
    }

    /// Who did what with a call that waits no more, as far as that is still known.
    pub async fn resolved(&self, id: &SuspensionId) -> Result<Option<Resolved>, StoreError> {
        let Some(store) = self.store() else { return Ok(None) };
        Ok(store.resolved(id).await?.filter(|first| self.saw(first)))
    }

    /// Decides on a call, which then goes on as its caller, whether or not anybody waits for that.
    /// Returns as soon as the decision holds; [`Decided::outcome`] tells what becomes of the call.
    ///
    /// A call of a client that this executor does not manage and that waits in another server, which is
    /// running, can only be approved there ([`DecideError::Elsewhere`]).
    ///
    /// Changed arguments are checked like a model's first; where they are refused, the call still
    /// waits. A call whose client may no longer make it is denied, whatever is decided, and an
    /// approval of it fails with [`DecideError::Revoked`].
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
        if let ResumeLocation::Elsewhere(process) = self.turn.state.standing(&found).await? {
            return Err(DecideError::Elsewhere { process });
        }
        let refused = self.turn.state.caller_now(&found).err().filter(|_| approves);
        let caller = self.turn.as_caller(&found).map_err(DecideError::Arguments)?;
        if let (Decision::ApproveChanged { arguments }, None) = (&decision, &refused) {
            let call = ToolCall::new(found.call_id(), found.tool(), arguments.as_str());
            let checked = caller.dry_run(call).await.map_err(DecideError::Arguments)?;
            if let Verdict::Deny { message, .. } = checked.verdict {
                return Err(DecideError::Arguments(super::refused(&message)));
            }
        }
        match refused {
            None => self.go_on(found, caller, decision.into()).await,
            Some(reason) => {
                let revoked = Resolution::Revoke { reason: reason.clone() };
                self.go_on(found, caller, revoked).await?;
                Err(DecideError::Revoked(reason))
            }
        }
    }

    /// Resolves a call and lets it go on as its caller, whether or not anybody waits for that.
    async fn go_on(
        &self,
        found: Suspension,
        caller: Turn,
        resolution: Resolution,
    ) -> Result<Decided, DecideError> {
        let store = Arc::clone(self.store().ok_or(RedeemError::Unknown)?);
        let now = self.turn.state.shared.now();
        let (id, by) = (found.id(), self.turn.name());
        let grant = redeem_for_caller(&*store, id, found.identity(), now, resolution, by).await?;
        // Before the work begins, so that whoever revokes the client finds the call here or is heard there.
        let worked = DelegatedCall::begin(&found, &caller);
        let settled = Settled::running(found, now);
        let (tell, told) = oneshot::channel();
        tokio::spawn(async move {
            let settled = settled.ended(caller.resume(grant).await);
            drop(worked);
            keep(&*store, &settled).await;
            caller.state.shared.settled.notify_waiters();
            // Nobody may want to know.
            drop(tell.send(settled));
        });
        Ok(Decided(told))
    }

    /// Ends the calls of these clients that their client may no longer make: those that wait are denied,
    /// and those that somebody else has approved and that are at work here are cancelled. Hosts call this
    /// after they have revoked clients, or changed what they may do.
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
                // The server in which it waits decides what its client may do.
                continue;
            }
            let caller = self.turn.as_caller(one).map_err(DecideError::Arguments)?;
            match self.go_on(one.clone(), caller, Resolution::Revoke { reason }).await {
                // Somebody else was faster.
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

    /// A call that waits; the error says who has resolved it, where that is known.
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

    /// Calls of another tenant, and of tools beyond the approver's toolset, are not there.
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

    fn request(&self, suspension: &Suspension) -> Option<ApprovalRequest> {
        let definition = self.turn.describe(suspension.tool()).map(Arc::clone);
        let mask = self.turn.state.shared.mask.load();
        let mut request = ApprovalRequest::of(suspension, definition)?;
        // Both are the caller's own words, shown to somebody else.
        request.call_id = CallId::new(mask.text(request.call_id.as_str()).into_owned());
        request.session = request.session.map(|session| mask.text(&session).into());
        Some(request)
    }
}

/// A store that fails now costs the caller its answer, not the decision.
async fn keep(store: &dyn SuspensionStore, settled: &Settled) {
    if let Err(error) = store.settle(settled).await {
        let call_id = settled.suspension().call_id();
        tracing::error!(%error, call_id, "what became of a decided call could not be kept");
    }
}
