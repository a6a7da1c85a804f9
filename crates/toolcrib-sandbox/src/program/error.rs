//! Why a program could not be started.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::Profile;

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// No directory of the program's `PATH` contains it.
    #[error("the program `{program}` was not found; PATH searched: {path}")]
    NotFound {
        /// The name.
        program: String,
        /// The `PATH` that was searched.
        path: String,
    },
    /// The file exists, but this user cannot run it as a program.
    #[error("`{}` is not an executable file: {reason}", path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// The reason, as one clause.
        reason: String,
    },
    /// The working directory cannot be entered.
    #[error("the working directory `{}` cannot be used: {source}", path.display())]
    WorkingDirectory {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A NUL character in a place where the system does not allow it.
    #[error("{place} contains a NUL character")]
    Nul {
        /// The place, for example `argument 2`.
        place: String,
    },
    /// The name of a variable is invalid.
    #[error("`{name}` cannot be the name of an environment variable")]
    VariableName {
        /// The name.
        name: String,
    },
    /// The scratch directory could not be created.
    #[error("the scratch directory `{}` cannot be made: {source}", path.display())]
    Scratch {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The arguments and the environment exceed the kernel's limit.
    #[error(
        "the arguments of `{program}` are too long for the system: an argument may have 128 KiB, \
         all of them together with the environment about 2 MiB"
    )]
    TooLong {
        /// The program.
        program: String,
    },
    /// There is no helper that could build a confinement.
    #[error(
        "`{program}` is to run under the profile {profile}, which needs the helper `toolcrib-jail`, \
         and there is none beside this program: install it there, or call \
         `toolcrib_sandbox::jail::reexec_hook()` first in `main`"
    )]
    NoHelper {
        /// The program.
        program: String,
        /// The profile.
        profile: Profile,
    },
    /// The profile is required, and this machine does not enforce all of it.
    #[error(
        "`{program}` is to run under the profile {profile} and no less, which this machine does not \
         enforce: {}",
        missing.join("; ")
    )]
    NotEnforced {
        /// The program.
        program: String,
        /// The profile.
        profile: Profile,
        /// What is missing, one clause each.
        missing: Vec<String>,
    },
    /// The program cannot be started with its grants: a grant, its working directory or a withheld
    /// place conflicts with that, or this machine cannot withhold places.
    #[error("`{program}` was not started: {reason}")]
    Grants {
        /// The program.
        program: String,
        /// The conflict, and what to do.
        reason: String,
    },
    /// The start took too long.
    #[error(
        "`{program}` was not started within {limit:?}: its file, its working directory or something \
         that it is granted does not answer, as on a network file system that cannot be reached"
    )]
    Late {
        /// The program.
        program: String,
        /// The time limit.
        limit: Duration,
    },
    /// Building the confinement failed, although the machine supports it.
    #[error("`{program}` could not be confined to the profile {profile}: {source}")]
    Confine {
        /// The program.
        program: String,
        /// The profile.
        profile: Profile,
        /// The step that failed.
        source: io::Error,
    },
    /// Programs are not started on this system.
    #[error(
        "`{program}` was not started: programs run on Linux with glibc only, because this system \
         has nothing to hold them by"
    )]
    Unsupported {
        /// The program.
        program: String,
    },
    /// The system refused to start it.
    #[error("`{}` could not be started: {source}", path.display())]
    Start {
        /// The program.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The program was started, but the system lacked the resources to supervise it, so it was ended. Whether it had an
    /// effect is unknown.
    #[error(
        "`{program}` was started and ended at once, because it could not be followed: {source}"
    )]
    Unfollowed {
        /// The program.
        program: String,
        /// The missing resource.
        source: io::Error,
    },
    /// Pipes, process handles or the async runtime are not available.
    #[error("no process can be started now: {0}")]
    Resources(#[from] io::Error),
}

impl SpawnError {
    /// Whether the machine or the process lacked a resource that may become available again: descriptors, processes,
    /// memory, disk space. Nothing has run, and the same start may succeed later.
    #[must_use]
    pub fn is_shortage(&self) -> bool {
        let (Self::Resources(source)
        | Self::Scratch { source, .. }
        | Self::WorkingDirectory { source, .. }
        | Self::Confine { source, .. }
        | Self::Start { source, .. }) = self
        else {
            return false;
        };
        matches!(self, Self::Resources(_))
            || matches!(
                source.raw_os_error(),
                Some(
                    libc::EMFILE
                        | libc::ENFILE
                        | libc::EAGAIN
                        | libc::ENOMEM
                        | libc::ENOBUFS
                        | libc::ENOSPC
                        | libc::EDQUOT
                )
            )
    }
}
