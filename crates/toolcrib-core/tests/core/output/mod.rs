//! Answers: cut, kept, streamed, and used again.

mod cache;
mod limits;
mod listening;
mod spilling;
mod streaming;
