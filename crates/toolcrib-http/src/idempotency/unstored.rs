//! Answers that could not be stored, because the disk was full for example: this server gives them to repeated
//! requests, and stores them later.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::idempotency::store::{AnswerError, AnswerKey, AnswerStore, StoredResponse};

/// How many answers are kept.
const ANSWERS_MAX: usize = 256;
/// Their total size.
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// How long: as long as a key.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// What the store was to be told about a key.
#[derive(Debug, Clone)]
pub(super) struct UnstoredAnswer {
    /// The digest of the request.
    pub(super) content: String,
    /// `None` if nothing was done, so that the key is free again.
    pub(super) answer: Option<StoredResponse>,
}

impl UnstoredAnswer {
    fn size(&self) -> usize {
        self.answer.as_ref().map_or(0, StoredResponse::size)
    }

    /// Stores the answer, or that the key is free.
    pub(super) async fn store(
        &self,
        store: &dyn AnswerStore,
        key: &AnswerKey,
    ) -> Result<(), AnswerError> {
        match &self.answer {
            Some(answer) => store.settle(key, answer).await,
            None => store.release(key).await,
        }
    }
}

/// The latest of them, oldest first.
#[derive(Debug, Default)]
pub(super) struct UnstoredAnswers(Mutex<VecDeque<(Instant, AnswerKey, UnstoredAnswer)>>);

impl UnstoredAnswers {
    pub(super) fn keep(&self, key: AnswerKey, answer: UnstoredAnswer) {
        let mut kept = self.open();
        kept.push_back((Instant::now(), key, answer));
        let mut bytes: usize = kept.iter().map(|(_, _, answer)| answer.size()).sum();
        while kept.len() > ANSWERS_MAX || bytes > BYTES_MAX {
            let Some((_, _, oldest)) = kept.pop_front() else { break };
            bytes -= oldest.size();
        }
    }

    pub(super) fn find(&self, key: &AnswerKey) -> Option<UnstoredAnswer> {
        let mut kept = self.open();
        while kept.front().is_some_and(|(since, ..)| since.elapsed() >= KEPT) {
            kept.pop_front();
        }
        kept.iter().find(|(_, own, _)| own == key).map(|(_, _, answer)| answer.clone())
    }

    /// The store has it now.
    pub(super) fn remove(&self, key: &AnswerKey) {
        self.open().retain(|(_, own, _)| own != key);
    }

    fn open(&self) -> MutexGuard<'_, VecDeque<(Instant, AnswerKey, UnstoredAnswer)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use axum::http::StatusCode;
    use axum::response::{IntoResponse as _, Response};
    use futures_util::future::lazy;
    use toolcrib_core::run::RunId;
    use toolcrib_tool::BoxFuture;

    use super::super::{RequestOutcome, once};
    use super::*;
    use crate::api::problem::NothingDone;
    use crate::idempotency::memory::MemoryAnswers;
    use crate::idempotency::store::Claim;

    /// A store on a disk that may be full.
    #[derive(Debug, Default)]
    struct Disk {
        answers: MemoryAnswers,
        is_full: AtomicBool,
    }

    impl Disk {
        fn fill(&self, is_full: bool) {
            self.is_full.store(is_full, Ordering::SeqCst);
        }

        fn room(&self) -> Result<(), AnswerError> {
            if self.is_full.load(Ordering::SeqCst) {
                return Err(AnswerError::Unavailable("the disk is full".to_owned()));
            }
            Ok(())
        }
    }

    impl AnswerStore for Disk {
        fn claim<'a>(
            &'a self,
            key: &'a AnswerKey,
            request: &'a str,
        ) -> BoxFuture<'a, Result<Claim, AnswerError>> {
            Box::pin(async move {
                self.room()?;
                self.answers.claim(key, request).await
            })
        }

        fn settle<'a>(
            &'a self,
            key: &'a AnswerKey,
            answer: &'a StoredResponse,
        ) -> BoxFuture<'a, Result<(), AnswerError>> {
            Box::pin(async move {
                self.room()?;
                self.answers.settle(key, answer).await
            })
        }

        fn note_run<'a>(
            &'a self,
            key: &'a AnswerKey,
            run: &'a RunId,
        ) -> BoxFuture<'a, Result<(), AnswerError>> {
            Box::pin(async move {
                self.room()?;
                self.answers.note_run(key, run).await
            })
        }

        fn release<'a>(&'a self, key: &'a AnswerKey) -> BoxFuture<'a, Result<(), AnswerError>> {
            Box::pin(async move {
                self.room()?;
                self.answers.release(key).await
            })
        }
    }

    async fn ask(
        disk: &Disk,
        unstored: &UnstoredAnswers,
        content: &str,
        work: impl Future<Output = Response>,
    ) -> RequestOutcome {
        once(disk, unstored, &AnswerKey::new("ada", "k"), content, work).await
    }

    /// Work that fills the disk and answers.
    fn filling(
        disk: &Disk,
        response: impl axum::response::IntoResponse,
    ) -> impl Future<Output = Response> {
        let response = response.into_response();
        lazy(|_| {
            disk.fill(true);
            response
        })
    }

    fn never() -> impl Future<Output = Response> {
        lazy(|_| panic!("it runs once"))
    }

    #[tokio::test]
    async fn an_answer_that_the_disk_had_no_room_for_is_repeated_and_stored_later() {
        let (disk, unstored) = (Disk::default(), UnstoredAnswers::default());
        let first = ask(&disk, &unstored, "a", filling(&disk, (StatusCode::OK, "done"))).await;
        assert_eq!(first.status, StatusCode::OK);
        for is_full in [true, false, true] {
            disk.fill(is_full);
            if is_full && unstored.find(&AnswerKey::new("ada", "k")).is_none() {
                break;
            }
            let again = ask(&disk, &unstored, "a", never()).await;
            assert_eq!((again.status, &again.body), (StatusCode::OK, &first.body));
        }
        disk.fill(false);
        assert!(unstored.find(&AnswerKey::new("ada", "k")).is_none(), "the store has it");
        let again = ask(&disk, &unstored, "a", never()).await;
        assert_eq!((again.status, &again.body), (StatusCode::OK, &first.body));
        let other = ask(&disk, &unstored, "b", never()).await;
        assert_eq!(other.status, StatusCode::UNPROCESSABLE_ENTITY);
    }

    #[tokio::test]
    async fn a_key_under_which_nothing_was_done_is_free_once_there_is_room() {
        let (disk, unstored) = (Disk::default(), UnstoredAnswers::default());
        let mut refused = (StatusCode::TOO_MANY_REQUESTS, "later").into_response();
        refused.extensions_mut().insert(NothingDone);
        ask(&disk, &unstored, "a", filling(&disk, refused)).await;
        let full = ask(&disk, &unstored, "a", never()).await;
        assert_eq!(full.status, StatusCode::SERVICE_UNAVAILABLE);
        disk.fill(false);
        let done = ask(&disk, &unstored, "a", async { "done".into_response() }).await;
        assert_eq!(done.status, StatusCode::OK);
    }
}
