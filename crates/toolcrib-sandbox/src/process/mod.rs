//! Starting a program, reading its output, and ending its process tree.

mod child;
pub(crate) mod cookie;
mod emptying;
mod launch;
mod pipes;
pub(crate) mod procfs;
mod reaper;
mod run;
pub(crate) mod scratch;
pub(crate) mod scratch_parents;
mod sealed_file;
mod start;
mod supervised_tree;
mod sweep;
pub(crate) mod sys;
mod tree;

use crate::program::{
    Capture, Captured, Command, Finished, KillReport, KillRung, OutputFilters, OutputKind,
    OutputTap, SpawnError, Status, capture, lookup,
};

pub use crate::process::child::{Child, ChildProcess, ChildStdin, ChildStdout, spawn};
pub use crate::process::sealed_file::SealedFile;
pub(crate) use launch::{absolute, probe};
pub use reaper::finish_kills;
pub use run::{run, run_blocking};
pub use scratch::{scratch_folder, sweep_scratch};
