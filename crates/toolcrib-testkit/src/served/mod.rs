//! Checkers of what a server of OpenAI's APIs sends, written from the specifications and using nothing of the code that
//! writes it.

mod chat;
mod events;
mod items;
mod resource;
mod responses;

pub use chat::{check_chunks, check_completion};
pub use items::Dialect;
pub use resource::{check_compaction, check_response};
pub use responses::{CheckedStream, check_events, check_stream};
