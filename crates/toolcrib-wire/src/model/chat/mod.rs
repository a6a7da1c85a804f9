//! OpenAI's chat completions.

mod calls;
mod completion;
mod message;
mod reasoning;
mod request;
mod stream;

pub(super) use completion::read_completion;
pub(super) use message::view;
pub(super) use request::{write_head, write_items, write_tail};
pub(super) use stream::ChatStream;

/// The members with a model's reasoning as text, in the order in which they are preferred.
const REASONING_TEXTS: [&str; 2] = ["reasoning_content", "reasoning"];
/// The member with a model's reasoning as a list of objects.
const REASONING_DETAILS: &str = "reasoning_details";
