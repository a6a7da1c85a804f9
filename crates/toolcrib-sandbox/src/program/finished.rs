//! The result of a finished program.

use std::time::Duration;

use super::Captured;
use crate::Enforced;

/// A program that has ended, with everything it started.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Finished {
    /// How it ended.
    pub status: Status,
    /// Whether it was ended because `stop` completed. The status tells what that did to it: a
    /// program may well exit by itself when asked to.
    pub stopped: bool,
    /// What it wrote to standard output.
    pub stdout: Captured,
    /// What it wrote to standard error.
    pub stderr: Captured,
    /// From before the start until nothing was left.
    pub duration: Duration,
    /// How its process tree was ended.
    pub kill: KillReport,
    /// What the kernel held it to.
    pub enforced: Enforced,
}

/// The last facts about a kept program.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Ended {
    /// How it ended.
    pub status: Status,
    /// What was kept of its standard error.
    pub stderr: Captured,
    /// How its process tree was ended.
    pub kill: KillReport,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// It exited with this code, 0 to 255.
    Exited(i32),
    /// A signal of this number ended it.
    Signaled(i32),
    /// Its end could not be observed: the kernel had not carried out a SIGKILL after a second (a
    /// process stuck in a device), or the host program reaps children that are not its own.
    Unknown,
}

impl Status {
    /// The exit code, if it exited.
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(code),
            Self::Signaled(_) | Self::Unknown => None,
        }
    }

    /// The signal's number, if one ended it.
    pub fn signal(self) -> Option<i32> {
        match self {
            Self::Signaled(signal) => Some(signal),
            Self::Exited(_) | Self::Unknown => None,
        }
    }

    /// The signal's usual name, for example `SIGKILL`, if one ended it and it has a name here.
    pub fn signal_name(self) -> Option<&'static str> {
        Some(match self.signal()? {
            libc::SIGABRT => "SIGABRT",
            libc::SIGALRM => "SIGALRM",
            libc::SIGBUS => "SIGBUS",
            libc::SIGFPE => "SIGFPE",
            libc::SIGHUP => "SIGHUP",
            libc::SIGILL => "SIGILL",
            libc::SIGINT => "SIGINT",
            libc::SIGKILL => "SIGKILL",
            libc::SIGPIPE => "SIGPIPE",
            libc::SIGQUIT => "SIGQUIT",
            libc::SIGSEGV => "SIGSEGV",
            libc::SIGSYS => "SIGSYS",
            libc::SIGTERM => "SIGTERM",
            libc::SIGTRAP => "SIGTRAP",
            libc::SIGUSR1 => "SIGUSR1",
            libc::SIGUSR2 => "SIGUSR2",
            libc::SIGXCPU => "SIGXCPU",
            libc::SIGXFSZ => "SIGXFSZ",
            _ => return None,
        })
    }
}

/// The means by which a process tree is held together and ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KillRung {
    /// A PID namespace, with a user namespace where the server is not root: the kernel ends all of
    /// it at once, and says when nothing is left.
    PidNamespace,
    /// A control group that is killed as one (Linux 5.14).
    Cgroup,
    /// A process group that no process can leave, because the system calls for it are refused.
    SealedGroup,
    /// Processes that lose their parent become children of the one that looks after the tree, and
    /// are killed until none is left.
    Subreaper,
    /// The process group, and a sweep of `/proc` for what left it. The crate's documentation says
    /// what can escape.
    ProcessGroup,
}

impl KillRung {
    /// All of them, the best first.
    pub const ALL: [Self; 5] =
        [Self::PidNamespace, Self::Cgroup, Self::SealedGroup, Self::Subreaper, Self::ProcessGroup];

    /// A word for results and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PidNamespace => "pid_namespace",
            Self::Cgroup => "cgroup",
            Self::SealedGroup => "sealed_group",
            Self::Subreaper => "subreaper",
            Self::ProcessGroup => "process_group",
        }
    }

    /// A bit of its own.
    pub(crate) const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// How a process tree was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KillReport {
    /// What held the tree together.
    pub rung: KillRung,
    /// Whether the program itself needed a SIGKILL: it was stopped and did not go within its
    /// grace.
    pub forced: bool,
    /// How many processes that had left the program's group were found and killed.
    pub survivors_killed: usize,
    /// Whether everything that was recognised is gone. `false` if a process outlived its SIGKILL,
    /// belongs to another user, or `/proc` could not be read.
    pub complete: bool,
}
