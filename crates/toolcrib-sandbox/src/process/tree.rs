//! A running process tree, and the guard that ends it.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};

use super::cookie::Cookie;
use super::reaper;
use super::run::KILL_WAIT;
use super::scratch::ScratchDir;
use super::sweep::{ProcessIdentity, SweepResult, SweepTarget, identify, sweep};
use super::sys::watch;
use super::{KillRung, Status};
use crate::control_plane::RunningProgram;
use crate::process::supervised_tree::Supervisor;

/// A program that leads its own session and group. Its process number is not reused before it is
/// reaped.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    pid: Pid,
    pidfd: OwnedFd,
    reaped: AtomicBool,
    cookie: Cookie,
    supervisor: Option<Supervisor>,
    scratch: Mutex<Option<ScratchDir>>,
    grace: Duration,
    known: Mutex<HashSet<ProcessIdentity>>,
    /// Says until all of the tree has ended that it runs and which files it can change.
    _running: Option<RunningProgram>,
}

impl ProcessTree {
    pub(crate) fn new(
        pid: Pid,
        pidfd: OwnedFd,
        supervisor: Option<Supervisor>,
        cookie: Cookie,
        scratch: Option<ScratchDir>,
        grace: Duration,
        running: Option<RunningProgram>,
    ) -> Self {
        Self {
            pid,
            pidfd,
            reaped: AtomicBool::new(false),
            supervisor,
            cookie,
            scratch: Mutex::new(scratch),
            known: Mutex::default(),
            grace,
            _running: running,
        }
    }

    /// The time between SIGTERM and SIGKILL.
    pub(crate) fn grace(&self) -> Duration {
        self.grace
    }

    /// Completes when the program itself has ended. The program stays unreaped.
    pub(crate) async fn ended(&self) -> io::Result<()> {
        watch(self.end())?.readable().await?.retain_ready();
        Ok(())
    }

    /// A separate handle that becomes readable when the program itself has ended.
    pub(crate) fn end_handle(&self) -> io::Result<OwnedFd> {
        self.end().try_clone_to_owned()
    }

    /// The descriptor that becomes readable when the program itself has ended.
    fn end(&self) -> BorrowedFd<'_> {
        match &self.supervisor {
            Some(supervisor) => supervisor.handle(),
            None => self.pidfd.as_fd(),
        }
    }

    /// The mechanism that holds the tree together.
    pub(crate) fn rung(&self) -> KillRung {
        self.supervisor.as_ref().map_or(KillRung::ProcessGroup, Supervisor::rung)
    }

    /// Waits up to this long for the program's end; returns whether it ended.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        match &self.supervisor {
            Some(supervisor) => supervisor.has_ended(timeout),
            None => self.wait_for_process(timeout),
        }
    }

    /// Does the same for the process that was started: the program, or the helper that supervises
    /// it.
    fn wait_for_process(&self, timeout: Duration) -> bool {
        let timeout = Timespec {
            tv_sec: timeout.as_secs().cast_signed(),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        let mut handles = [PollFd::new(&self.pidfd, PollFlags::IN)];
        poll(&mut handles, Some(&timeout)).is_ok_and(|ready| ready > 0)
    }

    /// Signals the whole group. Does nothing after the program was reaped, because another process
    /// may have its number then.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(supervisor) = &self.supervisor {
            supervisor.signal(signal);
        } else if !self.reaped.load(Ordering::Acquire) {
            // ESRCH: every process has ended. EPERM: no process is left that we may signal.
            let _ = kill_process_group(self.pid, signal);
        }
    }

    /// Records the current processes of the tree for a later [`sweep`](Self::sweep). Blocks.
    pub(crate) fn identify(&self) {
        // The helper of a confined tree knows its processes.
        if self.supervisor.is_none() {
            let found = self.with_quarry(identify);
            self.known().extend(found);
        }
    }

    /// Kills processes that left the group and the remaining members of the group. Blocks.
    pub(crate) fn sweep(&self) -> SweepResult {
        if let Some(supervisor) = &self.supervisor {
            supervisor.signal(Signal::KILL);
            if let Some(swept) = supervisor.done(KILL_WAIT) {
                return swept;
            }
            // The helper was killed or does not respond, so only processes that can be found
            // without it are killed.
            let _ = kill_process_group(self.pid, Signal::KILL);
            return SweepResult { complete: false, ..self.with_quarry(sweep) };
        }
        self.with_quarry(sweep)
    }

    fn with_quarry<T>(&self, act: impl FnOnce(&SweepTarget<'_>) -> T) -> T {
        let known = self.known().clone();
        act(&SweepTarget {
            cookie: &self.cookie,
            program: self.pid.as_raw_nonzero().get(),
            reaped: self.reaped.load(Ordering::Acquire),
            known: &known,
        })
    }

    fn known(&self) -> MutexGuard<'_, HashSet<ProcessIdentity>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether others are, or were a moment ago, in the group of the reaped program. If the number
    /// has a new owner already, the answer is a false "yes", which costs only a sweep.
    pub(crate) fn group_lingers(&self) -> bool {
        if let Some(supervisor) = &self.supervisor {
            return supervisor.lingers();
        }
        test_kill_process_group(self.pid).is_ok()
    }

    /// Reaps the program, which releases its number. Call it only after the program's end and after
    /// the last signal to its group.
    pub(crate) fn reap(&self) -> Status {
        // A helper that has reported the program's end is about to exit.
        if self.supervisor.is_some() {
            self.wait_for_process(KILL_WAIT);
        }
        self.reaped.store(true, Ordering::Release);
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let Ok(Some(status)) = waitid(WaitId::PidFd(self.pidfd.as_fd()), options) else {
            return Status::Unknown;
        };
        if let Some(supervisor) = &self.supervisor {
            return supervisor.status();
        }
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Status::Exited(code),
            (None, Some(signal)) => Status::Signaled(signal),
            (None, None) => Status::Unknown,
        }
    }

    /// Removes the scratch directory if that is cheap. Otherwise returns it, so that it is dropped
    /// where blocking is allowed.
    pub(crate) fn take_full_scratch(&self) -> Option<ScratchDir> {
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        if scratch.remove_if_empty() { None } else { Some(scratch) }
    }
}

/// Ends a tree if it is dropped before [`disarm`](Self::disarm): sends SIGTERM at once and leaves
/// the rest to the reaper's thread.
#[derive(Debug)]
pub(crate) struct TreeGuard {
    tree: Arc<ProcessTree>,
    armed: bool,
}

impl TreeGuard {
    pub(crate) fn new(tree: ProcessTree) -> Self {
        Self { tree: Arc::new(tree), armed: true }
    }

    /// The tree.
    pub(crate) fn tree(&self) -> &ProcessTree {
        &self.tree
    }

    /// Disarms the guard: the tree has ended.
    pub(crate) fn disarm(&mut self) {
        self.armed = false;
    }
}

impl Drop for TreeGuard {
    fn drop(&mut self) {
        if self.armed {
            self.tree.signal(Signal::TERM);
            reaper::submit(Arc::clone(&self.tree));
        }
    }
}
