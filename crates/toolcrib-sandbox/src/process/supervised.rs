//! The server's end of a confined tree: starting the helper, and what is said between the two.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use super::start::{above, c_string};
use super::sweep::Swept;
use super::sys::{Request, spawn};
use super::{KillRung, SpawnError, Status};
use crate::jail::plan::Plan;
use crate::jail::report::{MESSAGE, Message, Report, Step};
use crate::jail::supervisor::{KILL, TERMINATE};
use crate::jail::{self, grants};
use crate::{Confinement, Enforced, Profile};

/// What a helper is to become.
pub(super) struct Target<'a> {
    pub(super) confinement: &'a Confinement,
    pub(super) file: &'a Path,
    /// Where programs of this environment are looked for.
    pub(super) search: &'a OsStr,
    pub(super) scratch: Option<&'a Path>,
    /// As for a program that is started without a helper.
    pub(super) request: Request<'a>,
}

/// A start that did not come about.
pub(super) enum Refusal {
    /// This is why.
    Because(SpawnError),
    /// As a start of the program itself would have failed.
    Load(io::Error),
}

impl<E: Into<SpawnError>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self::Because(error.into())
    }
}

/// Rungs that this machine does not offer, one bit each.
static NOT_HERE: AtomicU8 = AtomicU8::new(0);

/// The rungs for a program, the best first.
fn ladder(confinement: &Confinement) -> Vec<KillRung> {
    let mut ladder = match confinement.profile {
        // One process that can start no other: its group is all there is.
        Profile::Pure => vec![KillRung::SealedGroup],
        _ => vec![KillRung::PidNamespace, KillRung::Cgroup],
    };
    if !confinement.job_control && confinement.profile != Profile::Pure {
        ladder.push(KillRung::SealedGroup);
    }
    ladder.extend([KillRung::Subreaper, KillRung::ProcessGroup]);
    if let Some(only) = confinement.rung {
        ladder.retain(|rung| *rung == only);
    }
    ladder
}

/// Starts the helper and waits until it has become the program.
pub(super) fn launch(target: &Target<'_>) -> Result<(Pid, Supervisor, Enforced), Refusal> {
    let Some(helper) = jail::helper() else {
        return Err(Refusal::Because(SpawnError::NoHelper {
            program: target.file.display().to_string(),
            profile: target.confinement.profile,
        }));
    };
    let mut last = io::Error::from(io::ErrorKind::Unsupported);
    for rung in ladder(target.confinement) {
        let forced = target.confinement.rung.is_some();
        if !forced && NOT_HERE.load(Ordering::Relaxed) & rung.bit() != 0 {
            continue;
        }
        match attempt(helper, target, rung)? {
            Attempt::Running(pid, supervisor, enforced) => return Ok((pid, supervisor, enforced)),
            Attempt::NoSuchRung(error) => {
                // What may be there again in a moment is asked for again.
                let passing =
                    [libc::EAGAIN, libc::ENOMEM, libc::ENOSPC, libc::EMFILE, libc::ENFILE];
                if !error.raw_os_error().is_some_and(|number| passing.contains(&number))
                    && target.confinement.without.is_empty()
                {
                    NOT_HERE.fetch_or(rung.bit(), Ordering::Relaxed);
                }
                last = error;
            }
        }
    }
    Err(Refusal::Because(SpawnError::Confine {
        program: target.file.display().to_string(),
        profile: target.confinement.profile,
        source: last,
    }))
}

enum Attempt {
    Running(Pid, Supervisor, Enforced),
    NoSuchRung(io::Error),
}

fn attempt(helper: &Path, target: &Target<'_>, rung: KillRung) -> Result<Attempt, Refusal> {
    let Target { confinement, file, search, scratch, request } = target;
    let plan = Plan {
        profile: confinement.profile,
        require: confinement.require,
        rung,
        limits: confinement.limits,
        grants: grants(confinement, file, search, *scratch),
        without: confinement.without.clone(),
    };
    let mut argv = plan
        .to_arguments()
        .iter()
        .map(|argument| c_string(argument, || "a path of the confinement".to_owned()))
        .collect::<Result<Vec<_>, _>>()?;
    argv.push(c_string(file.as_os_str(), || "the program's path".to_owned())?);
    argv.extend(request.argv.iter().cloned());

    let (control, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(io::Error::from)?;
    let (report, reporter) = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from)?;
    // Their numbers there are 3 and 4.
    let (theirs, reporter) = (above(theirs, 4)?, above(reporter, 4)?);
    let path: CString = c_string(helper.as_os_str(), || "the helper's path".to_owned())?;
    let pid = spawn(&Request {
        path: &path,
        argv: &argv,
        further: &[theirs.as_fd(), reporter.as_fd()],
        ..*request
    })
    .map_err(|source| SpawnError::Confine {
        program: file.display().to_string(),
        profile: confinement.profile,
        source: io::Error::new(source.kind(), format!("{}: {source}", helper.display())),
    })?;
    drop((theirs, reporter));
    let mut text = String::new();
    let read = File::from(report).read_to_string(&mut text);
    let supervisor = Supervisor { control, rung, told: Mutex::default() };
    let outcome = read.ok().and_then(|_| Report::from_text(&text));
    if let Some(Report::Running(built)) = outcome {
        let enforced = Enforced {
            profile: confinement.profile,
            files: built.landlock.is_some_and(|version| version >= jail::FLOOR),
            network: built.syscalls && confinement.profile != Profile::WorkspaceNet,
            syscalls: built.syscalls,
            privileges: built.privileges,
            processes: rung,
            landlock: built.landlock,
            missing: built.missing,
        };
        return Ok(Attempt::Running(pid, supervisor, enforced));
    }
    // It ends by itself, and nothing else was started.
    drop(supervisor);
    let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
    let because = |source| {
        Refusal::Because(SpawnError::Confine {
            program: file.display().to_string(),
            profile: confinement.profile,
            source,
        })
    };
    match outcome {
        Some(Report::Failed(Step::Rung, number)) => {
            Ok(Attempt::NoSuchRung(io::Error::from_raw_os_error(number)))
        }
        Some(Report::Failed(Step::Execute, number)) => {
            Err(Refusal::Load(io::Error::from_raw_os_error(number)))
        }
        Some(Report::Failed(Step::Jail, number)) => {
            Err(because(io::Error::from_raw_os_error(number)))
        }
        Some(Report::Refused(missing)) => Err(Refusal::Because(SpawnError::NotEnforced {
            program: file.display().to_string(),
            profile: confinement.profile,
            missing,
        })),
        Some(Report::Running(_)) | None => Err(because(io::Error::other(
            "the helper ended without a word, or is of another version",
        ))),
    }
}

/// The way to the helper that looks after a tree.
#[derive(Debug)]
pub(super) struct Supervisor {
    control: OwnedFd,
    rung: KillRung,
    told: Mutex<Told>,
}

/// What the helper has said so far.
#[derive(Debug, Default)]
struct Told {
    ended: Option<(i32, bool)>,
    done: Option<Swept>,
    hung_up: bool,
}

impl Supervisor {
    /// What the tree is held together by.
    pub(super) fn rung(&self) -> KillRung {
        self.rung
    }

    /// Becomes readable when the program has ended, and stays so until somebody asks
    /// [how](Self::status).
    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// Has the tree asked to end, or killed.
    pub(super) fn signal(&self, signal: Signal) {
        let word = if signal == Signal::KILL { KILL } else { TERMINATE };
        // Fails when it has ended, and all the others with it.
        let _ = send(&self.control, &[word], SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }

    /// Waits at most this long for the program's end; says whether it came.
    pub(super) fn has_ended(&self, timeout: Duration) -> bool {
        let told = self.told();
        told.ended.is_some() || told.hung_up || self.is_readable(timeout)
    }

    /// Whether others of the tree were still there when the program ended.
    pub(super) fn lingers(&self) -> bool {
        self.listen().ended.is_none_or(|(_, lingering)| lingering)
    }

    /// How the program ended, once it has.
    pub(super) fn status(&self) -> Status {
        match self.listen().ended {
            Some((code, _)) if code >= 0 => Status::Exited(code),
            Some((code, _)) => Status::Signaled(-code),
            None => Status::Unknown,
        }
    }

    /// Waits at most this long until the helper says that nothing is left; nothing if it does not.
    pub(super) fn done(&self, timeout: Duration) -> Option<Swept> {
        let deadline = Instant::now() + timeout;
        loop {
            let told = self.listen();
            let left = deadline.saturating_duration_since(Instant::now());
            if told.done.is_some() || told.hung_up || left.is_zero() {
                // Who ended with the program, and without a further word, said that nobody is left.
                let alone = told.ended.is_some_and(|(_, lingering)| !lingering);
                return told.done.or_else(|| alone.then_some(Swept { killed: 0, complete: true }));
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

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what the helper has said. Only after the program's end: until then others wait for
    /// there being something to take.
    fn listen(&self) -> MutexGuard<'_, Told> {
        let mut told = self.told();
        let mut bytes = [0; MESSAGE];
        while !told.hung_up {
            match recv(&self.control, &mut bytes, RecvFlags::DONTWAIT) {
                Ok((_, length)) => match Message::from_bytes(&bytes[..length.min(MESSAGE)]) {
                    Some(Message::Ended { code, lingering }) => {
                        told.ended = Some((code, lingering));
                    }
                    Some(Message::Done { killed, complete }) => {
                        told.done = Some(Swept { killed, complete });
                    }
                    None => told.hung_up = true,
                },
                // It ended without having read our last word; what it said comes after this.
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNRESET) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                Err(_) => told.hung_up = true,
            }
        }
        told
    }
}
