//! The clients of a listener, which a reload can replace.

use std::sync::{Arc, PoisonError, RwLock};

use toolcrib_core::approval::{CallerRights, Standing};
use toolcrib_core::suspension::Caller;

use crate::auth::client::Clients;

/// The clients as they are now. Requests look them up; a reload replaces them.
#[derive(Debug)]
pub(crate) struct LiveClients(RwLock<Arc<Clients>>);

impl LiveClients {
    pub(crate) fn new(clients: Clients) -> Self {
        Self(RwLock::new(Arc::new(clients)))
    }

    /// Those of this moment.
    pub(crate) fn now(&self) -> Arc<Clients> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets `next` in from now on, and ends what they may not do. Gives the names of those that were
    /// revoked or whose rights have changed.
    pub(crate) fn replace(&self, next: Clients) -> Vec<Arc<str>> {
        let next = Arc::new(next);
        let before = {
            let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *current, Arc::clone(&next))
        };
        before.give_way_to(&next)
    }
}

/// A call that waited runs with what its client may do when it is decided on.
impl CallerRights for LiveClients {
    fn standing(&self, caller: &Caller) -> Standing {
        self.now().standing(caller)
    }
}
