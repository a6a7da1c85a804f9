//! Commands and their results, the same on every system.

pub(crate) mod capture;
mod command;
pub(crate) mod environment;
mod error;
mod finished;
mod lines;
pub(crate) mod lookup;
mod outline;

pub use capture::{Capture, Captured, OutputFilter, OutputFilters, OutputKind, OutputTap};
pub use command::Command;
pub use error::SpawnError;
pub use finished::{ChildExit, Finished, KillReport, KillRung, Status};
pub use lines::{LONGEST_LINE, LineBuffer};
pub use lookup::find_program;
pub use outline::Outline;
