//! Starting a confined program: the helper that becomes it, on the best rung there is.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::start::{FURTHER, OF_HELPER, above, c_string};
use super::supervised::Supervisor;
use super::sys::{Request, spawn};
use super::{KillRung, SealedFile, SpawnError, zygote};
use crate::jail::plan::Plan;
use crate::jail::report::{Report, Step, process_of};
use crate::jail::zygote::MOST_FURTHER;
use crate::jail::{self, ProgramFile, grants};
use crate::{Confinement, Enforced, Profile};

/// What a helper is to become.
pub(super) struct Target<'a> {
    pub(super) confinement: &'a Confinement,
    pub(super) file: &'a Path,
    /// What that is, if it is no file that others could name.
    pub(super) sealed: Option<&'a SealedFile>,
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
    let Target { confinement, file, sealed, search, scratch, request } = target;
    let program = sealed.map_or(ProgramFile::Named(file), ProgramFile::Sealed);
    let plan = Plan {
        profile: confinement.profile,
        require: confinement.require,
        rung,
        limits: confinement.limits,
        grants: grants(confinement, program, search, *scratch),
        without: confinement.without.clone(),
    };
    let mut argv = plan
        .to_arguments()
        .iter()
        .map(|argument| c_string(argument, || "a path of the confinement".to_owned()))
        .collect::<Result<Vec<_>, _>>()?;
    argv.push(c_string(file.as_os_str(), || "the program's path".to_owned())?);
    argv.extend(request.argv.iter().cloned());
    let path: CString = c_string(helper.as_os_str(), || "the helper's path".to_owned())?;

    let request = Request { path: &path, argv: &argv, ..*request };
    let begun = match by_zygote(helper, &request)? {
        Some(begun) => begun,
        None => by_itself(&request)?.map_err(|source| SpawnError::Confine {
            program: file.display().to_string(),
            profile: confinement.profile,
            source: io::Error::new(source.kind(), format!("{}: {source}", helper.display())),
        })?,
    };
    let outcome = Report::from_text(&begun.text);
    if let (Some(Report::Running(built)), Some(process)) = (&outcome, begun.process) {
        let enforced = Enforced {
            profile: confinement.profile,
            files: built.landlock.is_some_and(|version| version >= jail::FLOOR),
            network: built.syscalls && confinement.profile != Profile::WorkspaceNet,
            syscalls: built.syscalls,
            privileges: built.privileges,
            processes: rung,
            landlock: built.landlock,
            missing: built.missing.clone(),
        };
        return Ok(Attempt::Running(process, Supervisor::new(begun.control, rung), enforced));
    }
    // It ends by itself, and nothing else was started.
    drop(begun.control);
    if let Some(process) = begun.process {
        let _ = waitid(WaitId::Pid(process), WaitIdOptions::EXITED);
    }
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

/// A helper that has said how its start went.
struct Begun {
    process: Option<Pid>,
    control: OwnedFd,
    text: String,
}

/// Starts a helper as a process of its own. The inner error is that of its start.
fn by_itself(request: &Request<'_>) -> io::Result<io::Result<Begun>> {
    let (begun, process) =
        begin(request.further, |further| spawn(&Request { further, ..*request }))?;
    Ok(process.map(|process| Begun { process: Some(process), ..begun }))
}

/// Has the zygote make a helper; nothing if there is none to do so.
fn by_zygote(helper: &Path, request: &Request<'_>) -> io::Result<Option<Begun>> {
    if !zygote::is_kept() || request.further.len() > MOST_FURTHER {
        return Ok(None);
    }
    let (begun, sent) =
        begin(request.further, |further| zygote::order(helper, &Request { further, ..*request }))?;
    // Of an order that came to nothing not even a number is heard, and nothing was started.
    let process = process_of(&begun.text);
    Ok((sent && !begun.text.is_empty()).then_some(Begun { process, ..begun }))
}

/// Makes the ways between the two, has the helper's ends handed over, before the program's own
/// descriptors, and waits for its report.
fn begin<T>(
    own: &[BorrowedFd<'_>],
    hand_over: impl FnOnce(&[BorrowedFd<'_>]) -> T,
) -> io::Result<(Begun, T)> {
    let (control, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    let (report, reporter) = pipe_with(PipeFlags::CLOEXEC)?;
    // Their numbers there are 3 and 4, and those of the program's own follow.
    let count = i32::try_from(own.len()).unwrap_or(i32::MAX - FURTHER - OF_HELPER);
    let last = FURTHER + OF_HELPER - 1 + count;
    let (theirs, reporter) = (above(theirs, last)?, above(reporter, last)?);
    let further: Vec<_> =
        [theirs.as_fd(), reporter.as_fd()].into_iter().chain(own.iter().copied()).collect();
    let handed_over = hand_over(&further);
    drop((theirs, reporter));
    let mut text = String::new();
    // What is no text is no report either.
    let _ = File::from(report).read_to_string(&mut text);
    Ok((Begun { process: None, control, text }, handed_over))
}
