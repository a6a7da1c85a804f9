//! The short way of plain messages: calls and lists that need no protocol library.
//!
//! Nearly all that clients send are calls without progress, log levels or questions, and lists. They
//! are read in place, worked on where they came in, and answered with what the library would have
//! answered. Everything else, and everything that turns out to be more while it is worked on, goes
//! to the library as it came; a call that has begun goes along.

mod answer_text;
mod client_state;
#[cfg(test)]
mod equivalence;
#[cfg(test)]
mod fixture;
mod head;
mod http;
mod line_answers;
mod lines;
mod message;
mod slow_tools;
mod started_call;

pub(crate) use crate::fast_path::answer_text::WrittenList;
pub(crate) use crate::fast_path::client_state::Standing;
pub(crate) use crate::fast_path::http::PlainHttp;
pub(crate) use crate::fast_path::line_answers::Desk;
pub(crate) use crate::fast_path::lines::Between;
pub(crate) use crate::fast_path::started_call::{Begun, Ending};
