//! What loading promises, seen from outside.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

mod diagnostics;
mod loading;
mod lock;
