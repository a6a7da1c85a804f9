//! The result of a finished program.

use std::time::Duration;

use super::Captured;
use crate::Enforced;

/// The result of a program that has ended with everything it started.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Finished {
    /// How it ended.
    pub status: Status,
    /// Whether it was ended because `stop` completed. The status says how it reacted: a program may
    /// exit by itself when it gets the signal.
    pub stopped: bool,
    /// What it wrote to standard output.
    pub stdout: Captured,
    /// What it wrote to standard error.
    pub stderr: Captured,
    /// The time from before the start until no process was left.
    pub duration: Duration,
    /// How its process tree was ended.
    pub kill: KillReport,
    /// The restrictions that the kernel enforced on it.
    pub enforced: Enforced,
}

/// How a child program ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChildExit {
    /// How it ended.
    pub status: Status,
    /// The captured part of its standard error.
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
    /// Its end could not be observed: the kernel had not carried out a SIGKILL after a second (the
    /// process is stuck in a device), or the host program reaps children that it did not start.
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

    /// The signal's usual name, for example `SIGKILL`, if a signal ended it and the name is known.
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

/// The mechanism by which a process tree is held together and ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KillRung {
    /// A PID namespace, with a user namespace if the server is not root: the kernel ends the whole
    /// tree at once and reports when no process is left.
    PidNamespace,
    /// A control group that is killed as a whole (Linux 5.14).
    Cgroup,
    /// A process group that no process can leave, because the system call filter refuses that.
    SealedGroup,
    /// Processes that lose their parent become children of the supervising process, which kills
    /// them until none is left.
    Subreaper,
    /// The process group, and a sweep of `/proc` for processes that left it. The crate's
    /// documentation says which ones can escape.
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

    /// Its bit.
    pub(crate) const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// How a process tree was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KillReport {
    /// The mechanism that held the tree together.
    pub rung: KillRung,
    /// Whether the program itself needed a SIGKILL: it was stopped and did not end within its grace
    /// period.
    pub forced: bool,
    /// How many processes that had left the program's group were found and killed.
    pub survivors_killed: usize,
    /// Whether everything that was recognized has ended. `false` if a process outlived its SIGKILL
    /// or belongs to another user, or if `/proc` could not be read.
    pub complete: bool,
}
