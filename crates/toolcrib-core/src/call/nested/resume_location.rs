//! Where a suspended call can be gone on with.

use crate::call::turn::TurnState;
use crate::suspension::{RedeemError, StoreError, Suspension};

/// Where a suspended call can be gone on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum ResumeLocation {
    /// Here.
    Here,
    /// In the process of another server, in which the calls that made it are at work.
    Elsewhere(u32),
    /// Nowhere: the process in which the calls that made it were at work has ended, and they cannot
    /// be made again.
    Nowhere,
}

impl TurnState {
    /// Where a suspended call can be gone on with.
    pub(crate) async fn standing(
        &self,
        suspension: &Suspension,
    ) -> Result<ResumeLocation, StoreError> {
        let Some(within) = suspension.within() else { return Ok(ResumeLocation::Here) };
        let Some(executor) = within.alive_in.as_deref() else { return Ok(ResumeLocation::Here) };
        let living = &self.shared.live_calls;
        if executor == living.executor() {
            // It may just have been taken, to be gone on with.
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

    /// Fails where only another server can go on with a call.
    pub(crate) async fn check_here(&self, suspension: &Suspension) -> Result<(), RedeemError> {
        match self.standing(suspension).await? {
            ResumeLocation::Elsewhere(process) => Err(RedeemError::Elsewhere { process }),
            ResumeLocation::Here | ResumeLocation::Nowhere => Ok(()),
        }
    }
}
