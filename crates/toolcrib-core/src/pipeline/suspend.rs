//! Calls that wait: put into the store with all they are bound to, or refused where they cannot be.

use toolcrib_tool::{Arguments, ErrorKind, ToolError};

use super::{Leave, PipelineRun};
use crate::approval::{self, ShownCall};
use crate::bounds::Full;
use crate::registry::Slot;
use crate::suspension::{StoreError, Suspension, Waiting};

impl PipelineRun<'_> {
    /// Puts the call away until somebody resolves it; or it fails, where nobody could.
    pub(super) async fn suspend(
        &self,
        slot: &Slot,
        arguments: Option<&Arguments>,
        waiting: Waiting,
    ) -> Leave {
        match arguments {
            Some(arguments) => {
                self.suspend_showing(slot, arguments, waiting, ShownCall::default()).await
            }
            None => nobody_waits(&waiting).into(),
        }
    }

    /// The same with what whoever decides is shown.
    pub(super) async fn suspend_showing(
        &self,
        slot: &Slot,
        arguments: &Arguments,
        waiting: Waiting,
        shown: ShownCall,
    ) -> Leave {
        let state = self.state();
        let Some(store) = &state.shared.suspensions else {
            return nobody_waits(&waiting).into();
        };
        let delegation = self.origin.maker.and_then(|maker| maker.delegation);
        if self.origin.lineage.depth() > 0 && delegation.is_none() {
            // Its maker would have to be run again up to here, and may have done other things.
            return waits_within(&waiting, self.name).into();
        }
        let caller = match state.caller(&slot.entry.definition) {
            Ok(caller) => caller,
            Err(error) => return unkept(error).into(),
        };
        let config = &state.shared.config;
        let limit = match waiting {
            Waiting::Client => slot.entry.definition.timeout(),
            Waiting::Approval { .. } | Waiting::Input { .. } => config.approval_timeout,
            Waiting::Pending { .. } => None,
        };
        let now = state.shared.now();
        let expires_at = limit.map_or(crate::clock::Timestamp::NEVER, |limit| now.after(limit));
        let tool = (slot.entry.name(), slot.fingerprint());
        let suspended = Suspension::of(self.id, tool, arguments, waiting, (now, expires_at));
        let mut suspension = match suspended {
            Ok(suspension) => suspension.for_identity(&*state.identity).by(caller).showing(shown),
            Err(error) => return unkept(error).into(),
        };
        if let Some(delegation) = delegation {
            suspension = suspension.made_by(delegation);
        }
        if let Some(session) = &state.session {
            suspension = suspension.in_session(&**session);
        }
        match store.put(&suspension).await {
            Ok(()) => Leave::Suspended(Box::new(suspension)),
            Err(StoreError::Full(full)) => too_many_wait(full).into(),
            Err(error) => unkept(error).into(),
        }
    }
}

/// The failure of a call that cannot wait because too many do.
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

/// The failure of a call that would have to wait, and was made by another call.
fn waits_within(waiting: &Waiting, tool: &str) -> ToolError {
    let why = match waiting {
        Waiting::Approval { reason, .. } => format!("it needs approval: {reason}"),
        Waiting::Client => "it runs at the client".to_owned(),
        Waiting::Input { message, .. } => format!("it needs an answer from a person: {message}"),
        Waiting::Pending { ticket } => format!("its work goes on elsewhere as {ticket}"),
    };
    let kind = match waiting {
        Waiting::Approval { .. } => ErrorKind::RequiresApproval,
        _ => ErrorKind::Unavailable,
    };
    ToolError::new(kind, format!("{why}; a call that another tool makes cannot wait for that"))
        .with_hint(format!("Nothing was run. Call `{tool}` itself."))
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

/// What a call that waits says to those who cannot wait with it.
pub(super) fn waits(suspension: &Suspension) -> ToolError {
    let why = match suspension.waiting() {
        Waiting::Approval { reason, .. } => format!("it waits for approval: {reason}"),
        Waiting::Client => "it waits for the client to run it".to_owned(),
        Waiting::Input { message, .. } => format!("it waits for an answer: {message}"),
        Waiting::Pending { ticket } => format!("its work goes on elsewhere as {ticket}"),
    };
    ToolError::new(ErrorKind::RequiresApproval, why)
        .with_hint("It will be answered later; do not make the same call again.")
}
