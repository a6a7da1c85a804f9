#![doc = include_str!("../docs/events.md")]

mod bus;
mod channel;
mod event;
mod json;
pub(crate) mod masked_output;
mod outcome;
mod status;
mod stream;
#[cfg(test)]
mod tests;
mod emitter;

pub use bus::{EventBus, Subscription};
pub use channel::{
    ChannelOptions, ChannelOverflow, ChannelReport, Detachment, EventReader, MemoryOverflow,
    OutputChannel, SpillOverflow, OverflowEntry,
};
pub use event::{Completion, Event, Payload, Stage};
pub use stream::CallStream;
pub use emitter::{Listeners, EventEmitter, EmitterHandle};
