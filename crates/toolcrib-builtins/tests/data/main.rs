//! The promises of the `data` family, tested through the tools' link-time entries.
#![cfg(feature = "jq")]

mod calculator;
mod definitions;
mod harness;
mod jq;
mod json_process;
mod text_process;

use toolcrib_builtins as _;
