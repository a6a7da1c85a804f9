//! Request bodies that are drained after their request was answered.
//!
//! If the connection is closed while a client is still writing, the client gets a broken pipe and
//! may never read the answer (413, 401 and the like). Therefore the rest of a body is read for a
//! moment.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::header::EXPECT;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::runtime::Handle;

/// The number of bytes to discard before the connection is closed.
const LINGER_BYTES: usize = 64 * 1024 * 1024;
/// The time limit for that.
const LINGER_TIME: Duration = Duration::from_secs(10);

/// A request body.
pub(crate) struct DrainedBody {
    /// `None` when it has ended or failed.
    inner: Option<Incoming>,
    /// Whether the client waits for `100 Continue` before it sends the body.
    waits_to_be_asked: bool,
}

impl DrainedBody {
    /// Creates the body of a request with these headers.
    pub(crate) fn new(head: &HeaderMap, body: Incoming) -> Self {
        let inner = (!body.is_end_stream()).then_some(body);
        Self { inner, waits_to_be_asked: head.contains_key(EXPECT) }
    }
}

impl Body for DrainedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(inner) = &mut self.inner else { return Poll::Ready(None) };
        let frame = Pin::new(inner).poll_frame(cx);
        self.waits_to_be_asked = false;
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.inner = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for DrainedBody {
    fn drop(&mut self) {
        let Some(rest) = self.inner.take() else { return };
        if rest.is_end_stream() || self.waits_to_be_asked {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(tokio::time::timeout(LINGER_TIME, discard(rest)));
        }
    }
}

async fn discard(mut rest: Incoming) {
    let mut bytes = 0;
    while bytes < LINGER_BYTES {
        match rest.frame().await {
            Some(Ok(frame)) => bytes += frame.data_ref().map_or(0, Bytes::len),
            Some(Err(_)) | None => return,
        }
    }
}
