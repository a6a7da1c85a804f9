//! Where a kept answer was spilled, so that its further hits need not be spilled again.

use std::sync::{Mutex, PoisonError};

use crate::spill::{Handle, Owner, SpillStore};

/// Owners remembered for one answer: sessions of one identity.
const MAX_OWNERS: usize = 16;

/// The handles under which the text of one answer is kept in the spill, by owner.
#[derive(Debug, Default)]
pub(crate) struct SpillMemo(Mutex<Vec<(Owner, Handle)>>);

impl SpillMemo {
    /// The handle of this owner, if the store still has the text.
    pub(crate) async fn find(&self, store: &dyn SpillStore, owner: &Owner) -> Option<Handle> {
        let handle = {
            let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.iter().find(|(known, _)| known == owner).map(|(_, handle)| *handle)
        }?;
        store.read(owner, &handle, 0, 1).await.is_ok().then_some(handle)
    }

    /// Remembers the handle of an owner.
    pub(crate) fn remember(&self, owner: &Owner, handle: Handle) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(known, _)| known != owner);
        if known.len() >= MAX_OWNERS {
            known.remove(0);
        }
        known.push((owner.clone(), handle));
    }
}
