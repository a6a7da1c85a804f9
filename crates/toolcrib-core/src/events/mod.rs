#![doc = include_str!("../docs/events.md")]

mod bus;
mod channel;
mod emitter;
mod event;
mod json;
pub(crate) mod masked_stream;
mod outcome;
mod status;
mod stream;
#[cfg(test)]
mod tests;

pub use bus::{EventBus, Subscription};
pub use channel::{
    ChannelOptions, ChannelOverflow, ChannelReport, Detachment, EventReader, MemoryOverflow,
    OutputChannel, OverflowEntry, SpillOverflow,
};
pub use emitter::{EmitterHandle, EventEmitter, Listeners};
pub use event::{Completion, Event, Payload, Stage};
pub use stream::CallStream;
