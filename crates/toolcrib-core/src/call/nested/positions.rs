//! Where a suspended call can be gone on with.

use crate::call::turn::State;
use crate::suspension::{RedeemError, StoreError, Suspension};

/// Where a suspended call can be gone on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum Standing {
    /// Here.
    Here,
    /// In the process of another server, in which the calls that made it are at work.
    Elsewhere(u32),
    /// Nowhere: the process in which the calls that made it were at work has ended, and they cannot
    /// be made again.
    Nowhere,
}

impl State {
    /// Where a suspended call can be gone on with.
    pub(crate) async fn standing(&self, suspension: &Suspension) -> Result<Standing, StoreError> {
        let Some(within) = suspension.within() else { return Ok(Standing::Here) };
        let Some(executor) = within.alive_in.as_deref() else { return Ok(Standing::Here) };
        let living = &self.shared.living;
        if executor == living.executor() {
            // It may just have been taken, to be gone on with.
            return Ok(Standing::Here);
        }
        let elsewhere = match &self.shared.suspensions {
            Some(store) => store.waits_elsewhere(suspension.id()).await?,
            None => None,
        };
        Ok(match elsewhere {
            Some(process) => Standing::Elsewhere(process),
            None if within.is_repeatable() => Standing::Here,
            None => Standing::Nowhere,
        })
    }

    /// Fails where only another server can go on with a call.
    pub(crate) async fn check_here(&self, suspension: &Suspension) -> Result<(), RedeemError> {
        match self.standing(suspension).await? {
            Standing::Elsewhere(process) => Err(RedeemError::Elsewhere { process }),
            Standing::Here | Standing::Nowhere => Ok(()),
        }
    }
}
