//! `run`: programs, scripts and workers, and what their arguments may be.

pub(crate) mod argv;
pub(crate) mod command;
pub(crate) mod input;
pub(crate) mod interpreters;
pub(crate) mod known;
pub(crate) mod options;
pub(crate) mod sandbox;
pub(crate) mod script;
pub(crate) mod shell;
pub(crate) mod started;
pub(crate) mod targets;
mod texts;
pub(crate) mod worker;
