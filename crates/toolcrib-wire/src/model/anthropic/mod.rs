//! Anthropic's messages.

mod block;
mod message;
mod request;
mod stream;

pub(super) use block::{input, view};
pub(super) use message::read_message;
pub(super) use request::{write_head, write_items, write_tail};
pub(super) use stream::MessageStream;

/// The member of an `input` that holds arguments that are not a JSON object, which the API would refuse.
const INVALID_JSON: &str = "INVALID_JSON";
