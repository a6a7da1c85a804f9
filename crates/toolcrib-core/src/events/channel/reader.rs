//! The one who reads a stream of events.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;

use crate::events::channel::shared::SharedChannel;
use crate::events::event::Event;

/// Reads the events of an [`OutputChannel`](super::OutputChannel) or a
/// [`CallStream`](crate::events::CallStream), in order; it is a [`Stream`] of them.
///
/// Dropping it detaches it: nobody waits for it any more. One that takes nothing for too long while
/// a call waits for it is detached too; its last event says so ([`Payload::Detached`]).
///
/// [`Payload::Detached`]: crate::events::Payload::Detached
pub struct EventReader {
    shell: Arc<SharedChannel>,
    generation: u64,
    over: bool,
}

impl EventReader {
    pub(crate) fn new(shell: Arc<SharedChannel>, generation: u64) -> Self {
        Self { shell, generation, over: false }
    }

    /// The next event; `None` at the end. Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Ends the stream behind what has been said by now. For readers that have the answer they waited
    /// for: a call that waits for somebody stays at work, and may go on talking.
    pub fn finish(&self) {
        self.shell.finish();
    }

    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if self.over {
            return Poll::Ready(None);
        }
        let next = self.shell.poll_next(self.generation, cx);
        next.map(|next| {
            self.over = !matches!(next, Ok(Some(_)));
            next.unwrap_or_else(Some)
        })
    }
}

impl Stream for EventReader {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.get_mut().poll_event(cx)
    }
}

impl Drop for EventReader {
    fn drop(&mut self) {
        self.shell.left(self.generation);
    }
}

impl fmt::Debug for EventReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventReader").field("over", &self.over).finish_non_exhaustive()
    }
}
