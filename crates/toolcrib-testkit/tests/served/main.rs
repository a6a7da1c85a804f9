//! What the writers of served APIs send, checked by whoever knows only the specifications.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chat;
mod checker;
mod openai;
mod scripts;
mod streams;
