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
mod voice;

pub use bus::{EventBus, Subscription};
pub use channel::{
    ChannelOptions, ChannelOverflow, ChannelReport, Detachment, EventReader, MemoryOverflow,
    OutputChannel, SpillOverflow, Taken,
};
pub use event::{Completion, Event, Payload, Stage};
pub use stream::CallStream;
pub use voice::{Listeners, Voice, VoiceHandle};
