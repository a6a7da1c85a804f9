//! A spill store in memory.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;
use toolcrib_tool::BoxFuture;

use super::{Handle, Owner, Page, SpillError, SpillKey, SpillLimits, SpillStore, Spilled};

/// Keeps outputs in memory, bounded by bytes, number and age. Time is tokio's.
#[derive(Debug)]
pub struct MemorySpill {
    limits: SpillLimits,
    kept: Mutex<StoredTexts>,
}

#[derive(Debug, Default)]
struct StoredTexts {
    texts: HashMap<SpillKey, Arc<Spilled>>,
    /// Per identity, oldest first, which is also the order of expiry.
    owners: HashMap<Box<str>, OwnerTexts>,
    bytes: usize,
}

/// The texts of one identity.
#[derive(Debug, Default)]
struct OwnerTexts {
    order: VecDeque<(SpillKey, Instant)>,
    bytes: usize,
}

impl MemorySpill {
    /// An empty store.
    pub fn new(limits: SpillLimits) -> Self {
        Self { limits, kept: Mutex::default() }
    }

    /// The number of stored texts, and their total size in bytes.
    pub fn size(&self) -> (usize, usize) {
        let kept = self.locked();
        (kept.texts.len(), kept.bytes)
    }

    fn locked(&self) -> MutexGuard<'_, StoredTexts> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(&self, owner: &Owner, spilled: Spilled) -> Result<Handle, SpillError> {
        let bytes = spilled.text.len();
        self.limits.admit(bytes)?;
        let handle = Handle::random()?;
        let key = SpillKey::of(owner, &handle);
        let now = Instant::now();
        let mut kept = self.locked();
        kept.expire(&self.limits, now);
        while kept.owned_bytes(owner) + bytes > self.limits.max_owner_bytes {
            kept.drop_oldest_of(owner.identity());
        }
        // The identity that holds the most makes room.
        while kept.texts.len() >= self.limits.max_entries {
            kept.drop_oldest_of_the_largest(|share| (share.order.len(), share.bytes));
        }
        while kept.bytes + bytes > self.limits.max_bytes {
            kept.drop_oldest_of_the_largest(|share| (share.bytes, share.order.len()));
        }
        kept.bytes += bytes;
        let share = kept.owners.entry(owner.identity().into()).or_default();
        share.bytes += bytes;
        share.order.push_back((key, now));
        kept.texts.insert(key, Arc::new(spilled));
        Ok(handle)
    }

    fn find(&self, key: &SpillKey) -> Option<Arc<Spilled>> {
        let mut kept = self.locked();
        kept.expire(&self.limits, Instant::now());
        kept.texts.get(key).cloned()
    }
}

impl StoredTexts {
    fn owned_bytes(&self, owner: &Owner) -> usize {
        self.owners.get(owner.identity()).map_or(0, |share| share.bytes)
    }

    fn expire(&mut self, limits: &SpillLimits, now: Instant) {
        let is_old = |share: &OwnerTexts| {
            let oldest = share.order.front();
            oldest.is_some_and(|(_, since)| now.duration_since(*since) >= limits.ttl)
        };
        while let Some((owner, _)) = self.owners.iter().find(|(_, share)| is_old(share)) {
            let owner = owner.clone();
            self.drop_oldest_of(&owner);
        }
    }

    fn drop_oldest_of_the_largest(&mut self, size: impl Fn(&OwnerTexts) -> (usize, usize)) {
        let largest = self.owners.iter().max_by_key(|(_, share)| size(share));
        if let Some(owner) = largest.map(|(owner, _)| owner.clone()) {
            self.drop_oldest_of(&owner);
        }
    }

    fn drop_oldest_of(&mut self, owner: &str) {
        let Some(share) = self.owners.get_mut(owner) else { return };
        if let Some((key, _)) = share.order.pop_front()
            && let Some(dropped) = self.texts.remove(&key)
        {
            self.bytes -= dropped.text.len();
            share.bytes -= dropped.text.len();
        }
        if share.order.is_empty() {
            self.owners.remove(owner);
        }
    }
}

impl SpillStore for MemorySpill {
    fn put<'a>(
        &'a self,
        owner: &'a Owner,
        spilled: Spilled,
    ) -> BoxFuture<'a, Result<Handle, SpillError>> {
        Box::pin(std::future::ready(self.insert(owner, spilled)))
    }

    fn read<'a>(
        &'a self,
        owner: &'a Owner,
        handle: &'a Handle,
        offset: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page, SpillError>> {
        // The page is extracted outside the lock.
        let found = self.find(&SpillKey::of(owner, handle));
        let page = found.map(|whole| Page::of(&whole, offset, limit)).ok_or(SpillError::NotFound);
        Box::pin(std::future::ready(page))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolcrib_tool::ContextValues;

    use super::*;

    fn store(max_bytes: usize, max_entries: usize) -> MemorySpill {
        MemorySpill::new(SpillLimits { max_bytes, max_entries, ..SpillLimits::default() })
    }

    fn nobody() -> Owner {
        Owner::of(&ContextValues::new(), None)
    }

    #[tokio::test]
    async fn the_oldest_goes_when_bytes_or_places_run_out() {
        for store in [store(10, 100), store(100, 2)] {
            let owner = nobody();
            let mut handles = Vec::new();
            for text in ["aaaa", "bbbb", "cccc"] {
                handles.push(store.put(&owner, Spilled::text(text)).await.unwrap());
            }
            assert_eq!(store.read(&owner, &handles[0], 0, 9).await, Err(SpillError::NotFound));
            for handle in &handles[1..] {
                assert_eq!(store.read(&owner, handle, 0, 9).await.unwrap().total_chars, 4);
            }
            assert_eq!(store.size(), (2, 8));
        }
    }

    #[tokio::test]
    async fn one_identity_pushes_out_no_output_of_another() {
        let limits = SpillLimits { max_bytes: 100, max_owner_bytes: 50, ..SpillLimits::default() };
        for (limits, kept) in [(limits, 5), (SpillLimits { max_owner_bytes: 100, ..limits }, 9)] {
            let store = MemorySpill::new(limits);
            let of = |user: &str| Owner::of(&ContextValues::new().with("user", user), None);
            let handle = store.put(&of("bob"), Spilled::text("his")).await.unwrap();
            for _ in 0..70 {
                store.put(&of("ada"), Spilled::text("x".repeat(10))).await.unwrap();
            }
            assert_eq!(store.read(&of("bob"), &handle, 0, 9).await.unwrap().text, "his");
            assert_eq!(store.size(), (kept + 1, kept * 10 + 3));
        }
    }

    #[tokio::test]
    async fn what_is_too_large_pushes_nothing_out() {
        let (store, owner) = (store(10, 100), nobody());
        let handle = store.put(&owner, Spilled::text("kept")).await.unwrap();
        let refused = store.put(&owner, Spilled::text("x".repeat(11))).await;
        assert_eq!(refused, Err(SpillError::TooLarge { bytes: 11, limit: 10 }));
        assert_eq!(store.read(&owner, &handle, 0, 9).await.unwrap().text, "kept");
    }

    #[tokio::test(start_paused = true)]
    async fn a_text_expires() {
        let (store, owner) = (store(100, 100), nobody());
        let handle = store.put(&owner, Spilled::text("old")).await.unwrap();
        tokio::time::advance(Duration::from_secs(3599)).await;
        assert!(store.read(&owner, &handle, 0, 9).await.is_ok());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(store.read(&owner, &handle, 0, 9).await, Err(SpillError::NotFound));
        assert_eq!(store.size(), (0, 0));
    }

    #[tokio::test]
    async fn a_handle_is_worth_nothing_to_another_identity_or_session() {
        let store = store(100, 100);
        let values = ContextValues::new().with("tenant", "t").with("user", "ada");
        let owner = Owner::of(&values, Some("s"));
        let handle = store.put(&owner, Spilled::text("hers")).await.unwrap();
        let others = [
            Owner::of(&values, None),
            Owner::of(&values, Some("s2")),
            Owner::of(&values.clone().with("user", "bob"), Some("s")),
            Owner::of(&values.clone().with("tenant", "u"), Some("s")),
        ];
        for other in &others {
            let never = Handle::random().unwrap();
            assert_eq!(
                store.read(other, &handle, 0, 9).await,
                store.read(other, &never, 0, 9).await
            );
        }
        assert_eq!(store.read(&owner, &handle, 0, 9).await.unwrap().text, "hers");
    }
}
