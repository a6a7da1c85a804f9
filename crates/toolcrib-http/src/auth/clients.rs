//! The clients of a listener, which a reload can replace.

use std::sync::{Arc, PoisonError, RwLock};

use toolcrib_core::approval::{CallerRights, CallerStatus};
use toolcrib_core::suspension::Caller;

use crate::auth::client::Clients;

/// The current clients. Requests look them up; a reload replaces them.
#[derive(Debug)]
pub(crate) struct LiveClients(RwLock<Arc<Clients>>);

impl LiveClients {
    pub(crate) fn new(clients: Clients) -> Self {
        Self(RwLock::new(Arc::new(clients)))
    }

    /// The current clients.
    pub(crate) fn now(&self) -> Arc<Clients> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the clients and ends what `next` no longer allows. Returns the names of those that
    /// were revoked or whose rights have changed.
    pub(crate) fn replace(&self, next: Clients) -> Vec<Arc<str>> {
        let next = Arc::new(next);
        let before = {
            let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *current, Arc::clone(&next))
        };
        before.replace_with(&next)
    }
}

/// A suspended call continues with the rights that its client has at the decision.
impl CallerRights for LiveClients {
    fn caller_status(&self, caller: &Caller) -> CallerStatus {
        self.now().caller_status(caller)
    }
}
