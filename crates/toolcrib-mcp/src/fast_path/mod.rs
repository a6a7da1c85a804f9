//! The fast path: tool calls and tool lists that are answered without the protocol library.
//!
//! Most messages of clients are plain requests: a call without progress token, log level or task,
//! or the first page of the tool list. They are parsed in place and get the same answer as from the
//! library. All other messages are passed to the library unchanged, and so are all requests in an
//! HTTP session: there an answer outlives the connection, and the library keeps it.

mod answer;
mod answer_text;
mod client_state;
#[cfg(test)]
mod equivalence;
#[cfg(test)]
mod fixture;
mod http;
mod http_head;
mod lines;
#[cfg(test)]
mod lines_tests;
mod request;

pub(crate) use crate::fast_path::answer_text::page;
pub(crate) use crate::fast_path::client_state::ClientState;
pub(crate) use crate::fast_path::http::HttpFastPath;
pub(crate) use crate::fast_path::lines::LineFastPath;
