//! The short way of plain messages: calls and lists that need no protocol library.
//!
//! Nearly all that clients send are calls without progress, log levels or questions, and lists. They
//! are read in place, worked on where they came in, and answered with what the library would have
//! answered. Everything else, and everything that turns out to be more while it is worked on, goes
//! to the library as it came; a call that has begun goes along.

mod begun;
mod desk;
#[cfg(test)]
mod equivalence;
#[cfg(test)]
mod fixture;
mod head;
mod message;
mod over_http;
mod over_lines;
#[cfg(test)]
mod over_lines_tests;
mod slow_tools;
mod standing;
mod written;

pub(crate) use begun::{Begun, Ending};
pub(crate) use desk::Desk;
pub(crate) use over_http::PlainHttp;
pub(crate) use over_lines::Between;
pub(crate) use standing::Standing;
pub(crate) use written::WrittenList;
