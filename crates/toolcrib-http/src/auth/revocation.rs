//! Response bodies that are aborted when their client loses its entitlement.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::BoxError;
use axum::body::HttpBody;
use hyper::body::{Frame, SizeHint};

use crate::auth::entitlement::{AdmittedRequest, EntitlementLost};

/// A body that is aborted, together with its connection, when the request may not continue.
pub(crate) struct UntilRevoked<B> {
    body: B,
    ended: Pin<Box<dyn Future<Output = EntitlementLost> + Send>>,
    is_over: bool,
}

impl<B> UntilRevoked<B> {
    pub(crate) fn new(body: B, admitted: AdmittedRequest) -> Self {
        Self { body, ended: Box::pin(admitted.ended()), is_over: false }
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
        if let Poll::Ready(ended) = self.ended.as_mut().poll(cx) {
            self.is_over = true;
            return Poll::Ready(Some(Err(ended.into())));
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
