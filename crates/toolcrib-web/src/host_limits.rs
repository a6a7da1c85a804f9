//! How many requests go to one host at the same time.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Entries that nobody uses are dropped once there are this many.
const SWEEP_AT: usize = 256;

/// A semaphore for each host that is being asked.
pub(crate) struct HostLimits {
    per_host: NonZeroUsize,
    hosts: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl HostLimits {
    pub(crate) fn new(per_host: NonZeroUsize) -> Self {
        Self { per_host, hosts: Mutex::default() }
    }

    /// Waits for a turn at a host. Dropping the permit gives it back.
    pub(crate) async fn permit(&self, host: &str) -> Option<OwnedSemaphorePermit> {
        let semaphore = {
            let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
            if hosts.len() >= SWEEP_AT {
                hosts.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
            }
            let new = || Arc::new(Semaphore::new(self.per_host.get()));
            Arc::clone(hosts.entry(host.to_owned()).or_insert_with(new))
        };
        // It is never closed.
        semaphore.acquire_owned().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn hosts_that_nobody_asks_are_forgotten() {
        let limits = HostLimits::new(NonZeroUsize::MIN);
        let _held = limits.permit("held.example").await;
        for host in 0..2 * SWEEP_AT {
            drop(limits.permit(&format!("h{host}.example")).await);
        }
        let hosts = limits.hosts.lock().unwrap();
        assert!(hosts.len() <= SWEEP_AT && hosts.contains_key("held.example"));
    }
}
