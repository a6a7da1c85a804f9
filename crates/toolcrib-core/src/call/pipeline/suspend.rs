//! Suspending calls, or refusing them if they cannot be stored.

use toolcrib_tool::{Arguments, ErrorKind, ToolError};

use super::{Candidate, PipelineExit, PipelineRun};
use crate::approval::{self, ShownCall};
use crate::call::nested::{NestedWait, Paused};
use crate::registry::ToolSlot;
use crate::storage::bounds::Full;
use crate::suspension::{StoreError, Suspension, Waiting, Within};

impl PipelineRun<'_> {
    /// Suspends the call of a tool that runs at the client.
    pub(super) async fn leave_to_client(
        &self,
        slot: &ToolSlot,
        call: &Candidate<'_>,
    ) -> Result<(), PipelineExit> {
        if !slot.entry.definition.client() {
            return Ok(());
        }
        Err(Box::pin(self.suspend(slot, Some(&call.checked.arguments), Waiting::Client)).await)
    }

    /// Suspends the call until somebody resolves it; fails if nobody could.
    pub(super) async fn suspend(
        &self,
        slot: &ToolSlot,
        arguments: Option<&Arguments>,
        waiting: Waiting,
    ) -> PipelineExit {
        match arguments {
            Some(arguments) => {
                self.suspend_showing(slot, arguments, waiting, ShownCall::default()).await
            }
            None => nobody_waits(&waiting).into(),
        }
    }

    /// The same, with what the approver is shown.
    pub(super) async fn suspend_showing(
        &self,
        slot: &ToolSlot,
        arguments: &Arguments,
        waiting: Waiting,
        shown: ShownCall,
    ) -> PipelineExit {
        let state = self.state();
        let Some(store) = &state.shared.suspensions else {
            return nobody_waits(&waiting).into();
        };
        let lineage = self.origin.lineage;
        // Ancestors that only delegate end now and are repeated later.
        let is_alive = lineage.depth() > 0 && !lineage.hands_on(self.name);
        // Only one nested call at a time waits for somebody; its ancestors are paused meanwhile.
        let paused = is_alive.then(|| Paused::begin(lineage));
        let asking = match &paused {
            Some(_) => Some(lineage.outermost().ask().await),
            None => None,
        };
        let caller = match state.caller(&slot.entry.definition) {
            Ok(caller) => caller,
            Err(error) => return unkept(error).into(),
        };
        let config = state.shared.config.load_full();
        let limit = match waiting {
            Waiting::Client => slot.entry.definition.timeout(),
            Waiting::Approval { .. } | Waiting::Input { .. } => config.approval_timeout,
            Waiting::Pending { .. } => None,
        };
        let now = state.shared.now();
        let expires_at =
            limit.map_or(crate::storage::clock::Timestamp::NEVER, |limit| now.after(limit));
        let tool = (slot.entry.name(), slot.fingerprint());
        let suspended = Suspension::of(self.id, tool, arguments, waiting, (now, expires_at));
        let mut suspension = match suspended {
            Ok(suspension) => suspension
                .for_identity(&*state.identity)
                .by(caller)
                .showing(shown)
                .with_changed_arguments(self.mending.has_change()),
            Err(error) => return unkept(error).into(),
        };
        if let Some(within) = self.within(is_alive) {
            suspension = suspension.made_within(within);
        }
        if let Some(session) = &state.session {
            suspension = suspension.in_session(&**session);
        }
        let mut wait = match (paused, asking) {
            (Some(paused), Some(asking)) => {
                match NestedWait::begin(&state.shared, lineage, &suspension, paused, asking) {
                    Ok(wait) => Some(Box::new(wait)),
                    Err(full) => return too_many_wait(full).into(),
                }
            }
            _ => None,
        };
        match store.put(&suspension).await {
            Ok(()) => {
                if let Some(wait) = &mut wait {
                    wait.kept();
                }
                PipelineExit::Suspended(Box::new(suspension), wait)
            }
            Err(StoreError::Full(full)) => too_many_wait(full).into(),
            Err(error) => unkept(error).into(),
        }
    }

    /// The ancestors, for the suspension. With `is_alive`, they stay alive.
    fn within(&self, is_alive: bool) -> Option<Within> {
        let made = self.origin.made?;
        let mut next = self.name;
        let mut frames = Vec::with_capacity(self.origin.lineage.depth());
        for call in self.origin.lineage.calls() {
            frames.push(call.frame(next)?);
            next = call.tool_name();
        }
        frames.reverse();
        let alive_in = is_alive.then(|| self.state().shared.live_calls.executor().to_owned());
        Some(Within { nested: made.clone(), frames, alive_in })
    }
}

/// The error for a call that cannot wait because too many do.
fn too_many_wait(full: Full) -> ToolError {
    let mut error = ToolError::unavailable(format!("the call would have to wait, and {full}"))
        .with_hint("Nothing was run. Resolve or cancel calls that wait, or let them expire first.")
        .with_retryable(true);
    if let Some(wait) = full.retry_after {
        error = error.with_retry_after(wait);
    }
    error.with_source(full)
}

fn unkept(error: impl std::error::Error + Send + Sync + 'static) -> ToolError {
    ToolError::unavailable("the call would have to wait for somebody, and could not be kept")
        .with_hint("Nothing was run. Tell the user.")
        .with_source(error)
}

fn nobody_waits(waiting: &Waiting) -> ToolError {
    let why = match waiting {
        Waiting::Approval { reason, .. } => {
            return approval::refused(&format!("{reason}, and nobody here can approve it"));
        }
        Waiting::Client => "it runs at the client, which cannot be asked here".to_owned(),
        Waiting::Input { message, .. } => format!(
            "it needs an answer from a person, and this host keeps no waiting calls: {message}"
        ),
        Waiting::Pending { ticket } => {
            format!("its work goes on elsewhere as {ticket}, and this host keeps no waiting calls")
        }
    };
    ToolError::unavailable(why)
}

/// The result for callers that do not support waiting calls.
pub(crate) fn waits(suspension: &Suspension) -> ToolError {
    let why = match suspension.waiting() {
        Waiting::Approval { reason, .. } => format!("it waits for approval: {reason}"),
        Waiting::Client => "it waits for the client to run it".to_owned(),
        Waiting::Input { message, .. } => format!("it waits for an answer: {message}"),
        Waiting::Pending { ticket } => format!("its work goes on elsewhere as {ticket}"),
    };
    ToolError::new(ErrorKind::RequiresApproval, why)
        .with_hint("It will be answered later; do not make the same call again.")
}
