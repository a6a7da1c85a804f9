//! The commands about agents and their runs.

mod journals;
pub(crate) mod run;
pub(crate) mod runs;
mod scripted;
