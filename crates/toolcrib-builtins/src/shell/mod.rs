//! The shell: commands as people type them.
#![doc = include_str!("../docs/bash.md")]

mod bash;
mod settings;

pub(crate) use bash::objection;

pub use settings::BashSettings;
