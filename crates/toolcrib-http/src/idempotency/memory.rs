//! Answers to requests with idempotency keys, in memory.

use std::collections::{HashMap, VecDeque};
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;
use toolcrib_core::run::RunId;
use toolcrib_tool::BoxFuture;

use crate::idempotency::store::{
    AnswerError, AnswerKey, AnswerLimits, AnswerStore, Claim, StoredResponse,
};

/// Stores answers in memory, with expiry by tokio's clock.
#[derive(Debug, Default)]
pub struct MemoryAnswers {
    limits: AnswerLimits,
    kept: Mutex<AnswerTable>,
}

#[derive(Debug, Default)]
struct AnswerTable {
    entries: HashMap<AnswerKey, Entry>,
    /// Oldest first; some may have been removed. All have the same lifetime, so they expire in this
    /// order.
    claimed: VecDeque<(Instant, AnswerKey)>,
    clients: HashMap<String, ClientUsage>,
}

#[derive(Debug)]
struct Entry {
    request: String,
    claimed: Instant,
    run: Option<String>,
    answer: Option<StoredResponse>,
}

/// The share of one client.
#[derive(Debug, Default)]
struct ClientUsage {
    keys: usize,
    bytes: usize,
}

impl MemoryAnswers {
    /// Creates an empty store.
    pub fn within(limits: AnswerLimits) -> Self {
        Self { limits, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, AnswerTable> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn claimed(&self, key: &AnswerKey, request: &str) -> Result<Claim, AnswerError> {
        let mut kept = self.kept();
        let now = Instant::now();
        kept.forget_old(&self.limits, now);
        if let Some(entry) = kept.entries.get(key) {
            let request = entry.request.clone();
            // Requests in progress in this process are handled before this; a claim without an
            // answer was abandoned.
            return Ok(match entry.answer.clone() {
                Some(answer) => Claim::Answered { request, answer },
                None => Claim::Lost { request, run: entry.run.clone() },
            });
        }
        let all = kept.entries.len();
        let own = kept.clients.get(key.client());
        let (keys, bytes) = own.map_or((0, 0), |own| (own.keys, own.bytes));
        self.limits.admit(keys, bytes, all).map_err(|full| {
            let oldest = kept.claimed.iter().find(|(_, one)| one.client() == key.client());
            match oldest {
                Some((claimed, _)) => {
                    full.with_retry_after(self.limits.kept.saturating_sub(now - *claimed))
                }
                None => full,
            }
        })?;
        let entry = Entry { request: request.to_owned(), claimed: now, run: None, answer: None };
        kept.entries.insert(key.clone(), entry);
        kept.claimed.push_back((now, key.clone()));
        kept.clients.entry(key.client().to_owned()).or_default().keys += 1;
        Ok(Claim::New)
    }

    fn settled(&self, key: &AnswerKey, answer: &StoredResponse) {
        let mut kept = self.kept();
        let AnswerTable { entries, clients, .. } = &mut *kept;
        if let Some(entry) = entries.get_mut(key)
            && let Some(own) = clients.get_mut(key.client())
        {
            own.bytes += answer.size();
            entry.answer = Some(answer.clone());
        }
    }
}

impl AnswerTable {
    fn forget_old(&mut self, limits: &AnswerLimits, now: Instant) {
        while let Some((claimed, _)) = self.claimed.front()
            && now.duration_since(*claimed) >= limits.kept
        {
            let Some((claimed, key)) = self.claimed.pop_front() else { return };
            // A key that was released and claimed again is another entry.
            if self.entries.get(&key).is_some_and(|entry| entry.claimed == claimed) {
                self.forget(&key);
            }
        }
    }

    fn forget(&mut self, key: &AnswerKey) {
        let Some(gone) = self.entries.remove(key) else { return };
        let Some(own) = self.clients.get_mut(key.client()) else { return };
        own.keys -= 1;
        own.bytes -= gone.answer.as_ref().map_or(0, StoredResponse::size);
        if own.keys == 0 {
            self.clients.remove(key.client());
        }
    }
}

impl AnswerStore for MemoryAnswers {
    fn claim<'a>(
        &'a self,
        key: &'a AnswerKey,
        request: &'a str,
    ) -> BoxFuture<'a, Result<Claim, AnswerError>> {
        Box::pin(ready(self.claimed(key, request)))
    }

    fn settle<'a>(
        &'a self,
        key: &'a AnswerKey,
        answer: &'a StoredResponse,
    ) -> BoxFuture<'a, Result<(), AnswerError>> {
        self.settled(key, answer);
        Box::pin(ready(Ok(())))
    }

    fn note_run<'a>(
        &'a self,
        key: &'a AnswerKey,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<(), AnswerError>> {
        if let Some(entry) = self.kept().entries.get_mut(key) {
            entry.run = Some(run.to_string());
        }
        Box::pin(ready(Ok(())))
    }

    fn release<'a>(&'a self, key: &'a AnswerKey) -> BoxFuture<'a, Result<(), AnswerError>> {
        let mut kept = self.kept();
        if kept.entries.get(key).is_some_and(|entry| entry.answer.is_none()) {
            kept.forget(key);
        }
        Box::pin(ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(client: &str, key: &str) -> AnswerKey {
        AnswerKey::new(client, key)
    }

    fn answer() -> StoredResponse {
        StoredResponse { status: 200, headers: Vec::new(), body: "{}".to_owned() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_at_its_key_limit_is_refused_until_its_oldest_key_expires() {
        let store = MemoryAnswers::within(AnswerLimits::default().with_keys(2));
        for name in ["a", "b"] {
            let key = key("ada", name);
            assert_eq!(store.claim(&key, "1").await.unwrap(), Claim::New);
            store.settle(&key, &answer()).await.unwrap();
            tokio::time::advance(Duration::from_secs(60)).await;
        }
        let error = store.claim(&key("ada", "c"), "1").await.unwrap_err();
        let AnswerError::Full(full) = error else { panic!("{error}") };
        assert!(full.to_string().contains("this client has 2 Idempotency-Keys"), "{full}");
        assert_eq!(full.retry_after, Some(Duration::from_secs(24 * 3600 - 120)));
        assert_eq!(store.claim(&key("bob", "c"), "1").await.unwrap(), Claim::New);
        // The other keys of the client are kept.
        let known = store.claim(&key("ada", "a"), "1").await.unwrap();
        assert!(matches!(known, Claim::Answered { .. }));
        tokio::time::advance(Duration::from_secs(24 * 3600 - 120)).await;
        assert_eq!(store.claim(&key("ada", "c"), "1").await.unwrap(), Claim::New);
    }

    #[tokio::test]
    async fn an_abandoned_claim_is_lost_and_a_released_key_is_new() {
        let store = MemoryAnswers::default();
        let key = key("ada", "a");
        assert_eq!(store.claim(&key, "1").await.unwrap(), Claim::New);
        let lost = |run| Claim::Lost { request: "1".to_owned(), run };
        assert_eq!(store.claim(&key, "1").await.unwrap(), lost(None));
        let run = RunId::random().unwrap();
        store.note_run(&key, &run).await.unwrap();
        assert_eq!(store.claim(&key, "1").await.unwrap(), lost(Some(run.to_string())));
        store.release(&key).await.unwrap();
        assert_eq!(store.claim(&key, "2").await.unwrap(), Claim::New);
    }
}
