//! Reading a turn's stored outputs.

use super::{Handle, Owner, Page, SpillError};
use crate::Turn;

impl Turn {
    /// Whether cut outputs are stored, to be read with [`kept_output`](Self::kept_output) and
    /// [`READ_OUTPUT`](super::READ_OUTPUT).
    pub fn keeps_outputs(&self) -> bool {
        self.state.spill().is_some()
    }

    /// Reads up to `limit` characters of a stored output from `offset`. Only outputs of this turn's
    /// identity and session can be read.
    ///
    /// Fails with [`SpillError::NotFound`] also if outputs are not stored.
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
