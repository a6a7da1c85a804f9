//! What a program may do: a profile, what is granted beside it, and what to do where the kernel
//! cannot enforce it.

pub(crate) mod defaults;
pub(crate) mod enforced;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::control_plane::WithheldFromGrants;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
use crate::jail::helper::plan::Facility;
use crate::{ControlPlane, KillRung};

/// How far a program is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Computes, and nothing else: reads its own installation and what is granted, writes nothing
    /// but what is granted, has no network, starts no process, signals nobody.
    Pure,
    /// Works in the workspace: reads the system's programs and libraries and the workspace, writes
    /// the workspace and its scratch directory, starts what it likes, has no network.
    Workspace,
    /// As [`Workspace`](Self::Workspace), with the network.
    WorkspaceNet,
    /// Has the server's own rights. What is kept of confinement is hygiene: a session, descriptors
    /// and an environment of its own, and the end of its whole tree.
    Trusted,
}

impl Profile {
    /// All of them, the strictest first.
    pub const ALL: [Self; 4] = [Self::Pure, Self::Workspace, Self::WorkspaceNet, Self::Trusted];

    /// Its name in manifests and results: `pure`, `workspace`, `workspace+net`, `trusted`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Workspace => "workspace",
            Self::WorkspaceNet => "workspace+net",
            Self::Trusted => "trusted",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The error for an unknown profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a profile: use pure, workspace, workspace+net or trusted")]
pub struct UnknownProfile(pub String);

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        let found = Self::ALL.into_iter().find(|profile| profile.as_str() == text);
        found.ok_or_else(|| UnknownProfile(text.to_owned()))
    }
}

/// What happens where the kernel cannot enforce all that a profile promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Require {
    /// The program runs under what there is, and [`Enforced`](super::Enforced) says what that was.
    BestEffort,
    /// The program is not started.
    Required,
}

impl Require {
    /// Its name in manifests: `best_effort`, `required`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BestEffort => "best_effort",
            Self::Required => "required",
        }
    }
}

/// What a program may use up. `None` leaves the server's own limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of memory of each process. Under `pure` this is its whole address space. Under
    /// `workspace` and `workspace+net` it is the memory that a process has to itself and may write to
    /// (`RLIMIT_DATA`), because Node.js, Go and Java reserve far more addresses than they use; memory
    /// that processes share is not counted. Where the tree is held by a control group that counts
    /// memory, the limit is that of the whole tree as well.
    pub memory: Option<u64>,
    /// Bytes a file may grow to.
    pub file_size: Option<u64>,
    /// Descriptors each process may have open.
    pub open_files: Option<u64>,
    /// Time on a processor, per process, in whole seconds (rounded up).
    pub cpu: Option<Duration>,
    /// Processes and threads alive at once. They are counted for the program alone where it has a PID
    /// namespace on Linux 6.14 or newer, or a user namespace. Elsewhere the program may have this many
    /// more than its user has when it starts, and root is not limited.
    pub processes: Option<u32>,
}

impl Limits {
    /// The limits of a profile:
    ///
    /// | | memory | one file | open files | processes and threads |
    /// |---|---|---|---|---|
    /// | `pure` | 1 GiB | 64 MiB | 64 | 64 |
    /// | `workspace`, `workspace+net` | 2 GiB | | 1024 | 1024 |
    /// | `trusted` | | | | |
    pub const fn of(profile: Profile) -> Self {
        let none =
            Self { memory: None, file_size: None, open_files: None, cpu: None, processes: None };
        match profile {
            Profile::Pure => Self {
                memory: Some(1 << 30),
                file_size: Some(64 << 20),
                open_files: Some(64),
                processes: Some(64),
                ..none
            },
            Profile::Workspace | Profile::WorkspaceNet => Self {
                memory: Some(2 << 30),
                open_files: Some(1024),
                processes: Some(1024),
                ..none
            },
            Profile::Trusted => none,
        }
    }
}

/// Under what a program runs; see [`Command::confine`](super::Command::confine).
///
/// ```
/// use toolcrib_sandbox::{Confinement, Profile, Require};
///
/// let confinement = Confinement::new(Profile::Workspace)
///     .workspace("/srv/project")
///     .read("/srv/data")
///     .require(Require::Required);
/// assert_eq!(confinement.profile.as_str(), "workspace");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Confinement {
    /// The profile.
    pub profile: Profile,
    /// The directory `workspace` and `workspace+net` grant. Without one they grant none.
    pub workspace: Option<PathBuf>,
    /// Files and directories that may be read and executed beside what the profile grants. What is
    /// not there when the program starts is passed over.
    pub read: Vec<PathBuf>,
    /// Files and directories that may be read and written.
    pub write: Vec<PathBuf>,
    /// Files and directories that the program can neither read nor change, whatever else is
    /// granted: config, state, audit log, secrets. See [`hide`](Self::hide). Nothing is withheld from
    /// a [trusted](Profile::Trusted) program.
    pub hidden: Vec<PathBuf>,
    /// Files and directories that the program cannot change, whatever else is granted: manifests,
    /// the lock, scripts, programs. See [`read_only`](Self::read_only).
    pub read_only: Vec<PathBuf>,
    /// What happens where the kernel cannot enforce the profile.
    pub require: Require,
    /// What it may use up.
    pub limits: Limits,
    /// Whether it may make sessions and process groups of its own, as interactive shells and
    /// `timeout` do. Without that its one group can be sealed where the kernel offers nothing better
    /// to end its tree by.
    pub job_control: bool,
    /// Why the control plane cannot be withheld, whatever the kernel offers.
    pub(crate) objection: Option<String>,
    /// Which places of a control plane were taken out of the grants.
    pub(crate) taken: Option<WithheldFromGrants>,
    /// The one rung that tests want.
    pub(crate) rung: Option<KillRung>,
    /// What tests do without.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    pub(crate) without: Vec<Facility>,
}

impl Confinement {
    /// A profile with its own limits and nothing granted beside it, which is
    /// [required](Require::Required). All profiles but `pure` have job control.
    pub const fn new(profile: Profile) -> Self {
        Self {
            profile,
            workspace: None,
            read: Vec::new(),
            write: Vec::new(),
            hidden: Vec::new(),
            read_only: Vec::new(),
            require: Require::Required,
            limits: Limits::of(profile),
            job_control: !matches!(profile, Profile::Pure),
            objection: None,
            taken: None,
            rung: None,
            #[cfg(all(target_os = "linux", target_env = "gnu"))]
            without: Vec::new(),
        }
    }

    /// Sets the workspace.
    #[must_use]
    pub fn workspace(mut self, directory: impl Into<PathBuf>) -> Self {
        self.workspace = Some(directory.into());
        self
    }

    /// Grants reading and executing a file, or all below a directory.
    #[must_use]
    pub fn read(mut self, path: impl Into<PathBuf>) -> Self {
        self.read.push(path.into());
        self
    }

    /// Grants reading and writing a file, or all below a directory.
    #[must_use]
    pub fn write(mut self, path: impl Into<PathBuf>) -> Self {
        self.write.push(path.into());
        self
    }

    /// Takes a file, or all below a directory, out of everything that is granted.
    ///
    /// Where a grant contains the place, the program gets a mount namespace in which the place is
    /// covered by something that cannot be opened, and in which the folders between the grant and the
    /// place cannot be renamed. Where that cannot be had, or the place does not exist and the program
    /// could create it, the program [is not started](Self::check). Give the path that is used: a
    /// symbolic link on the way is followed, and if the program could replace it, it is not started
    /// either. A file that is replaced from outside while the program runs is no longer covered, and
    /// another name of the same file (a hard link that was made before) is not.
    #[must_use]
    pub fn hide(mut self, path: impl Into<PathBuf>) -> Self {
        self.hidden.push(path.into());
        self
    }

    /// Takes the right to change a file, or all below a directory, out of everything that is granted.
    /// It is done as [hiding](Self::hide) is, by mounts that cannot be written.
    #[must_use]
    pub fn read_only(mut self, path: impl Into<PathBuf>) -> Self {
        self.read_only.push(path.into());
        self
    }

    /// Takes the places of a control plane, as they are now, out of everything that is granted. Call it
    /// last: it looks at the grants.
    #[must_use]
    pub fn control_plane(mut self, plane: &ControlPlane) -> Self {
        self.take_out(plane);
        self
    }

    /// Why no program can be started with these grants and withheld places, if that is so: a place is
    /// withheld that a grant contains, and this machine cannot keep the two apart, or the two
    /// contradict each other. A start fails for the same reason with
    /// [`SpawnError::Grants`](crate::SpawnError::Grants).
    ///
    /// It looks at the files that are named, and asks a helper once in the life of this process what
    /// the machine can do. What a profile needs beside that, and the program itself, are not looked
    /// at. A [trusted](Profile::Trusted) program has nothing withheld from it, so it can be started.
    ///
    /// # Errors
    ///
    /// The reason, with what to do.
    pub fn check(&self) -> Result<(), String> {
        crate::jail::check(self)
    }

    /// Sets what happens where the kernel cannot enforce the profile.
    #[must_use]
    pub const fn require(mut self, require: Require) -> Self {
        self.require = require;
        self
    }

    /// Sets what the program may use up.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets whether the program may make sessions and process groups of its own.
    #[must_use]
    pub const fn job_control(mut self, allowed: bool) -> Self {
        self.job_control = allowed;
        self
    }
}

impl Default for Confinement {
    /// [`Profile::Trusted`].
    fn default() -> Self {
        Self::new(Profile::Trusted)
    }
}
