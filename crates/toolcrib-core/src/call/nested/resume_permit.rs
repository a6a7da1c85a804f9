//! Whether a waiting call may go on: not while the host shuts down.

use std::sync::Arc;

use toolcrib_tool::ToolError;

use crate::call::executor::Shared;
use crate::call::turn::TurnState;
use crate::suspension::{RedeemError, Resolution};

/// Lets a waiting call go on. It is obtained before the call is taken from the store, and a shutdown waits for it as
/// for a running call: a call that was taken has nowhere to wait any more.
#[derive(Default)]
#[must_use = "dropping it counts the call as ended"]
#[doc(hidden)]
pub struct ResumePermit(Option<Arc<Shared>>);

impl TurnState {
    /// Fails during a shutdown, unless the call ends without running.
    pub(crate) fn resume_permit(&self, goes_on: bool) -> Result<ResumePermit, ToolError> {
        match self.shared.shutdown.enter() {
            Ok(entered) => {
                // Dropping the permit leaves in its place.
                std::mem::forget(entered);
                Ok(ResumePermit(Some(Arc::clone(&self.shared))))
            }
            Err(_) if !goes_on => Ok(ResumePermit(None)),
            Err(error) => Err(error),
        }
    }

    /// As [`resume_permit`](Self::resume_permit), for a call that is resolved in this way.
    pub(crate) fn permit_for(&self, resolution: &Resolution) -> Result<ResumePermit, RedeemError> {
        self.resume_permit(resolution.lets_go_on()).map_err(|_| RedeemError::ShuttingDown)
    }
}

impl Drop for ResumePermit {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            shared.shutdown.leave();
        }
    }
}
