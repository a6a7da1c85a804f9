//! Tools that work only on their arguments: no files, no network, no clock.

mod bounded;
mod calculator;
#[cfg(feature = "jq")]
mod jq;
mod json_outline;
mod json_process;
mod json_text;
mod text_operations;
mod text_process;
