//! The shell tool.
#![doc = include_str!("../docs/bash.md")]

mod bash;
mod settings;

pub(crate) use bash::objection;

pub use settings::BashSettings;
