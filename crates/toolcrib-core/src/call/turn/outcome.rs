//! The outcome of a waiting call, for its caller.

use std::pin::pin;
use std::time::Duration;

use toolcrib_tool::{CallId, ErrorKind, ToolError, ToolResult};

use super::Turn;
use crate::storage::clock::Timestamp;
use crate::suspension::{
    Answer, Outcome, RedeemError, Resolution, ResolutionKind, Settled, StoreError, Suspension,
    SuspensionId, too_late,
};

/// How often to poll for outcomes from other processes.
const ELSEWHERE: Duration = Duration::from_secs(1);

/// Stands for "forever".
const FAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The minimum interval between checks of an expired call: if it is running in another server, that
/// server ends it.
const AGAIN: Duration = Duration::from_secs(1);

impl Turn {
    /// The outcome of a suspended call of this turn's identity that somebody else has decided on.
    pub async fn outcome(&self, id: &SuspensionId) -> Result<Option<Settled>, StoreError> {
        let Some(store) = &self.state.shared.suspensions else { return Ok(None) };
        let found = store.settled(id).await?;
        Ok(found.filter(|one| one.suspension().identity() == &*self.state.identity))
    }

    /// As [`outcome`](Self::outcome), and waits up to `limit` until the call has an outcome or
    /// waits for something else. `None` if it has neither by then, or is unknown.
    pub async fn wait_for_outcome(
        &self,
        id: &SuspensionId,
        limit: Duration,
    ) -> Result<Option<Settled>, StoreError> {
        let now = tokio::time::Instant::now();
        let until = now.checked_add(limit).unwrap_or(now + FAR);
        loop {
            let mut told = pin!(self.state.shared.settled.notified());
            told.as_mut().enable();
            match self.outcome(id).await? {
                Some(settled) if *settled.outcome() != Outcome::Running => {
                    return Ok(Some(settled));
                }
                None if self.suspended(id).await?.is_none() => {
                    // It may have been decided on between the two checks.
                    if self.outcome(id).await?.is_none() {
                        return Ok(None);
                    }
                    continue;
                }
                _ => {}
            }
            // Other processes with the same store do not notify this one.
            let next = (tokio::time::Instant::now() + ELSEWHERE).min(until);
            let waited = tokio::time::timeout_at(next, told).await;
            if waited.is_err() && next == until {
                return Ok(None);
            }
        }
    }

    /// Takes the outcome of a call, once.
    pub async fn take_outcome(&self, id: &SuspensionId) -> Result<Option<Settled>, StoreError> {
        if self.outcome(id).await?.is_none() {
            return Ok(None);
        }
        let Some(store) = &self.state.shared.suspensions else { return Ok(None) };
        store.take_settled(id).await
    }

    /// Waits until a suspended call of this turn's identity has its final answer, and takes it.
    ///
    /// Any approver can decide on the call ([`approvals`](Self::approvals)), in this process or in
    /// another one with the same store. If it is suspended again, for example by a question after
    /// an approval, this continues to wait. A denial and an expired call are failed results.
    ///
    /// If several wait for one call, exactly one gets its answer. The others get an error that
    /// states what was done with the call and by whom. So do callers whose call was
    /// [resolved](Self::resolve) by this turn's identity itself, because the resolver gets that
    /// answer.
    ///
    /// Dropping the future does not affect the call: its answer is stored for a day and can be
    /// awaited again. Fails only if the store fails.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use toolcrib_core::approval::Decision;
    /// use toolcrib_core::suspension::MemorySuspensions;
    /// use toolcrib_core::{Answer, Executor, Registry, TurnOptions};
    /// use toolcrib_tool::{Approval, Identity, ToolCall, ToolDefinition};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let deploy =
    ///     ToolDefinition::builder("deploy").description("Deploy.").approval(Approval::Always).build()?;
    /// let registry = Registry::scratch().tool_as(deploy, |_, _| async { "deployed" }).build()?;
    /// let executor =
    ///     Executor::builder(registry).suspensions(Arc::new(MemorySuspensions::new())).build();
    ///
    /// let turn = executor.turn(TurnOptions::default().identity(Identity::user("ada")));
    /// let Answer::Suspended(waiting) = turn.start(ToolCall::new("1", "deploy", "{}")).await else {
    ///     return Err("it did not wait".into());
    /// };
    ///
    /// // Somebody else decides; the call runs as ada's.
    /// let operator = executor.approvals(TurnOptions::default());
    /// operator.decide(waiting.id(), Decision::approve()).await?;
    /// assert_eq!(turn.result_of(&waiting).await?.text(), "deployed");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn result_of(&self, suspension: &Suspension) -> Result<ToolResult, StoreError> {
        let mut waiting = suspension.clone();
        let mut earlier = Vec::new();
        loop {
            let limit = self.time_left(&waiting).max(AGAIN);
            let answer = match self.wait_for_outcome(waiting.id(), limit).await? {
                Some(settled) => match settled.outcome() {
                    Outcome::Done(result) => {
                        if self.take_outcome(waiting.id()).await?.is_none() {
                            return self.answered_elsewhere(&waiting).await;
                        }
                        Answer::Done((**result).clone())
                    }
                    Outcome::Waits(next) => Answer::Suspended(next.clone()),
                    Outcome::Running => continue,
                },
                None => match self.ended(&waiting).await? {
                    Ended::StillThere => continue,
                    Ended::Now(answer) => answer,
                    Ended::Elsewhere => return self.answered_elsewhere(&waiting).await,
                },
            };
            match answer {
                Answer::Done(result) => {
                    for id in &earlier {
                        self.take_outcome(id).await?;
                    }
                    return Ok(result);
                }
                Answer::Suspended(next) => {
                    earlier.push(waiting.id().clone());
                    waiting = *next;
                }
            }
        }
    }

    /// Ends an expired call, and determines the state of a call without an outcome.
    async fn ended(&self, waiting: &Suspension) -> Result<Ended, StoreError> {
        let id = waiting.id();
        if self.suspended(id).await?.is_none() {
            // It may have been decided on in the meantime.
            let is_known = self.outcome(id).await?.is_some();
            return Ok(if is_known { Ended::StillThere } else { Ended::Elsewhere });
        }
        if !waiting.is_expired(self.state.shared.now()) {
            return Ok(Ended::StillThere);
        }
        match Box::pin(self.resolve(id, Resolution::Expire)).await {
            Ok(answer) => Ok(Ended::Now(answer)),
            Err(RedeemError::Store(error)) => Err(error),
            // Another process is ending it.
            Err(_) => Ok(Ended::StillThere),
        }
    }

    /// The error if somebody else got the answer.
    async fn answered_elsewhere(&self, waiting: &Suspension) -> Result<ToolResult, StoreError> {
        let first = match &self.state.shared.suspensions {
            Some(store) => too_late(&**store, waiting.id(), &self.state.identity).await?,
            None => RedeemError::Unknown,
        };
        let error = match first {
            RedeemError::AlreadyResolved(first) => match first.kind() {
                ResolutionKind::Denied | ResolutionKind::Revoked => {
                    ToolError::denied(first.to_string())
                }
                ResolutionKind::Expired | ResolutionKind::Cancelled => {
                    ToolError::new(ErrorKind::Cancelled, first.to_string())
                }
                _ => ToolError::outcome_unknown(format!(
                    "{first}; its answer was given to somebody else"
                )),
            },
            _ => ToolError::outcome_unknown(
                "no call of this identity waits under this id, and no answer is kept for it",
            ),
        };
        let error = error.with_hint("The answer of a call that waits can be taken once.");
        let (id, tool) = (CallId::new(waiting.call_id()), waiting.called_tool());
        Ok(ToolResult::failure(id, tool, error, Duration::ZERO))
    }

    /// The remaining time of a waiting call.
    fn time_left(&self, waiting: &Suspension) -> Duration {
        let until = waiting.expires_at();
        if until == Timestamp::NEVER { FAR } else { until.since(self.state.shared.now()) }
    }
}

/// The state of a call without an outcome.
enum Ended {
    /// It still waits, or is running.
    StillThere,
    /// It has expired, with this answer.
    Now(Answer),
    /// It no longer waits, and somebody else got its answer.
    Elsewhere,
}
