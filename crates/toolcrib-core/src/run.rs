#![doc = include_str!("docs/run.md")]

mod door;
mod memory;
mod record;
mod store;
#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::{Value, json};
use toolcrib_tool::{ToolCall, ToolError, ToolOutput, ToolResult};

use crate::clock::Timestamp;
use crate::suspension::{
    Answer, NoRandomness, RedeemError, Resolution, StoreError, Submission, SubmitError, Suspension,
    SuspensionId, Waiting, check_submissions, redeem,
};

pub use door::Door;
pub use memory::MemoryRuns;
use record::{Ending, Slot};
pub use record::{RunId, RunRecord, RunState};
pub use store::RunStore;

/// A batch of calls, some of which may wait for somebody, until every one has its final answer.
#[derive(Debug)]
pub struct Run {
    record: RunRecord,
}

/// Why a run could not go on. Its calls are as they were.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The run belongs to another identity.
    Unknown,
    /// Outputs were not accepted.
    Submit(SubmitError),
    /// A call could not be resolved.
    Redeem(RedeemError),
    /// A store failed.
    Store(StoreError),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("there is no such run"),
            Self::Submit(error) => error.fmt(f),
            Self::Redeem(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unknown => None,
            Self::Submit(error) => Some(error),
            Self::Redeem(error) => Some(error),
            Self::Store(error) => Some(error),
        }
    }
}

impl From<SubmitError> for RunError {
    fn from(error: SubmitError) -> Self {
        Self::Submit(error)
    }
}

impl From<RedeemError> for RunError {
    fn from(error: RedeemError) -> Self {
        Self::Redeem(error)
    }
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Run {
    /// A run that another process has begun, as its record tells.
    pub fn from_record(record: RunRecord) -> Self {
        Self { record }
    }

    /// What another process needs to go on with the run.
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// The run's id.
    pub fn id(&self) -> &RunId {
        self.record.id()
    }

    /// How far it has come.
    pub fn state(&self) -> RunState {
        self.record.state()
    }

    /// The calls that wait, in the order of the calls.
    pub fn outstanding(&self) -> impl Iterator<Item = &Suspension> {
        self.record.outstanding()
    }

    /// The final answers in the order of the calls, once every call has one.
    pub fn results(&self) -> Option<Vec<ToolResult>> {
        self.record
            .slots
            .iter()
            .map(|slot| match slot {
                Slot::Done(result) => Some(ToolResult::from((**result).clone())),
                Slot::Waiting(_) => None,
            })
            .collect()
    }

    /// Makes the calls. All that can finish have finished when this returns.
    pub async fn start<D: Door>(door: &D, calls: Vec<ToolCall>) -> Result<Self, NoRandomness> {
        let id = RunId::random()?;
        let created_at = door.now();
        let answers = door.start_batch(calls).await;
        let slots = answers.into_iter().map(Slot::from).collect();
        Ok(Self { record: RunRecord::new(id, door.identity(), created_at, slots) })
    }

    /// Hands in the outputs of all calls that wait for the client.
    ///
    /// Fails, and resolves nothing, if one is missing, unknown, given twice or not what the tool
    /// promises. Outputs for calls that have their answer are skipped.
    pub async fn submit<D: Door>(
        &mut self,
        door: &D,
        submitted: Vec<Submission>,
    ) -> Result<(), RunError> {
        self.check_owner(door)?;
        let outstanding: Vec<_> = self.outstanding().collect();
        let answered: Vec<_> = self.record.answered().collect();
        let accept = |suspension: &Suspension, output: ToolOutput| door.accept(suspension, output);
        let outputs: Vec<_> = check_submissions(&outstanding, &answered, submitted, accept)?
            .into_iter()
            .map(|(suspension, output)| (suspension.id().clone(), output))
            .collect();
        for (id, output) in outputs {
            self.resolve(door, &id, Resolution::Output(output)).await?;
        }
        Ok(())
    }

    /// Resolves one call that waits.
    pub async fn resolve<D: Door>(
        &mut self,
        door: &D,
        id: &SuspensionId,
        resolution: Resolution,
    ) -> Result<(), RunError> {
        self.check_owner(door)?;
        let waiting = |slot: &Slot| matches!(slot, Slot::Waiting(one) if one.id() == id);
        let Some(position) = self.record.slots.iter().position(waiting) else {
            return Err(RedeemError::Unknown.into());
        };
        let now = door.now();
        let store = door.store().ok_or(RedeemError::Unknown)?;
        let grant = redeem(store, id, door.identity(), now, resolution).await?;
        let answer = door.resume(grant).await;
        self.record.slots[position] = answer.into();
        Ok(())
    }

    /// Answers every call that waits with `cancelled`. A run that is over stays as it is.
    pub async fn cancel<D: Door>(&mut self, door: &D) -> Result<(), RunError> {
        self.check_owner(door)?;
        let waiting: Vec<_> = self.outstanding().map(|one| one.id().clone()).collect();
        for id in waiting {
            self.end(door, &id, Resolution::Cancel, Ending::Cancelled).await?;
        }
        Ok(())
    }

    /// Answers the calls whose time is over. Says when to look again: when the next one expires.
    pub async fn expire<D: Door>(&mut self, door: &D) -> Result<Option<Timestamp>, RunError> {
        self.check_owner(door)?;
        let now = door.now();
        let expired: Vec<_> = self
            .outstanding()
            .filter(|one| one.is_expired(now))
            .map(|one| one.id().clone())
            .collect();
        for id in expired {
            self.end(door, &id, Resolution::Expire, Ending::Expired).await?;
        }
        Ok(self.outstanding().map(Suspension::expires_at).min())
    }

    /// Ends a call that waits, also one whose suspension is gone from the store: whoever took it
    /// has not lived to record what came of it, and every call has an answer.
    async fn end<D: Door>(
        &mut self,
        door: &D,
        id: &SuspensionId,
        resolution: Resolution,
        ending: Ending,
    ) -> Result<(), RunError> {
        match self.resolve(door, id, resolution).await {
            Ok(()) => {}
            Err(RunError::Redeem(RedeemError::Unknown | RedeemError::AlreadyResolved)) => {
                self.record.give_up(id, door.now());
            }
            Err(error) => return Err(error),
        }
        self.record.ending.get_or_insert(ending);
        Ok(())
    }

    /// Saves the run. What another process has saved of it meanwhile is taken over: of every call,
    /// whichever answer was saved first.
    pub async fn save(&mut self, store: &dyn RunStore) -> Result<(), RunError> {
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

    fn check_owner<D: Door>(&self, door: &D) -> Result<(), RunError> {
        if door.identity() == self.record.identity() { Ok(()) } else { Err(RunError::Unknown) }
    }

    /// The run as protocols show it: `{id, status, required_action?}`, where the action has the type
    /// `submit_tool_outputs` if calls wait for the client, and lists them in OpenAI's form; calls
    /// that wait for anything else are listed under `waiting`.
    pub fn to_value(&self) -> Value {
        let (client, others): (Vec<_>, Vec<_>) =
            self.outstanding().partition(|one| matches!(one.waiting(), Waiting::Client));
        let mut run = json!({"id": self.id().as_str(), "status": self.state().as_str()});
        if !client.is_empty() {
            let calls: Vec<_> = client.into_iter().map(tool_call).collect();
            run["required_action"] = json!({
                "type": "submit_tool_outputs",
                "submit_tool_outputs": {"tool_calls": calls},
            });
        }
        if !others.is_empty() {
            run["waiting"] = others.into_iter().map(waiting).collect();
        }
        run
    }
}

fn tool_call(suspension: &Suspension) -> Value {
    json!({
        "id": suspension.call_id(),
        "type": "function",
        "function": {"name": suspension.tool(), "arguments": suspension.arguments()},
    })
}

fn waiting(suspension: &Suspension) -> Value {
    let mut value = json!({
        "id": suspension.id().as_str(),
        "call_id": suspension.call_id(),
        "tool": suspension.tool(),
        "type": suspension.waiting().as_str(),
        "expires_at": suspension.expires_at().unix_millis(),
    });
    match suspension.waiting() {
        Waiting::Approval { reason, rule } => {
            value["reason"] = reason.as_str().into();
            value["rule"] = rule.as_str().into();
        }
        Waiting::Input { message, schema } => {
            value["message"] = message.as_str().into();
            value["schema"] = schema.clone();
        }
        Waiting::Pending { ticket } => value["ticket"] = ticket.as_str().into(),
        Waiting::Client => {}
    }
    value
}

impl From<Answer> for Slot {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Done(result) => Self::Done(Box::new((&result).into())),
            Answer::Suspended(suspension) => Self::Waiting(suspension),
        }
    }
}

/// The answer to a call whose waiting record is gone.
fn lost() -> ToolError {
    ToolError::internal("the call was resolved by a process that ended before it said with what")
        .with_hint("Whether the tool ran is unknown. Look before you make the call again.")
}
