//! Starting a program, draining it, and ending everything it started.

mod capture;
mod command;
mod cookie;
mod error;
mod finished;
mod kept;
mod launch;
pub(crate) mod lookup;
mod outline;
mod pipes;
pub(crate) mod procfs;
mod reaper;
mod run;
mod scratch;
mod sealed;
mod start;
mod supervised;
mod sweep;
pub(crate) mod sys;
mod tree;
pub(crate) mod zygote;

pub use capture::{Capture, Captured};
pub use command::Command;
pub use error::SpawnError;
pub use finished::{Finished, KillReport, KillRung, Status};
pub use kept::{Ended, Kept, KeptInput, KeptOutput, KeptProcess, keep};
pub use lookup::find_program;
pub use outline::Outline;
pub use reaper::finish_kills;
pub use run::{run, run_blocking};
pub use sealed::SealedFile;
