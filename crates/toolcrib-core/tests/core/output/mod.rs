//! Answers: truncated, stored, streamed, and cached.

mod cache;
mod limits;
mod listening;
mod spilling;
mod streaming;
