//! Why a program could not be started.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::Profile;

/// Why a program was not started. Nothing of it ran.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// No directory of the program's PATH holds it.
    #[error("the program `{program}` was not found; PATH searched: {path}")]
    NotFound {
        /// The name looked for.
        program: String,
        /// The `PATH` searched.
        path: String,
    },
    /// The file is there, but it is no program this user may run.
    #[error("`{}` is not an executable file: {reason}", path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// One clause.
        reason: String,
    },
    /// The working directory cannot be entered.
    #[error("the working directory `{}` cannot be used: {source}", path.display())]
    WorkingDirectory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A NUL character where the system knows none.
    #[error("{place} contains a NUL character")]
    Nul {
        /// The place, for example `argument 2`.
        place: String,
    },
    /// No variable can have this name.
    #[error("`{name}` cannot be the name of an environment variable")]
    VariableName {
        /// The name.
        name: String,
    },
    /// The scratch directory could not be made.
    #[error("the scratch directory `{}` cannot be made: {source}", path.display())]
    Scratch {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The arguments and the environment are larger than the kernel takes.
    #[error(
        "the arguments of `{program}` are too long for the system: an argument may have 128 KiB, \
         all of them together with the environment about 2 MiB"
    )]
    TooLong {
        /// The program.
        program: String,
    },
    /// Nothing is there that could build a confinement.
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
    /// The program cannot be started with what it is granted: a grant, its working directory or a
    /// place that is withheld from it stands against that, or this machine cannot withhold places.
    #[error("`{program}` was not started: {reason}")]
    Grants {
        /// The program.
        program: String,
        /// What stands against it, and what to do.
        reason: String,
    },
    /// The start took too long and was given up.
    #[error(
        "`{program}` was not started within {limit:?}: its file, its working directory or something \
         that it is granted does not answer, as on a network file system that cannot be reached"
    )]
    Late {
        /// The program.
        program: String,
        /// How long was waited.
        limit: Duration,
    },
    /// The confinement could not be built, although the machine has what it takes.
    #[error("`{program}` could not be confined to the profile {profile}: {source}")]
    Confine {
        /// The program.
        program: String,
        /// The profile.
        profile: Profile,
        /// What failed.
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
        /// What the system said.
        source: io::Error,
    },
    /// It was started, but the system lacked what is needed to follow it, so it was ended. What it did until
    /// then is unknown.
    #[error(
        "`{program}` was started and ended at once, because it could not be followed: {source}"
    )]
    Unfollowed {
        /// The program.
        program: String,
        /// What was lacking.
        source: io::Error,
    },
    /// Pipes, process handles or the async runtime are not to be had.
    #[error("no process can be started now: {0}")]
    Resources(#[from] io::Error),
}

impl SpawnError {
    /// Whether the machine or the process was out of something that comes back: descriptors, processes,
    /// memory, room on a disk. Nothing has run, and the same start may succeed later.
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
