//! OpenAI's Responses.

mod item;
mod request;
mod response;
mod stream;

pub(super) use item::view;
pub(super) use request::{write_head, write_items, write_tail};
pub(super) use response::read_response;
pub(super) use stream::ResponseEvents;
