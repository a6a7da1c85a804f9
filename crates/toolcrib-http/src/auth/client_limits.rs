//! The rate and concurrency limits of one client.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task_local;
use toolcrib_core::TokenBucket;
use toolcrib_tool::RateLimit;

/// Admits the requests of one client within its limits.
#[derive(Debug)]
pub(crate) struct ClientLimits {
    rate: Option<TokenBucket>,
    slots: Option<Arc<Semaphore>>,
}

/// A permit for an admitted request, which counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    _slot: Option<OwnedSemaphorePermit>,
}

task_local! {
    static CURRENT: Arc<Permit>;
}

impl Permit {
    /// Runs the answer to an admitted request. Work that continues without the request keeps the
    /// [permit](Self::of_this_request) until it ends.
    pub(crate) async fn during<T>(self: Arc<Self>, answer: impl Future<Output = T>) -> T {
        CURRENT.scope(self, answer).await
    }

    /// The permit of the current request, if it has one.
    pub(crate) fn of_this_request() -> Option<Arc<Self>> {
        CURRENT.try_with(Arc::clone).ok()
    }
}

/// Why a request was not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitExceeded {
    /// Too many requests in a period: the next one may come after this delay.
    Rate(Duration),
    /// Too many concurrent requests.
    Concurrency,
}

impl ClientLimits {
    pub(crate) fn new(rate: Option<RateLimit>, concurrent: Option<usize>) -> Self {
        let slots =
            concurrent.map(|slots| Arc::new(Semaphore::new(slots.min(Semaphore::MAX_PERMITS))));
        Self { rate: rate.map(TokenBucket::new), slots }
    }

    /// Admits a request. Never waits: a client that is told to retry knows more than one that
    /// hangs.
    pub(crate) fn enter(&self) -> Result<Permit, LimitExceeded> {
        // Acquire the slot first, so that a request without a slot uses no rate token.
        let slot = match &self.slots {
            None => None,
            Some(slots) => Some(
                Arc::clone(slots).try_acquire_owned().map_err(|_| LimitExceeded::Concurrency)?,
            ),
        };
        self.count()?;
        Ok(Permit { _slot: slot })
    }

    /// Counts a request against the rate. It needs no slot if it is made within another one.
    pub(crate) fn count(&self) -> Result<(), LimitExceeded> {
        self.rate.as_ref().map_or(Ok(()), |rate| rate.take().map_err(LimitExceeded::Rate))
    }
}

/// A response body whose request counts until the body is sent or dropped.
pub(crate) struct CountedBody {
    body: Body,
    _pass: Arc<Permit>,
}

impl CountedBody {
    pub(crate) fn new(body: Body, pass: Arc<Permit>) -> Self {
        Self { body, _pass: pass }
    }
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slot_is_free_after_its_request_ends() {
        let limits = ClientLimits::new(None, Some(1));
        let first = limits.enter().unwrap();
        assert_eq!(limits.enter().unwrap_err(), LimitExceeded::Concurrency);
        drop(first);
        assert!(limits.enter().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_a_slot_uses_no_rate_tokens() {
        let limits = ClientLimits::new(Some("2/min".parse().unwrap()), Some(1));
        let first = limits.enter().unwrap();
        assert_eq!(limits.enter().unwrap_err(), LimitExceeded::Concurrency);
        drop(first);
        assert!(limits.enter().is_ok());
        assert_eq!(limits.enter().unwrap_err(), LimitExceeded::Rate(Duration::from_secs(30)));
    }
}
