//! Running other programs without letting them run you, and opening files without letting paths
//! lead you.
//!
//! [`Workspace`] holds a folder open and reads, writes, lists and deletes below it and nowhere
//! else, whatever path somebody names and whatever others rename meanwhile.
//!
//! This is the only crate of toolcrib that starts processes, and the only one that may hold
//! `unsafe` code (one file of it: `process/sys.rs`).
//!
//! [`run`] starts a [`Command`] with hygiene and comes back when nothing of it is left:
//!
//! - **Start.** `posix_spawn`, never `fork`: a large parent costs nothing. A session of its own,
//!   default signal dispositions, an empty signal mask, no inherited descriptors, an empty
//!   environment but for an allow list ([`Command`] lists it), a scratch `HOME` and `TMPDIR` that
//!   nobody else can read and that is gone after the call.
//! - **Run.** Standard input is fed while both outputs are drained to their end, whatever the
//!   program does with them; only a head and a tail of each are kept ([`Capture`]).
//! - **End.** When the program has exited, was stopped, or its future was dropped, its process
//!   group is killed, and what left the group is looked for ([`KillReport`]) before the process id
//!   is given back to the system.
//!
//! ```
//! use toolcrib_sandbox::{Command, Status, run};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let command = Command::new("printf").arg("%s|").args(["a b", "$(id)", "--"]);
//! let finished = run(command, std::future::pending()).await?;
//! assert_eq!(finished.status, Status::Exited(0));
//! assert_eq!(finished.stdout.text(), "a b|$(id)|--|");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`keep`] starts a program with the same hygiene and leaves it running, to be talked to over its
//! pipes: a worker, a server on standard input and output.
//!
//! # Confinement
//!
//! A command may be [confined](Command::confine) to a [`Profile`]; [`jail`] tells how that is done,
//! and [`Finished::enforced`] what came of it. The tree of a confined program is held by the best
//! [rung](KillRung) there is, and nothing of it survives its call or this process.
//!
//! # What can escape
//!
//! Of a [trusted](Profile::Trusted) program, whose rung is the process group and a sweep of `/proc`
//! for descendants that left it, recognised by a random cookie in their environment, by their
//! session and by descent. The sweep runs when it can matter: the call was stopped or dropped, a
//! process kept the pipes open after the program's exit, or one stayed behind in the group.
//!
//! Two kinds of process escape it. One that has left the session *and* lost its parent before the
//! call was stopped *and* whose environment cannot be read or no longer holds the cookie (cleared,
//! or owned by another user, as after `sudo`) is never recognised; when the future is dropped
//! instead of stopped, descent is not looked at before the SIGTERM. And a daemon that left the
//! session and closed the pipes is not looked for at all if the program then exits by itself.
//!
//! # What confined programs have to do without
//!
//! Where the server is not root, a PID namespace needs a user namespace, in which files of other
//! users seem to belong to nobody: `ssh` refuses settings of root's then, and wants
//! [`Profile::Trusted`]. `sudo` and other programs that gain privileges do not. Process numbers
//! inside of a PID namespace are its own, while `/proc` shows those of the machine.
//!
//! Under `workspace` and `workspace+net` each folder that a program may write is a mount of its own,
//! and everything else is read-only, with its modes and times. So is each folder that leads to a
//! place that is [withheld](Confinement::hide). Such a folder cannot be renamed or removed, and files
//! are moved from one to another by copying, as `mv` does by itself. Where no mount namespace can be
//! made, modes and times of other files of the server's user are within reach.
//!
//! Everything that it may not write is mounted read-only for a program under `workspace` or
//! `workspace+net`, where a mount namespace can be made, so it cannot change modes, owners or times
//! there. What it may write is a mount of its own: a file is moved from the scratch directory into the
//! workspace by copying.
//!
//! Confined programs make no set-user-ID or set-group-ID files, have no Unix sockets but pairs of
//! streams, and cannot watch files: inotify fails as on a kernel without it, and programs that
//! watch files look at them again and again instead. `openat2`, `clone3` and `io_uring` are not
//! available.
//!
//! # What a machine may lack
//!
//! A profile that the kernel cannot enforce is [required](Require::Required) unless somebody says
//! otherwise: the program is not started. [`jail::probe`] says what a machine lacks.
//!
//! Some of what confined programs are held by depends on namespaces, which a container may refuse.
//! Without them the profiles are enforced all the same, but for this: modes, owners and times of the
//! server's own files outside the workspace can be changed by programs under `workspace` and
//! `workspace+net`; System V objects are shared with the server's user, and stay; and root is held to
//! no number of processes and threads. A profile also does not keep a program from asking whether a file exists, how
//! large it is and when it was changed (`stat`).
//!
//! # Platforms
//!
//! Linux 5.4 or newer (pidfds) with glibc 2.34 or newer. On other Unix systems [`Workspace`] keeps its
//! promises, a path being walked a component at a time, and no program is started
//! ([`SpawnError::Unsupported`]): what would hold it is not there.

#![cfg_attr(
    not(all(target_os = "linux", target_env = "gnu")),
    allow(dead_code, reason = "what describes programs has nobody who starts them")
)]

#[cfg(not(unix))]
compile_error!("toolcrib-sandbox runs on Unix systems: it relies on descriptors of folders");

mod confinement;
mod control_plane;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub mod jail;
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub mod jail;
mod own_process;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod process;
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod process;
mod program;
mod served_file;
mod workspace;

/// Whether programs can be started on this system; otherwise a start fails
/// ([`SpawnError::Unsupported`]).
pub const STARTS_PROGRAMS: bool = cfg!(all(target_os = "linux", target_env = "gnu"));

/// Why a tool that starts a program cannot be called where [none is](STARTS_PROGRAMS), as a clause.
pub const NO_PROGRAMS: &str = "needs Linux with glibc: elsewhere no program is started";

pub use crate::confinement::defaults::ConfinementDefaults;
pub use crate::confinement::enforced::Enforced;
pub use crate::own_process::{close_to_others, take_variables};
pub use crate::program::environment::server_path;
pub use crate::served_file::ServedFile;
pub use confinement::{Confinement, Limits, Profile, Require, UnknownProfile};
pub use control_plane::{ControlPlane, Places};
pub use process::{
    Kept, KeptInput, KeptOutput, KeptProcess, SealedFile, finish_kills, keep, run, run_blocking,
    sweep_scratch,
};
pub use program::{
    Capture, Captured, Command, Ended, Finished, KillReport, KillRung, Outline, OutputFilter,
    OutputFilters, OutputKind, OutputTap, SpawnError, Status, find_program,
};
pub use workspace::{
    Entry, Kind, LockKey, LockMode, LockTable, Locked, OpenFile, PROTECTED_NAMES, Removed, Step,
    Visit, Walked, Workspace, WorkspaceBuilder, WorkspaceError, Written, sensitive_places,
};
