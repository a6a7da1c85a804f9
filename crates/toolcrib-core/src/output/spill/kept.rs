//! The outputs that are kept for a turn's identity.

use super::{Handle, Owner, Page, SpillError};
use crate::Turn;

impl Turn {
    /// Whether outputs that are cut are kept, to be read with [`kept_output`](Self::kept_output) and
    /// [`READ_OUTPUT`](super::READ_OUTPUT).
    pub fn keeps_outputs(&self) -> bool {
        self.state.spill().is_some()
    }

    /// Reads up to `limit` characters of a kept output from the `offset`-th on: of one that was kept
    /// for this turn's identity and session, and of no other.
    ///
    /// Fails with [`SpillError::NotFound`] also where nothing is kept.
    pub async fn kept_output(
        &self,
        handle: &Handle,
        offset: usize,
        limit: usize,
    ) -> Result<Page, SpillError> {
        let store = self.state.spill().ok_or(SpillError::NotFound)?;
        let owner = Owner::known(&self.state.identity, self.state.session.as_ref());
        store.read(&owner, handle, offset, limit).await
    }
}
