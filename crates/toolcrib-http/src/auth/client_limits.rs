//! How often and how many at once: the limits of one client.

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

/// Lets the requests of one client in, as far as its limits go.
#[derive(Debug)]
pub(crate) struct Gate {
    rate: Option<TokenBucket>,
    slots: Option<Arc<Semaphore>>,
}

/// A request that was let in. It counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Pass {
    _slot: Option<OwnedSemaphorePermit>,
}

task_local! {
    static OWN: Arc<Pass>;
}

impl Pass {
    /// Answers a request that was let in. Where its work goes on without it, it
    /// [counts](Self::of_this_request) as long as that does.
    pub(crate) async fn during<T>(self: Arc<Self>, answer: impl Future<Output = T>) -> T {
        OWN.scope(self, answer).await
    }

    /// The pass of the request that is being answered, if it needed one.
    pub(crate) fn of_this_request() -> Option<Arc<Self>> {
        OWN.try_with(Arc::clone).ok()
    }
}

/// Why a request was not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooMuch {
    /// Too many in too short a time: the next may come after this long.
    Often(Duration),
    /// So many are being answered already.
    AtOnce,
}

impl Gate {
    pub(crate) fn new(rate: Option<RateLimit>, concurrent: Option<usize>) -> Self {
        let slots =
            concurrent.map(|slots| Arc::new(Semaphore::new(slots.min(Semaphore::MAX_PERMITS))));
        Self { rate: rate.map(TokenBucket::new), slots }
    }

    /// Lets one in. Never waits: a client that is told to come back knows more than one that hangs.
    pub(crate) fn enter(&self) -> Result<Pass, TooMuch> {
        // The slot first: a request that is refused for it has taken no token.
        let slot = match &self.slots {
            None => None,
            Some(slots) => {
                Some(Arc::clone(slots).try_acquire_owned().map_err(|_| TooMuch::AtOnce)?)
            }
        };
        if let Some(rate) = &self.rate {
            rate.take().map_err(TooMuch::Often)?;
        }
        Ok(Pass { _slot: slot })
    }
}

/// The body of an answer whose request counts until it is sent, or nobody reads it.
pub(crate) struct Counted {
    body: Body,
    _pass: Arc<Pass>,
}

impl Counted {
    pub(crate) fn new(body: Body, pass: Arc<Pass>) -> Self {
        Self { body, _pass: pass }
    }
}

impl HttpBody for Counted {
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
    async fn a_slot_is_free_again_once_its_request_is_over() {
        let gate = Gate::new(None, Some(1));
        let first = gate.enter().unwrap();
        assert_eq!(gate.enter().unwrap_err(), TooMuch::AtOnce);
        drop(first);
        assert!(gate.enter().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_finds_no_slot_takes_nothing_from_the_rate() {
        let gate = Gate::new(Some("2/min".parse().unwrap()), Some(1));
        let first = gate.enter().unwrap();
        assert_eq!(gate.enter().unwrap_err(), TooMuch::AtOnce);
        drop(first);
        assert!(gate.enter().is_ok());
        assert_eq!(gate.enter().unwrap_err(), TooMuch::Often(Duration::from_secs(30)));
    }
}
