//! Runs other programs without letting them take over the caller, and opens files without letting
//! paths lead astray.
//!
//! [`Workspace`] holds a folder open. It reads, writes, lists and deletes only below that folder,
//! whatever path a caller names and whatever other processes rename at the same time.
//!
//! This is the only crate of toolcrib that starts processes, and the only one that may contain
//! `unsafe` code (in one file, `process/sys.rs`).
//!
//! [`run`] starts a [`Command`] in a clean environment and returns when none of its processes is
//! left:
//!
//! - **Start.** `posix_spawn`, never `fork`, so a large parent costs nothing. The program gets its
//!   own session, default signal dispositions, an empty signal mask, no inherited descriptors, an
//!   environment of listed variables only (see [`Command`]), and a scratch directory for `HOME` and
//!   `TMPDIR` that nobody else can read and that is removed after the call.
//! - **Run.** Standard input is written while both outputs are read to their end. Only the head and
//!   the tail of each output are kept ([`Capture`]).
//! - **End.** When the program has exited, was stopped, or its future was dropped, its process
//!   group is killed, and processes that left the group are searched for ([`KillReport`]) before
//!   the process id is released.
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
//! [`spawn`] starts a program in the same way and leaves it running, so that the caller can talk to
//! it over its pipes, for example a worker or an MCP server.
//!
//! # Confinement
//!
//! A command may be [confined](Command::confine) to a [`Profile`]; [`jail`] describes how, and
//! [`Finished::enforced`] reports what was enforced. The tree of a confined program is held
//! together by the best available [rung](KillRung), and none of its processes outlives the call or
//! this process.
//!
//! # What can escape
//!
//! This concerns only [trusted](Profile::Trusted) programs, whose rung is the process group and a
//! sweep of `/proc` for descendants that left it. The sweep recognizes them by a random cookie in
//! their environment, by their session and by descent. It runs when it can matter: the call was
//! stopped or dropped, a process kept the pipes open after the program's exit, or one stayed behind
//! in the group.
//!
//! Two kinds of processes escape it. First, a process that left the session *and* lost its parent
//! before the call was stopped *and* whose environment cannot be read or no longer holds the cookie
//! (cleared, or owned by another user, as after `sudo`) is never recognized; if the future is
//! dropped instead of stopped, descent is not checked before the SIGTERM. Second, a daemon that
//! left the session and closed the pipes is not searched for if the program then exits by itself.
//!
//! # What confined programs have to do without
//!
//! If the server is not root, a PID namespace requires a user namespace, in which files of other
//! users seem to belong to nobody. `ssh` therefore refuses root's settings and needs
//! [`Profile::Trusted`]. `sudo` and other programs that gain privileges do not work. Process
//! numbers inside a PID namespace differ from those in `/proc`, which shows the machine's.
//!
//! Under `workspace` and `workspace+net`, each folder that a program may write is a separate mount, and everything else
//! is read-only, including modes and times. Each folder that leads to a [withheld](Confinement::hide) place is a
//! separate mount too. Such a folder cannot be renamed or removed, and moving a file from one to another copies it, as
//! `mv` does by itself. If no mount namespace can be created, the program can change modes and times of other files of
//! the server's user.
//!
//!
//! Confined programs cannot create set-user-ID or set-group-ID files, have no Unix sockets except
//! pairs of stream sockets, and cannot watch files: inotify fails as on a kernel without it, and
//! programs fall back to polling. `openat2`, `clone3` and `io_uring` are not available.
//!
//! # What a machine may lack
//!
//! By default a profile is [required](Require::Required): if the kernel cannot enforce it, the
//! program is not started. [`jail::probe`] reports what a machine lacks.
//!
//! Some restrictions depend on namespaces, which a container may refuse. Without namespaces the profiles are still
//! enforced, with these exceptions: programs under `workspace` and `workspace+net` can change modes, owners and times
//! of the server's own files outside the workspace; System V objects are shared with the server's user and remain; and
//! root has no limit of processes and threads. No profile prevents a program from asking whether a file exists, how
//! large it is and when it was changed (`stat`).
//!
//! # Platforms
//!
//! Linux 5.4 or newer (pidfds) with glibc 2.34 or newer. On other Unix systems [`Workspace`] keeps its
//! promises, because paths are walked one component at a time, but programs are not started
//! ([`SpawnError::Unsupported`]), because these systems cannot contain them.

#![cfg_attr(
    not(all(target_os = "linux", target_env = "gnu")),
    allow(dead_code, reason = "the descriptions of programs are not used where none is started")
)]

#[cfg(not(unix))]
compile_error!("toolcrib-sandbox runs on Unix systems: it relies on descriptors of folders");

mod confinement;
mod control_plane;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub mod jail;
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
#[path = "jail/unsupported.rs"]
pub mod jail;
mod own_process;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod process;
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
#[path = "process/unsupported.rs"]
mod process;
mod program;
mod served_file;
mod workspace;

/// Whether programs can be started on this system; otherwise a start fails
/// ([`SpawnError::Unsupported`]).
pub const STARTS_PROGRAMS: bool = cfg!(all(target_os = "linux", target_env = "gnu"));

/// Why a tool that starts a program cannot be called on a system [without
/// programs](STARTS_PROGRAMS), as a clause.
pub const NO_PROGRAMS: &str = "needs Linux with glibc: elsewhere no program is started";

pub use crate::confinement::defaults::ConfinementDefaults;
pub use crate::confinement::enforced::Enforced;
pub use crate::own_process::{close_to_others, take_variables};
pub use crate::program::environment::server_path;
pub use crate::served_file::ServedFile;
pub use confinement::{Confinement, Limits, Profile, Require, UnknownProfile};
pub use control_plane::{ControlPlane, ExposedFile, ExposureRecord, Places};
pub use process::{
    Child, ChildProcess, ChildStdin, ChildStdout, SealedFile, finish_kills, run, run_blocking,
    scratch_folder, spawn, sweep_scratch,
};
pub use program::{
    Capture, Captured, ChildExit, Command, Finished, KillReport, KillRung, LONGEST_LINE,
    LineBuffer, Outline, OutputFilter, OutputFilters, OutputKind, OutputTap, SpawnError, Status,
    find_program,
};
pub use workspace::{
    Entry, Kind, LockKey, LockMode, LockTable, Locked, OpenFile, PROTECTED_NAMES, RemoveReport,
    Visit, WalkControl, WalkReport, Workspace, WorkspaceBuilder, WorkspaceError, WriteReport,
    sensitive_places,
};
