//! One ordered stream for many concurrent calls.

mod floor;
mod overflow;
mod reader;
mod shared;
mod speaker;
mod spilling;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use overflow::{ChannelOverflow, MemoryOverflow, OverflowEntry};
pub use reader::EventReader;
pub use spilling::SpillOverflow;

pub(crate) use crate::events::channel::shared::SharedChannel;
pub(crate) use speaker::Speaker;

use super::event::Subject;

/// The buffering of a stream, and how long calls wait for its reader.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelOptions {
    /// How many events a call can be ahead of the reader before it waits. Default 64; 0 counts as
    /// 1.
    pub events: usize,
    /// Bytes of events in memory. Further events go to the overflow, or are lost in a stream
    /// without one. One event may exceed the limit. Default 1 MiB.
    pub bytes: usize,
    /// How long a reader may read nothing although there are events. Then a call that waits for it
    /// detaches it. Default 30 s.
    pub stall: Duration,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        Self { events: 64, bytes: 1024 * 1024, stall: Duration::from_secs(30) }
    }
}

/// Why a reader was detached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Detachment {
    /// It was dropped.
    Dropped,
    /// It read nothing for [`ChannelOptions::stall`] while a call waited for it.
    Stalled,
}

/// Statistics of a channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelReport {
    /// Events that were read, including notices of lost ones.
    pub presented: u64,
    /// Events not yet read.
    pub unread: usize,
    /// Events that went through the overflow.
    pub overflowed: u64,
    /// Events that the overflow could not store.
    pub lost: u64,
    /// Why there is no reader; `None` while there is one.
    pub detached: Option<Detachment>,
}

/// One ordered stream for many calls, of a batch or of an agent's run.
///
/// The calls run concurrently but are presented one at a time. The first call that emits an event
/// holds the floor until it ends; then comes the next in the order of their first events (within
/// the same millisecond, in call order). The reader sees complete calls, one after the other, with
/// events numbered 1, 2, 3 and so on.
///
/// Only the call that holds the floor ever waits for a slow reader. Events of the others are
/// buffered, beyond a bound in the overflow. A reader that stalls or is dropped is detached:
/// further events of running calls go to the overflow, and [`attach`](Self::attach) continues with
/// them. Calls that start without a reader do not join the channel, unless their output is the
/// assistant's message.
///
/// Cloning it is cheap. The stream ends when the last clone is dropped, or
/// [`close`](Self::close) is called, and every call has ended.
#[derive(Clone)]
pub struct OutputChannel(Arc<CloseOnDrop>);

/// Closes the channel when the last handle is dropped.
struct CloseOnDrop(Arc<SharedChannel>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl OutputChannel {
    /// A channel and its reader, with a [`MemoryOverflow`] of the default size. Servers give it the
    /// [overflow of their turn](crate::Turn::overflow).
    pub fn new(options: &ChannelOptions) -> (Self, EventReader) {
        Self::with_overflow(options, MemoryOverflow::default())
    }

    /// A channel with an overflow for events that do not fit into its memory.
    pub fn with_overflow(
        options: &ChannelOptions,
        overflow: impl ChannelOverflow + 'static,
    ) -> (Self, EventReader) {
        let shell = Arc::new(SharedChannel::new(options, Some(Box::new(overflow))));
        let reader = EventReader::new(Arc::clone(&shell), 0);
        (Self(Arc::new(CloseOnDrop(shell))), reader)
    }

    /// A new reader after a detached one; it continues where that one stopped. `None` while a
    /// reader is attached.
    pub fn attach(&self) -> Option<EventReader> {
        let generation = self.0.0.attach()?;
        Some(EventReader::new(Arc::clone(&self.0.0), generation))
    }

    /// Accepts no more calls; the stream ends when the running calls have ended and their events
    /// were read.
    pub fn close(&self) {
        self.0.0.close();
    }

    /// The statistics so far.
    pub fn report(&self) -> ChannelReport {
        self.0.0.report()
    }

    /// Lets a call join; `position` is its index in the order of the calls. `None` if it is not
    /// presented.
    pub(crate) fn join(&self, position: usize, subject: &Subject) -> Option<Speaker> {
        let shell = &self.0.0;
        let heard = !subject.hidden && (subject.final_output || shell.is_attended());
        heard.then(|| Speaker::new(shell, position))
    }
}

impl fmt::Debug for OutputChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputChannel").field("report", &self.report()).finish()
    }
}
