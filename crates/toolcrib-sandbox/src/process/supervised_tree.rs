//! The server's end of the connection to the helper of a confined tree.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::Signal;

use super::sweep::SweepResult;
use super::{KillRung, Status};
use crate::jail::helper::report::{MESSAGE, TreeMessage};
use crate::jail::helper::supervisor::{KILL, TERMINATE};

/// The connection to the helper that supervises a tree.
#[derive(Debug)]
pub(super) struct Supervisor {
    control: OwnedFd,
    rung: KillRung,
    told: Mutex<HelperMessages>,
}

/// The messages received so far.
#[derive(Debug, Default)]
struct HelperMessages {
    ended: Option<(i32, bool)>,
    done: Option<SweepResult>,
    hung_up: bool,
}

impl Supervisor {
    /// The process of the helper.
    pub(super) fn new(control: OwnedFd, rung: KillRung) -> Self {
        Self { control, rung, told: Mutex::default() }
    }

    /// The mechanism that holds the tree together.
    pub(super) fn rung(&self) -> KillRung {
        self.rung
    }

    /// Becomes readable when the program has ended, and stays readable until
    /// [`status`](Self::status) is called.
    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// Asks the helper to end the tree, or to kill it.
    pub(super) fn signal(&self, signal: Signal) {
        let word = if signal == Signal::KILL { KILL } else { TERMINATE };
        // It fails if the helper has ended, and the whole tree with it.
        let _ = send(&self.control, &[word], SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }

    /// Waits up to this long for the program's end; returns whether it ended.
    pub(super) fn has_ended(&self, timeout: Duration) -> bool {
        let told = self.told();
        told.ended.is_some() || told.hung_up || self.is_readable(timeout)
    }

    /// Whether other processes of the tree were still running when the program ended.
    pub(super) fn lingers(&self) -> bool {
        self.listen().ended.is_none_or(|(_, lingering)| lingering)
    }

    /// How the program ended, if it has.
    pub(super) fn status(&self) -> Status {
        match self.listen().ended {
            Some((code, _)) if code >= 0 => Status::Exited(code),
            Some((code, _)) => Status::Signaled(-code),
            None => Status::Unknown,
        }
    }

    /// Waits up to this long until the helper reports that no process is left; `None` if it does
    /// not.
    pub(super) fn done(&self, timeout: Duration) -> Option<SweepResult> {
        let deadline = Instant::now() + timeout;
        loop {
            let told = self.listen();
            let left = deadline.saturating_duration_since(Instant::now());
            if told.done.is_some() || told.hung_up || left.is_zero() {
                // A helper that ended with the program without a further message has confirmed that
                // no process was left.
                let alone = told.ended.is_some_and(|(_, lingering)| !lingering);
                return told
                    .done
                    .or_else(|| alone.then_some(SweepResult { killed: 0, complete: true }));
            }
            drop(told);
            self.is_readable(left);
        }
    }

    fn is_readable(&self, timeout: Duration) -> bool {
        let timeout = Timespec {
            tv_sec: timeout.as_secs().cast_signed(),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        let mut handles = [PollFd::new(&self.control, PollFlags::IN)];
        poll(&mut handles, Some(&timeout)).is_ok_and(|ready| ready > 0)
    }

    fn told(&self) -> MutexGuard<'_, HelperMessages> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the helper's messages. Call it only after the program's end, because before that,
    /// other tasks wait until the socket is readable.
    fn listen(&self) -> MutexGuard<'_, HelperMessages> {
        let mut told = self.told();
        let mut bytes = [0; MESSAGE];
        while !told.hung_up {
            match recv(&self.control, &mut bytes, RecvFlags::DONTWAIT) {
                Ok((_, length)) => match TreeMessage::from_bytes(&bytes[..length.min(MESSAGE)]) {
                    Some(TreeMessage::Ended { code, lingering }) => {
                        told.ended = Some((code, lingering));
                    }
                    Some(TreeMessage::Done { killed, complete }) => {
                        told.done = Some(SweepResult { killed, complete });
                    }
                    None => told.hung_up = true,
                },
                // The helper ended before it read our last command; its messages follow.
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNRESET) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                Err(_) => told.hung_up = true,
            }
        }
        told
    }
}
