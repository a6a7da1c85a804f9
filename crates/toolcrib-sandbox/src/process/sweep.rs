//! Finding and killing processes that left the process group.

use std::collections::HashSet;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::cookie::Cookie;
use super::procfs::{self, Process};

/// The maximum number of scans of `/proc`.
const ROUNDS: u32 = 20;
/// No new scan is started after this time.
const LIMIT: Duration = Duration::from_secs(1);
/// From this round on, processes are killed without being stopped first, in case they fork faster
/// than `/proc` can be scanned.
const PATIENCE: u32 = ROUNDS / 2;

/// The result of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SweepResult {
    /// Processes outside the group that were killed.
    pub(crate) killed: usize,
    /// Whether two scans in a row found nothing.
    pub(crate) complete: bool,
}

/// Identifies a process across PID reuse: its number and its start time.
pub(crate) type ProcessIdentity = (i32, u64);

/// Which processes to look for.
pub(crate) struct SweepTarget<'a> {
    /// The cookie in their environment.
    pub(crate) cookie: &'a Cookie,
    /// The program; its number is also that of its session and group.
    pub(crate) program: i32,
    /// Whether the program was reaped, so that its number may belong to another process.
    pub(crate) reaped: bool,
    /// Processes that were recognized earlier.
    pub(crate) known: &'a HashSet<ProcessIdentity>,
}

/// Kills the matching processes and everything they start meanwhile, until two scans in a row find
/// nothing.
///
/// Newly found processes are stopped, and the scan is repeated before anything is killed, so that
/// the death of one cannot be the signal for another to fork. Blocks for some milliseconds, at most
/// about a second.
pub(crate) fn sweep(quarry: &SweepTarget<'_>) -> SweepResult {
    let deadline = Instant::now() + LIMIT;
    let mut stopped = HashSet::new();
    let mut killed = HashSet::new();
    let mut quiet = 0;
    for round in 0..ROUNDS {
        let Ok(found) = look(quarry) else { break };
        if found.is_empty() {
            quiet += 1;
            if quiet == 2 {
                return SweepResult { killed: killed.len(), complete: true };
            }
            continue;
        }
        quiet = 0;
        let fresh: Vec<_> =
            found.iter().filter(|process| stopped.insert(identity(process))).collect();
        if !fresh.is_empty() && round < PATIENCE {
            for process in fresh {
                let _ = send(process, Signal::STOP);
            }
            continue;
        }
        for process in &found {
            // The group got its SIGKILL already; its members only need time to end.
            let sent = send(process, Signal::KILL).is_ok();
            if sent && process.group != quarry.program {
                killed.insert(identity(process));
            }
        }
        if Instant::now() > deadline {
            break;
        }
        thread::sleep(Duration::from_millis(1 << (round / 3).min(6)));
    }
    // No process may stay merely stopped.
    for process in look(quarry).unwrap_or_default() {
        let _ = send(&process, Signal::KILL);
    }
    SweepResult { killed: killed.len(), complete: false }
}

/// The processes that can be identified now. After a SIGTERM breaks the chain of parents, processes
/// that left the session and cleared their environment can no longer be identified.
pub(crate) fn identify(quarry: &SweepTarget<'_>) -> HashSet<ProcessIdentity> {
    look(quarry).unwrap_or_default().iter().map(identity).collect()
}

fn identity(process: &Process) -> ProcessIdentity {
    (process.pid, process.started)
}

/// The running processes that match: known ones, those marked by session, group or cookie, and
/// descendants of matching ones.
fn look(quarry: &SweepTarget<'_>) -> io::Result<Vec<Process>> {
    let own = std::process::id();
    let mut candidates = procfs::processes()?;
    candidates.retain(|process| {
        !process.zombie && process.pid > 1 && u32::try_from(process.pid) != Ok(own)
    });
    let (mut found, mut others): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|process| {
        let member = process.session == quarry.program || process.group == quarry.program;
        (member && !quarry.reaped)
            || quarry.known.contains(&identity(process))
            || quarry.cookie.is_in(&procfs::environment(process.pid))
    });
    let mut next = 0;
    while next < found.len() {
        let parent = found[next].pid;
        next += 1;
        let children = others.extract_if(.., |process| process.parent == parent);
        found.extend(children);
    }
    Ok(found)
}

/// Signals exactly this process: it opens the handle first and checks the number afterwards, so
/// that a reused number is detected.
fn send(process: &Process, signal: Signal) -> io::Result<()> {
    let pid = Pid::from_raw(process.pid).ok_or(io::ErrorKind::InvalidInput)?;
    let handle = pidfd_open(pid, PidfdFlags::empty())?;
    if procfs::process(process.pid).is_none_or(|now| now.started != process.started) {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(pidfd_send_signal(&handle, signal)?)
}
