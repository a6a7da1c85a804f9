//! One ordered stream for many calls that run at once.

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

pub use overflow::{ChannelOverflow, MemoryOverflow, Taken};
pub use reader::EventReader;
pub use spilling::SpillOverflow;

pub(crate) use crate::events::channel::shared::SharedChannel;
pub(crate) use speaker::Speaker;

use super::event::Subject;

/// What may wait for the reader of a stream, and how long for it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelOptions {
    /// Events a call can be ahead of the reader before it waits. Default 64; 0 counts as 1.
    pub events: usize,
    /// Bytes of events kept in memory; beyond that they go to the overflow, or, in a stream without
    /// one, are lost. One event may overshoot. Default 1 MiB.
    pub bytes: usize,
    /// How long a reader may take nothing of what is there for it; then a call that waits for it
    /// detaches it. Default 30 s.
    pub stall: Duration,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        Self { events: 64, bytes: 1024 * 1024, stall: Duration::from_secs(30) }
    }
}

/// Why a channel has no reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Detachment {
    /// It was dropped.
    Dropped,
    /// It took nothing for as long as [`ChannelOptions::stall`] says, and a call waited for it.
    Stalled,
}

/// What has become of the events of a channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelReport {
    /// Events that were read, notices of lost ones among them.
    pub presented: u64,
    /// Events that are still to be read.
    pub unread: usize,
    /// Events that went through the overflow.
    pub overflowed: u64,
    /// Events that the overflow could not keep.
    pub lost: u64,
    /// Why there is no reader; `None` while there is one.
    pub detached: Option<Detachment>,
}

/// One ordered stream for many calls: of a batch, or of an agent's run.
///
/// The calls run at once and are presented one at a time. The first to speak holds the floor until
/// it ends, however it ends; then comes the next in the order of first words (calls that spoke
/// within the same millisecond: in call order). What the reader sees is whole calls, one after the
/// other, numbered 1, 2, 3 and so on.
///
/// Only the call that holds the floor ever waits for a slow reader. What the others say is kept,
/// beyond a bound in the overflow. A stalled reader is detached, and so is one that is dropped:
/// what the calls under way still say goes to the overflow, where [`attach`](Self::attach) finds
/// it. Calls that begin when nobody reads keep out of the channel, unless their output is the
/// assistant's message.
///
/// Cloning it is cheap. The stream ends when the last clone is dropped, or
/// [`close`](Self::close) is called, and every call has ended.
#[derive(Clone)]
pub struct OutputChannel(Arc<CloseOnDrop>);

/// Closes the channel when nobody is left who could let calls in.
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

    /// A channel that puts elsewhere what does not fit into its memory.
    pub fn with_overflow(
        options: &ChannelOptions,
        overflow: impl ChannelOverflow + 'static,
    ) -> (Self, EventReader) {
        let shell = Arc::new(SharedChannel::new(options, Some(Box::new(overflow))));
        let reader = EventReader::new(Arc::clone(&shell), 0);
        (Self(Arc::new(CloseOnDrop(shell))), reader)
    }

    /// A new reader in place of one that was detached: it goes on where that one stopped. `None`
    /// while there is one.
    pub fn attach(&self) -> Option<EventReader> {
        let generation = self.0.0.attach()?;
        Some(EventReader::new(Arc::clone(&self.0.0), generation))
    }

    /// Lets no more calls in; the stream ends when those under way have ended and were read.
    pub fn close(&self) {
        self.0.0.close();
    }

    /// What has become of the events so far.
    pub fn report(&self) -> ChannelReport {
        self.0.0.report()
    }

    /// Lets a call in; `position` is its place in the order of the calls. `None`: it is not to be
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
