//! Where a suspended call can be resumed.

use crate::call::turn::TurnState;
use crate::suspension::{RedeemError, StoreError, Suspension};

/// Where a suspended call can be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum ResumeLocation {
    /// In this process.
    Here,
    /// In another server's process, where its ancestors are running.
    Elsewhere(u32),
    /// Nowhere: the process in which its ancestors ran has ended, and they cannot be repeated.
    Nowhere,
}

impl TurnState {
    /// Where a suspended call can be resumed.
    pub(crate) async fn resume_location(
        &self,
        suspension: &Suspension,
    ) -> Result<ResumeLocation, StoreError> {
        let Some(within) = suspension.within() else { return Ok(ResumeLocation::Here) };
        let Some(executor) = within.alive_in.as_deref() else { return Ok(ResumeLocation::Here) };
        let living = &self.shared.live_calls;
        if executor == living.executor() {
            // It may just have been taken to be resumed.
            return Ok(ResumeLocation::Here);
        }
        let elsewhere = match &self.shared.suspensions {
            Some(store) => store.waits_elsewhere(suspension.id()).await?,
            None => None,
        };
        Ok(match elsewhere {
            Some(process) => ResumeLocation::Elsewhere(process),
            None if within.is_repeatable() => ResumeLocation::Here,
            None => ResumeLocation::Nowhere,
        })
    }

    /// Fails if only another server can resume the call.
    pub(crate) async fn check_here(&self, suspension: &Suspension) -> Result<(), RedeemError> {
        match self.resume_location(suspension).await? {
            ResumeLocation::Elsewhere(process) => Err(RedeemError::Elsewhere { process }),
            ResumeLocation::Here | ResumeLocation::Nowhere => Ok(()),
        }
    }
}
