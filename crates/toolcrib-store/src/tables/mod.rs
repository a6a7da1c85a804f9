//! The tables, one module each.

#[cfg(feature = "http")]
pub(crate) mod answers;
pub(crate) mod exposed;
pub(crate) mod history;
pub(crate) mod owner;
#[cfg(feature = "mcp")]
pub(crate) mod pins;
pub(crate) mod record;
pub(crate) mod runs;
mod sealing_key;
pub(crate) mod spills;
pub(crate) mod suspensions;
#[cfg(feature = "mcp")]
pub(crate) mod tasks;
pub(crate) mod trust;
