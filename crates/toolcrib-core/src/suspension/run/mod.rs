#![doc = include_str!("../../docs/run.md")]

mod error;
mod fold;
mod journal;
mod memory;
mod record;
mod step;
mod store;
#[cfg(test)]
mod tests;
mod turn_access;
mod view;

use std::collections::HashSet;

use toolcrib_tool::{CallId, ToolCall, ToolError, ToolOutput, ToolResult};

use crate::NoRandomness;
use crate::approval::THE_HOST;
use crate::call::nested::ResumePermit;
use crate::call::nested::{ResumeLocation, unfinished};
use crate::storage::clock::Timestamp;
use crate::suspension::{
    Answer, Outcome, RedeemError, Resolution, ResolutionKind, Resolved, StoreError, Submission,
    Suspension, SuspensionId, check_submissions, redeem, too_late,
};

pub use crate::suspension::run::turn_access::TurnAccess;
pub use error::RunError;
pub use journal::{
    Claim, Journal, JournalEntry, JournalPage, MESSAGES_MAX, MessageNumber, RunLimits, RunRequests,
    Seq, too_many_messages,
};
pub use memory::MemoryRuns;
use record::RunCall;
pub use record::{Ending, RunId, RunRecord, RunState};
pub use step::RunStep;
pub use store::{NoCursor, RunCursor, RunStore};

/// A batch of calls, some of which may be suspended, until each has its final answer.
#[derive(Debug)]
pub struct Run {
    record: RunRecord,
    /// The call that is being resolved. If the future is dropped, that call has no answer.
    resolving: Option<SuspensionId>,
}

impl Run {
    /// Restores a run from its record.
    pub fn from_record(record: RunRecord) -> Self {
        Self { record, resolving: None }
    }

    /// The record, from which another process can continue the run.
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// The run's id.
    pub fn id(&self) -> &RunId {
        self.record.id()
    }

    /// Its state.
    pub fn state(&self) -> RunState {
        self.record.state()
    }

    /// The waiting calls, in call order.
    pub fn outstanding(&self) -> impl Iterator<Item = &Suspension> {
        self.record.outstanding()
    }

    /// The final answers so far, in call order.
    pub fn answered(&self) -> impl Iterator<Item = ToolResult> {
        self.record.slots.iter().filter_map(|slot| match slot {
            RunCall::Done(result) => Some((**result).clone()),
            RunCall::Waiting(_) => None,
        })
    }

    /// All final answers in call order, once every call has one.
    pub fn results(&self) -> Option<Vec<ToolResult>> {
        self.record
            .slots
            .iter()
            .map(|slot| match slot {
                RunCall::Done(result) => Some((**result).clone()),
                RunCall::Waiting(_) => None,
            })
            .collect()
    }

    /// Makes the calls. When this returns, every call has finished or is suspended.
    pub async fn start<D: TurnAccess>(
        turn: &D,
        calls: Vec<ToolCall>,
    ) -> Result<Self, NoRandomness> {
        let created_at = turn.now();
        let answers = turn.start_batch(calls).await;
        Self::of(turn, created_at, answers)
    }

    /// A run from the answers of [`Turn::start`](crate::Turn::start) or
    /// [`Turn::start_batch`](crate::Turn::start_batch) of the same turn.
    pub fn from_answers<D: TurnAccess>(
        turn: &D,
        answers: impl IntoIterator<Item = Answer>,
    ) -> Result<Self, NoRandomness> {
        Self::of(turn, turn.now(), answers)
    }

    fn of<D: TurnAccess>(
        turn: &D,
        created_at: Timestamp,
        answers: impl IntoIterator<Item = Answer>,
    ) -> Result<Self, NoRandomness> {
        let slots = answers.into_iter().map(RunCall::from).collect();
        let record = RunRecord::new(RunId::random()?, turn.identity(), created_at, slots);
        Ok(Self::from_record(record))
    }

    /// Submits the outputs of all calls that wait for the client.
    ///
    /// Fails without effect if an output is missing, unknown, duplicate or invalid. Outputs for
    /// answered calls are ignored.
    pub async fn submit<D: TurnAccess>(
        &mut self,
        turn: &D,
        submitted: Vec<Submission>,
    ) -> Result<(), RunError> {
        self.check_owner(turn)?;
        let outstanding: Vec<_> = self.outstanding().collect();
        let answered: Vec<_> = self.record.answered().collect();
        let accept = |suspension: &Suspension, output: ToolOutput| turn.accept(suspension, output);
        let outputs: Vec<_> = check_submissions(&outstanding, &answered, submitted, accept)?
            .into_iter()
            .map(|(suspension, output)| (suspension.id().clone(), output))
            .collect();
        for (id, output) in outputs {
            self.resolve(turn, &id, Resolution::Output(output)).await?;
        }
        Ok(())
    }

    /// Resolves a waiting call. Fails with [`RedeemError::AlreadyResolved`] if it was already
    /// resolved.
    pub async fn resolve<D: TurnAccess>(
        &mut self,
        turn: &D,
        id: &SuspensionId,
        resolution: Resolution,
    ) -> Result<(), RunError> {
        self.check_owner(turn)?;
        let store = turn.store().ok_or(RedeemError::Unknown)?;
        let waiting = |slot: &RunCall| matches!(slot, RunCall::Waiting(one) if one.id() == id);
        let Some(position) = self.record.slots.iter().position(waiting) else {
            return Err(too_late(store, id, turn.identity()).await?.into());
        };
        resolution.check_right(turn.may_approve())?;
        let mut permit = ResumePermit::default();
        if let RunCall::Waiting(waiting) = &self.record.slots[position] {
            if let ResumeLocation::Elsewhere(process) = turn.resume_location(waiting).await? {
                return Err(RedeemError::Elsewhere { process }.into());
            }
            permit = turn.permit_for(&resolution)?;
            if let Some(arguments) = resolution.changed_arguments() {
                let checked = Box::pin(turn.check_changed(waiting, arguments)).await;
                checked.map_err(RedeemError::Arguments)?;
            }
        }
        let (identity, now) = (turn.identity(), turn.now());
        let grant = redeem(store, id, identity, now, resolution, turn.name()).await?;
        self.resolving = Some(id.clone());
        let answer = turn.resume(grant, permit).await;
        self.resolving = None;
        self.record.slots[position] = answer.into();
        Ok(())
    }

    /// Answers every waiting call with `cancelled`. Returns whether there was anything to cancel:
    /// `false` if every call had its answer when the run was loaded.
    ///
    /// Of several cancellations, one succeeds. The others fail with
    /// [`RedeemError::AlreadyResolved`] and change nothing.
    ///
    /// If another party has resolved a call in another way, the remaining calls are cancelled and
    /// this fails with [`RunError::PartlyCancelled`]; if no call remained, with
    /// [`RedeemError::AlreadyResolved`].
    pub async fn cancel<D: TurnAccess>(&mut self, turn: &D) -> Result<bool, RunError> {
        let Some(known) = self.outstanding().next().map(|one| one.id().clone()) else {
            self.check_owner(turn)?;
            return Ok(false);
        };
        self.settle(turn).await?;
        let waiting: Vec<_> = self.outstanding().map(|one| one.id().clone()).collect();
        let mut others = None;
        if let (Some(store), true) = (turn.store(), waiting.is_empty()) {
            others = store.resolved(&known).await?.map(Box::new);
        }
        let mut cancelled = false;
        for id in waiting {
            match self.end(turn, &id, Resolution::Cancel, Ending::Cancelled).await? {
                None => cancelled = true,
                // Another cancellation was first, and goes through the remaining calls.
                Some(first) if !cancelled && first.is_cancelled_by_client() => {
                    return Err(RedeemError::AlreadyResolved(first).into());
                }
                Some(first) => {
                    others.get_or_insert(first);
                }
            }
        }
        // Outcomes of the others may be available by now, or those calls may wait again.
        self.settle(turn).await?;
        match others {
            Some(first) if cancelled => Err(RunError::PartlyCancelled(first)),
            Some(first) => Err(RedeemError::AlreadyResolved(first).into()),
            None => Ok(true),
        }
    }

    /// How the call that was resolved last was resolved, and by whom; `None` if that is no longer
    /// stored.
    pub async fn last_resolution<D: TurnAccess>(
        &self,
        turn: &D,
        runs: &(impl RunStore + ?Sized),
    ) -> Result<Option<Resolved>, RunError> {
        self.check_owner(turn)?;
        let Some(store) = turn.store() else { return Ok(None) };
        let mut last: Option<Resolved> = None;
        for id in runs.suspended(self.id()).await? {
            let resolved = store.resolved(&id).await?;
            last = last.into_iter().chain(resolved).max_by_key(Resolved::at);
        }
        Ok(last.filter(|last| last.identity() == turn.identity()))
    }

    /// Takes over the answers of calls that others have decided on. Returns which of them are still
    /// running.
    pub async fn settle<D: TurnAccess>(
        &mut self,
        turn: &D,
    ) -> Result<HashSet<SuspensionId>, RunError> {
        self.check_owner(turn)?;
        let mut running = HashSet::new();
        let Some(store) = turn.store() else { return Ok(running) };
        let now = turn.now();
        for slot in &mut self.record.slots {
            // A call may be suspended and decided on repeatedly.
            while let RunCall::Waiting(waiting) = slot {
                let Some(settled) = store.settled(waiting.id()).await? else {
                    if turn.resume_location(waiting).await? == ResumeLocation::Nowhere
                        && store.take(waiting.id(), &ended_by_host(waiting, now)).await?.is_some()
                    {
                        *slot = RunCall::Done(Box::new(ended_with_its_server(waiting, now)));
                    }
                    break;
                };
                *slot = match settled.outcome() {
                    Outcome::Running => {
                        // The worker of an old one is gone.
                        if !settled.is_old(now) {
                            running.insert(waiting.id().clone());
                        }
                        break;
                    }
                    Outcome::Done(result) => {
                        let resolved = store.resolved(waiting.id()).await?;
                        if let Some(ending) = resolved.and_then(|one| Ending::of(one.kind())) {
                            self.record.ending.get_or_insert(ending);
                        }
                        RunCall::Done(result.clone())
                    }
                    Outcome::Waits(next) => RunCall::Waiting(next.clone()),
                };
            }
        }
        Ok(running)
    }

    /// Answers expired calls, after taking over those that others have decided on. Returns when the
    /// next call expires. A call that is resolved at the last moment continues.
    pub async fn expire<D: TurnAccess>(&mut self, turn: &D) -> Result<Option<Timestamp>, RunError> {
        let running = self.settle(turn).await?;
        let now = turn.now();
        let expired: Vec<_> = self
            .outstanding()
            .filter(|one| one.is_expired(now) && !running.contains(one.id()))
            .map(|one| one.id().clone())
            .collect();
        for id in expired {
            self.end(turn, &id, Resolution::Expire, Ending::Expired).await?;
        }
        Ok(self.outstanding().map(Suspension::expires_at).min())
    }

    /// Ends a waiting call, or returns who has already resolved it.
    ///
    /// If the process that took the call died without an outcome, the call is answered with an
    /// error, so that every call has an answer.
    async fn end<D: TurnAccess>(
        &mut self,
        turn: &D,
        id: &SuspensionId,
        resolution: Resolution,
        ending: Ending,
    ) -> Result<Option<Box<Resolved>>, RunError> {
        match self.resolve(turn, id, resolution).await {
            Ok(()) => {}
            Err(RunError::Redeem(RedeemError::AlreadyResolved(first))) => {
                if self.resolving.as_ref() != Some(id) {
                    return Ok(Some(first));
                }
                self.record.give_up(id, turn.now());
            }
            Err(RunError::Redeem(RedeemError::Unknown)) => {
                self.record.give_up(id, turn.now());
            }
            // The other server ends it when it expires.
            Err(RunError::Redeem(RedeemError::Elsewhere { .. })) if ending == Ending::Expired => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        self.record.ending.get_or_insert(ending);
        Ok(None)
    }

    /// Saves the run, merged with what other processes have saved meanwhile: for every call, the
    /// first saved answer wins.
    pub async fn save(&mut self, store: &(impl RunStore + ?Sized)) -> Result<(), RunError> {
        loop {
            match store.save(&self.record).await {
                Ok(version) => {
                    self.record.version = version;
                    return Ok(());
                }
                Err(StoreError::Conflict) => {
                    let theirs = store.load(self.id()).await?.ok_or(RunError::Unknown)?;
                    self.record.merge(theirs);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn check_owner<D: TurnAccess>(&self, turn: &D) -> Result<(), RunError> {
        if turn.identity() == self.record.identity() { Ok(()) } else { Err(RunError::Unknown) }
    }
}

impl From<Answer> for RunCall {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Done(result) => Self::Done(Box::new(result)),
            Answer::Suspended(suspension) => Self::Waiting(suspension),
        }
    }
}

/// The record for a call that nobody can decide on any more.
fn ended_by_host(waiting: &Suspension, now: Timestamp) -> Resolved {
    Resolved::new(waiting, ResolutionKind::Cancelled, THE_HOST, now)
}

/// The answer to a call whose server has ended and that cannot be repeated.
fn ended_with_its_server(waiting: &Suspension, now: Timestamp) -> ToolResult {
    let (call, tool) = (CallId::new(waiting.call_id()), waiting.called_tool());
    let waited = now.since(waiting.created_at());
    ToolResult::failure(call, tool, unfinished(waiting), waited)
}

/// Whether a result says that the process that had resolved a waiting call ended before it had the call's answer.
pub fn is_lost(result: &ToolResult) -> bool {
    let lost = lost();
    result
        .error()
        .is_some_and(|error| error.kind() == lost.kind() && error.message() == lost.message())
}

/// The error for a call whose record is gone.
pub(crate) fn lost() -> ToolError {
    ToolError::outcome_unknown(
        "the call was resolved by a process that ended before it said with what",
    )
}
