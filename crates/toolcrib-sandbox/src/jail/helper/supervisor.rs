//! The helper as supervisor: it creates the process tree, reports its end, and ends it on request
//! or when the server disappears.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, set_parent_process_death_signal, wait,
    waitid,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::plan::Plan;
use super::report::{HelperStep, TreeMessage, failure};
use super::target::become_program;
use crate::KillRung;
use crate::jail::helper::tree::TreeHold;
use crate::process::sys::{self, Fork};

/// The server's command to end the tree with SIGTERM.
pub(crate) const TERMINATE: u8 = b'T';
/// The server's command to kill the tree. Closing the connection means the same.
pub(crate) const KILL: u8 = b'K';

/// How long the kernel may take to carry out a SIGKILL.
const KILL_WAIT: Duration = Duration::from_millis(900);
/// The interval between repeated kills.
const AGAIN: Duration = Duration::from_millis(2);

/// Runs the helper to its end. It is the only thread of this process. Forked processes return from
/// here too, when they are done.
pub(in crate::jail) fn supervise(
    plan: &Plan,
    words: &[OsString],
    control: &OwnedFd,
    mut report: File,
) {
    let hold = match TreeHold::new(plan) {
        Ok(hold) => hold,
        Err(error) => return tell(&mut report, HelperStep::Rung, &error),
    };
    if plan.rung != KillRung::PidNamespace {
        return tree(plan, &hold, words, control, report);
    }
    // The first process of the namespace does the rest: when it ends, the kernel kills all others
    // in the namespace, and it can be reaped only after they are gone.
    match sys::fork() {
        Ok(Fork::Parent(first)) => {
            // An open copy of this descriptor would delay the start.
            drop(report);
            let_go_of_streams(control);
            let _ = waitid(WaitId::Pid(first), WaitIdOptions::EXITED);
        }
        Ok(Fork::Child) => {
            if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
                return tell(&mut report, HelperStep::Rung, &error.into());
            }
            first(plan, &hold, words, control, report);
        }
        Err(error) => tell(&mut report, HelperStep::Rung, &error),
    }
}

fn first(plan: &Plan, hold: &TreeHold, words: &[OsString], control: &OwnedFd, report: File) {
    if let Some(most) = plan.limits.processes {
        hold.limit_processes(most);
    }
    tree(plan, hold, words, control, report);
}

fn tell(report: &mut File, step: HelperStep, error: &io::Error) {
    // The server may have ended.
    let _ = report.write_all(failure(step, error).as_bytes());
}

/// Starts the program and supervises its tree.
fn tree(plan: &Plan, hold: &TreeHold, words: &[OsString], control: &OwnedFd, mut report: File) {
    let own = getpid();
    match sys::fork() {
        Ok(Fork::Child) => become_program(plan, hold, words, Some(own), report),
        Ok(Fork::Parent(child)) => {
            drop(report);
            let_go_of_streams(control);
            // If supervision fails, kill the tree; the program ends with this process.
            if watch(hold, child, control).is_err() {
                hold.kill(child, false);
            }
        }
        Err(error) => tell(&mut report, HelperStep::Rung, &error),
    }
}

/// The program's streams must end when its tree has closed them, regardless of this process.
fn let_go_of_streams(other: &OwnedFd) {
    let _ = dup2_stdin(other);
    let _ = dup2_stdout(other);
    let _ = dup2_stderr(other);
}

/// The processes of a tree that have ended.
#[derive(Debug, Default)]
struct ReapedProcesses {
    /// The program's exit code, or the negated number of its signal.
    program: Option<i32>,
    /// How many other processes have ended.
    others: usize,
    /// Whether no process is left.
    all: bool,
}

impl ReapedProcesses {
    /// Reaps ended processes. Orphans are reparented to this process, so it can wait for all of
    /// them.
    fn look(&mut self, program: Pid) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == program => {
                    let signal = status.terminating_signal().map(|signal| -signal);
                    self.program = status.exit_status().or(signal).or(Some(-libc::SIGKILL));
                }
                Ok(Some(_)) => self.others += 1,
                Ok(None) | Err(Errno::INTR) => return,
                Err(_) => {
                    self.all = true;
                    return;
                }
            }
        }
    }
}

/// Waits for the program's end and for commands of the server. When it returns, every process that
/// could be found has ended.
fn watch(hold: &TreeHold, program: Pid, control: &OwnedFd) -> io::Result<()> {
    let children = sys::watch_children()?;
    let mut seen = ReapedProcesses::default();
    let mut told = false;
    loop {
        seen.look(program);
        if let Some(code) = seen.program
            && !told
        {
            say(control, TreeMessage::Ended { code, lingering: !seen.all });
            told = true;
            if seen.all {
                return Ok(());
            }
        }
        if seen.all {
            // The remaining processes ended by themselves.
            say(control, TreeMessage::Done { killed: 0, complete: true });
            return Ok(());
        }
        let mut events =
            [PollFd::new(control, PollFlags::IN), PollFd::new(&children, PollFlags::IN)];
        match poll(&mut events, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [from_server, child_ended] = events.map(|event| !event.revents().is_empty());
        if child_ended {
            sys::forget_children(&children);
        }
        if !from_server {
            continue;
        }
        if word(control) == Some(TERMINATE) {
            hold.signal(program, seen.program.is_some(), Signal::TERM);
        } else {
            let complete = kill(hold, program, &children, &mut seen);
            if !told && let Some(code) = seen.program {
                say(control, TreeMessage::Ended { code, lingering: true });
            }
            say(control, TreeMessage::Done { killed: seen.others, complete });
            return Ok(());
        }
    }
}

/// Kills until no process is left; returns whether it succeeded in time.
fn kill(hold: &TreeHold, program: Pid, children: &OwnedFd, seen: &mut ReapedProcesses) -> bool {
    let deadline = Instant::now() + KILL_WAIT;
    seen.others = 0;
    loop {
        hold.kill(program, seen.program.is_some());
        loop {
            seen.look(program);
            let left = deadline.saturating_duration_since(Instant::now());
            if seen.all || left.is_zero() {
                // A process group shows only its members; other processes of the tree may have left
                // it.
                return seen.all;
            }
            let pause = if hold.may_miss() { AGAIN.min(left) } else { left };
            let pause = Timespec {
                tv_sec: pause.as_secs().cast_signed(),
                tv_nsec: i64::from(pause.subsec_nanos()),
            };
            let ready = poll(&mut [PollFd::new(children, PollFlags::IN)], Some(&pause));
            if ready.is_ok_and(|ready| ready > 0) {
                sys::forget_children(children);
            }
            if hold.may_miss() {
                break;
            }
        }
    }
}

fn say(control: &OwnedFd, message: TreeMessage) {
    // The server may have ended.
    let _ = send(control, &message.to_bytes(), SendFlags::NOSIGNAL);
}

/// Reads a command of the server; `None` after it has closed the connection.
fn word(control: &OwnedFd) -> Option<u8> {
    let mut word = [0];
    match recv(control, &mut word, RecvFlags::DONTWAIT) {
        Ok((_, 1)) => Some(word[0]),
        _ => None,
    }
}
