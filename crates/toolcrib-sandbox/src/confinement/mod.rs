//! Confinement: a profile, additional grants, and what to do if the kernel cannot enforce them.

pub(crate) mod defaults;
pub(crate) mod enforced;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::control_plane::WithheldFromGrants;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
use crate::jail::helper::plan::KernelFeature;
use crate::{ControlPlane, KillRung};

/// How far a program is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Only computes: it reads its own installation and its grants, writes only its grants, and has
    /// no network, no child processes and no signals to others.
    Pure,
    /// Works in the workspace: it reads the system's programs and libraries and the workspace,
    /// writes the workspace and its scratch directory, may start programs, and has no network.
    Workspace,
    /// As [`Workspace`](Self::Workspace), with the network.
    WorkspaceNet,
    /// Has the server's own rights. It still gets its own session, descriptors and environment, and
    /// its whole process tree is ended.
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

/// What to do if the kernel cannot enforce everything that a profile promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Require {
    /// Run the program with the restrictions that can be enforced; [`Enforced`](super::Enforced)
    /// reports them.
    BestEffort,
    /// Do not start the program.
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

/// Resource limits of a program. `None` leaves the server's own limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of memory of each process. Under `pure` this limits its whole address space. Under `workspace` and
    /// `workspace+net` it limits the private, writable memory of a process (`RLIMIT_DATA`), because Node.js, Go and
    /// Java reserve far more address space than they use; shared memory is not counted. If a control group that counts
    /// memory holds the tree, the limit also applies to the whole tree.
    pub memory: Option<u64>,
    /// The maximum size of a file, in bytes.
    pub file_size: Option<u64>,
    /// The maximum number of open descriptors of each process.
    pub open_files: Option<u64>,
    /// The processor time of each process, in whole seconds (rounded up).
    pub cpu: Option<Duration>,
    /// The maximum number of processes and threads at a time. They are counted for the program alone if it has a PID
    /// namespace on Linux 6.14 or newer, or a user namespace. Elsewhere the program may start this many more than its
    /// user has at its start, and root is not limited.
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

/// The confinement of a program; see [`Command::confine`](super::Command::confine).
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
    /// The directory that `workspace` and `workspace+net` grant, if any.
    pub workspace: Option<PathBuf>,
    /// Files and directories that may be read and executed in addition to the profile's. Missing
    /// ones are ignored when the program starts.
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
    /// What to do if the kernel cannot enforce the profile.
    pub require: Require,
    /// Its resource limits.
    pub limits: Limits,
    /// Whether it may write its scratch directory under `pure`, too.
    pub writable_scratch: bool,
    /// Whether it may make sessions and process groups of its own, as interactive shells and
    /// `timeout` do. Without it, its single process group can be sealed if the kernel offers no
    /// better way to end its tree.
    pub job_control: bool,
    /// Why the control plane cannot be withheld, regardless of the kernel.
    pub(crate) objection: Option<String>,
    /// Other programs that this one starts, each granted with its installation.
    pub(crate) programs: Vec<OsString>,
    /// A folder in a place of the control plane that belongs to this program.
    pub(crate) own_folder: Option<PathBuf>,
    /// Which places of a control plane were removed from the grants.
    pub(crate) taken: Option<WithheldFromGrants>,
    /// The only rung to use, for tests.
    pub(crate) rung: Option<KillRung>,
    /// Kernel features that tests disable.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    pub(crate) without: Vec<KernelFeature>,
}

impl Confinement {
    /// A [required](Require::Required) profile with its default limits and no additional grants.
    /// All profiles but `pure` have job control.
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
            writable_scratch: !matches!(profile, Profile::Pure),
            job_control: !matches!(profile, Profile::Pure),
            objection: None,
            programs: Vec::new(),
            own_folder: None,
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

    /// Grants reading and executing a file, or everything below a directory.
    #[must_use]
    pub fn read(mut self, path: impl Into<PathBuf>) -> Self {
        self.read.push(path.into());
        self
    }

    /// Grants another program that this one starts, with its installation, as if it were started itself: the Python of
    /// `env python3`, for example. A name without `/` is looked up on the `PATH` of the command. A program that is not
    /// found is ignored.
    #[must_use]
    pub fn starts(mut self, program: impl Into<OsString>) -> Self {
        self.programs.push(program.into());
        self
    }

    /// Grants reading and writing a file, or everything below a directory.
    #[must_use]
    pub fn write(mut self, path: impl Into<PathBuf>) -> Self {
        self.write.push(path.into());
        self
    }

    /// Grants reading and writing a folder that belongs to this program alone, for example its kept
    /// HOME. It may lie in a folder that the [control plane](Self::control_plane) hides: the program then
    /// sees this folder there, and nothing else.
    #[must_use]
    pub fn own_folder(mut self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        self.own_folder = Some(path.clone());
        self.write(path)
    }

    /// Withholds a file, or everything below a directory, even if it is granted.
    ///
    /// If a grant contains the path, the program gets a mount namespace in which the path is
    /// covered by something that cannot be opened, and in which the folders between the grant and
    /// the path cannot be renamed. If that is impossible, or if the path does not exist and the
    /// program could create it, the program [is not started](Self::check). Pass the path as it is
    /// used: symbolic links on the way are followed, and if the program could replace one of them,
    /// it is not started either. A file that is replaced from outside while the program runs is no
    /// longer covered, and another name of the same file (an existing hard link) never is.
    #[must_use]
    pub fn hide(mut self, path: impl Into<PathBuf>) -> Self {
        self.hidden.push(path.into());
        self
    }

    /// Makes a file, or everything below a directory, read-only, even if writing is granted. This
    /// uses read-only mounts, like [hiding](Self::hide).
    #[must_use]
    pub fn read_only(mut self, path: impl Into<PathBuf>) -> Self {
        self.read_only.push(path.into());
        self
    }

    /// Withholds the current places of a control plane. Call it last, because it depends on the
    /// grants.
    #[must_use]
    pub fn control_plane(mut self, plane: &ControlPlane) -> Self {
        self.take_out(plane);
        self
    }

    /// Checks whether a program can be started with these grants and withheld places. It fails if a
    /// grant contains a withheld place and this machine cannot separate the two, or if the two
    /// contradict each other. A start fails for the same reason with
    /// [`SpawnError::Grants`](crate::SpawnError::Grants).
    ///
    /// It checks the named files, and once per process asks a helper what the machine supports. It
    /// does not check other requirements of the profile, or the program itself. For a
    /// [trusted](Profile::Trusted) program nothing is withheld, so the check succeeds.
    ///
    /// # Errors
    ///
    /// Returns the reason and what to do about it.
    pub fn check(&self) -> Result<(), String> {
        crate::jail::check(self)
    }

    /// Sets what to do if the kernel cannot enforce the profile.
    #[must_use]
    pub const fn require(mut self, require: Require) -> Self {
        self.require = require;
        self
    }

    /// Sets the resource limits.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Grants writing the scratch directory, which the other profiles than `pure` grant anyway.
    #[must_use]
    pub const fn writable_scratch(mut self) -> Self {
        self.writable_scratch = true;
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
