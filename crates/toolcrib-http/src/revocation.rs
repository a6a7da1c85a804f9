//! Bodies of answers that end with the token they were given to.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::BoxError;
use axum::body::HttpBody;
use hyper::body::{Frame, SizeHint};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A body that breaks off, and its connection with it, once a token is revoked.
pub(crate) struct UntilRevoked<B> {
    body: B,
    revoked: Pin<Box<WaitForCancellationFutureOwned>>,
    is_over: bool,
}

/// Why such a body broke off.
#[derive(Debug, thiserror::Error)]
#[error("the token of this client was revoked")]
struct Revoked;

impl<B> UntilRevoked<B> {
    pub(crate) fn new(body: B, revoked: CancellationToken) -> Self {
        Self { body, revoked: Box::pin(revoked.cancelled_owned()), is_over: false }
    }
}

impl<B> HttpBody for UntilRevoked<B>
where
    B: HttpBody<Error: Into<BoxError>> + Unpin,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if self.revoked.as_mut().poll(cx).is_ready() {
            self.is_over = true;
            return Poll::Ready(Some(Err(Revoked.into())));
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        polled.map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
