//! The body of a stream that only carries notifications: it ends when the server says so.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::transport::http::McpBody;

/// A body that ends when there are no more notifications.
pub(crate) struct NotificationBody {
    body: McpBody,
    notifications_ended: Pin<Box<WaitForCancellationFutureOwned>>,
    is_over: bool,
}

impl NotificationBody {
    /// Wraps `body` so that it ends when `notifications_ended` is cancelled.
    pub(crate) fn until(notifications_ended: &CancellationToken, body: McpBody) -> McpBody {
        let notifications_ended = Box::pin(notifications_ended.clone().cancelled_owned());
        Self { body, notifications_ended, is_over: false }.boxed()
    }
}

impl Body for NotificationBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !self.is_over && self.notifications_ended.as_mut().poll(cx).is_ready() {
            self.is_over = true;
        }
        if self.is_over {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
