//! The fast path: calls and lists of tools that are answered without the protocol library.
//!
//! Most of what clients send are plain requests: a call without progress token, log level or task, or the
//! first page of the list of tools. They are read in place and answered with what the library would have
//! answered. All other messages go to the library as they came. So do all requests in a session over HTTP:
//! there an answer outlives the connection, and the library keeps it.

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
