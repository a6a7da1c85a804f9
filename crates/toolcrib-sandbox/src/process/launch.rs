//! Starts a confined program: runs a helper that becomes the program, with the best available rung.

use std::borrow::Cow;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::start::{FURTHER, OF_HELPER, above, c_string};
use super::sys::{Request, spawn};
use super::{KillRung, SealedFile, SpawnError};
use crate::control_plane::RunningProgram;
use crate::jail;
use crate::jail::helper::plan;
use crate::jail::helper::plan::Plan;
use crate::jail::helper::report::{HelperStep, StartReport};
use crate::jail::{Helper, ProgramFile, grants};
use crate::process::supervised_tree::Supervisor;
use crate::{Confinement, Enforced, Profile};

/// The program that a helper becomes.
pub(super) struct LaunchTarget<'a> {
    pub(super) confinement: &'a Confinement,
    pub(super) file: &'a Path,
    /// The program as a sealed file, if it is one.
    pub(super) sealed: Option<&'a SealedFile>,
    /// The `PATH` in which to look for programs.
    pub(super) search: &'a OsStr,
    pub(super) scratch: Option<&'a Path>,
    /// Its working directory.
    pub(super) directory: Option<&'a Path>,
    /// The request for a start without a helper.
    pub(super) request: Request<'a>,
}

/// A failed start.
pub(super) enum LaunchError {
    /// The reason.
    Because(SpawnError),
    /// The error that a start of the program itself would have had.
    Load(io::Error),
}

impl<E: Into<SpawnError>> From<E> for LaunchError {
    fn from(error: E) -> Self {
        Self::Because(error.into())
    }
}

/// The time limit for a helper to become the program. It takes milliseconds unless a file system
/// does not respond.
pub(super) const START_LIMIT: Duration = Duration::from_secs(10);

/// How long to retry a start while withheld files are being replaced. An attempt takes milliseconds, so the limit is
/// reached only if a file is replaced continuously.
const PATIENCE: Duration = Duration::from_secs(3);

/// The error for a helper without a report.
const SILENT: &str = "the helper ended without a report, or is of another version";

/// Rungs that this machine does not support, one bit each.
static NOT_HERE: AtomicU8 = AtomicU8::new(0);

/// The rungs for a program, the best first.
fn ladder(confinement: &Confinement) -> Vec<KillRung> {
    let mut ladder = match confinement.profile {
        // A process that cannot start others: without a namespace, its group contains everything.
        Profile::Pure => vec![KillRung::PidNamespace, KillRung::SealedGroup],
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

/// Starts the helper and waits until it has become the program. `running` is replaced if the program is
/// started with other places withheld.
pub(super) fn launch(
    target: &LaunchTarget<'_>,
    running: &mut Option<RunningProgram>,
) -> Result<(Pid, Supervisor, Enforced), LaunchError> {
    let Some(helper) = jail::helper() else {
        return Err(LaunchError::Because(SpawnError::NoHelper {
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
        let (began, mut attempts) = (Instant::now(), 1);
        let mut confinement = Cow::Borrowed(target.confinement);
        let error = loop {
            match attempt(&helper, target, &confinement, rung)? {
                LaunchAttempt::Running(pid, supervisor, enforced) => {
                    return Ok((pid, supervisor, enforced));
                }
                LaunchAttempt::NoSuchRung(error) => break error,
                LaunchAttempt::Replaced(_) if began.elapsed() < PATIENCE => attempts += 1,
                // A file of the control plane that existed at the last lookup.
                LaunchAttempt::Missing(_)
                    if began.elapsed() < PATIENCE && confinement.taken.is_some() =>
                {
                    attempts += 1;
                    let grants = |reason| SpawnError::Grants {
                        program: target.file.display().to_string(),
                        reason,
                    };
                    let own = confinement.to_mut();
                    own.leave_out_missing();
                    *running = own.expose_when_guarded_places_are_there().map_err(grants)?;
                }
                LaunchAttempt::Missing(reason) => {
                    let program = target.file.display().to_string();
                    return Err(LaunchError::Because(SpawnError::Grants { program, reason }));
                }
                LaunchAttempt::Replaced(reason) => {
                    let reason = format!(
                        "{reason}: it was replaced during each of {attempts} starts; call again"
                    );
                    let program = target.file.display().to_string();
                    return Err(LaunchError::Because(SpawnError::Grants { program, reason }));
                }
            }
        };
        // Resources that may become available soon are worth a retry.
        let passing = [libc::EAGAIN, libc::ENOMEM, libc::ENOSPC, libc::EMFILE, libc::ENFILE];
        if !error.raw_os_error().is_some_and(|number| passing.contains(&number))
            && target.confinement.without.is_empty()
        {
            NOT_HERE.fetch_or(rung.bit(), Ordering::Relaxed);
        }
        last = error;
    }
    Err(LaunchError::Because(SpawnError::Confine {
        program: target.file.display().to_string(),
        profile: target.confinement.profile,
        source: last,
    }))
}

enum LaunchAttempt {
    Running(Pid, Supervisor, Enforced),
    NoSuchRung(io::Error),
    /// A withheld file does not exist, and the program could create it.
    Missing(String),
    /// A withheld file was replaced during the start.
    Replaced(String),
}

fn attempt(
    helper: &Helper,
    target: &LaunchTarget<'_>,
    confinement: &Confinement,
    rung: KillRung,
) -> Result<LaunchAttempt, LaunchError> {
    let LaunchTarget { file, sealed, search, scratch, directory, request, .. } = target;
    let program = sealed.map_or(ProgramFile::Named(file), ProgramFile::Sealed);
    let plan = Plan {
        profile: confinement.profile,
        require: confinement.require,
        rung,
        limits: confinement.limits,
        grants: grants(confinement, Some(program), search, *scratch),
        hidden: absolute(&confinement.hidden),
        read_only: absolute(&confinement.read_only),
        own: confinement
            .own_folder
            .iter()
            .map(PathBuf::as_path)
            .chain(*scratch)
            .map(absolute_path)
            .collect(),
        workspace: confinement.workspace.as_deref().map(absolute_path),
        directory: directory.map(absolute_path),
        without: confinement.without.clone(),
    };
    let mut argv = plan
        .to_arguments()
        .iter()
        .map(|argument| c_string(argument, || "a path of the confinement".to_owned()))
        .collect::<Result<Vec<_>, _>>()?;
    argv.push(c_string(file.as_os_str(), || "the program's path".to_owned())?);
    argv.extend(request.argv.iter().cloned());
    let request = Request { argv: &argv, ..*request };
    let begun = begin(helper, &request, START_LIMIT).map_err(|error| late(file, error))?.map_err(
        |source| SpawnError::Confine {
            program: file.display().to_string(),
            profile: confinement.profile,
            source: io::Error::new(source.kind(), format!("{}: {source}", helper.path.display())),
        },
    )?;
    let outcome = StartReport::from_text(&begun.text);
    if let Some(StartReport::Running(built)) = &outcome {
        let enforced = Enforced {
            profile: confinement.profile,
            files: built.landlock.is_some_and(|version| version >= jail::FLOOR),
            network: built.syscalls && confinement.profile != Profile::WorkspaceNet,
            syscalls: built.syscalls,
            privileges: built.privileges,
            withheld: built.withheld,
            processes: rung,
            landlock: built.landlock,
            missing: built.missing.clone(),
        };
        return Ok(LaunchAttempt::Running(
            begun.process,
            Supervisor::new(begun.control, rung),
            enforced,
        ));
    }
    // The helper ends by itself, and it started nothing else.
    drop(begun.control);
    let _ = waitid(WaitId::Pid(begun.process), WaitIdOptions::EXITED);
    let because = |source| {
        LaunchError::Because(SpawnError::Confine {
            program: file.display().to_string(),
            profile: confinement.profile,
            source,
        })
    };
    match outcome {
        Some(StartReport::Failed(HelperStep::Rung, number)) => {
            Ok(LaunchAttempt::NoSuchRung(io::Error::from_raw_os_error(number)))
        }
        Some(StartReport::Failed(HelperStep::Execute, number)) => {
            Err(LaunchError::Load(io::Error::from_raw_os_error(number)))
        }
        Some(StartReport::Failed(HelperStep::Jail, number)) => {
            Err(because(io::Error::from_raw_os_error(number)))
        }
        Some(StartReport::Failed(HelperStep::Directory, number)) => {
            let path = directory.map(absolute_path).unwrap_or_default();
            let source = io::Error::from_raw_os_error(number);
            Err(LaunchError::Because(SpawnError::WorkingDirectory { path, source }))
        }
        Some(StartReport::Impossible(reason)) => Err(LaunchError::Because(SpawnError::Grants {
            program: file.display().to_string(),
            reason,
        })),
        Some(StartReport::Gone(reason)) => Ok(LaunchAttempt::Missing(reason)),
        Some(StartReport::Replaced(reason)) => Ok(LaunchAttempt::Replaced(reason)),
        Some(StartReport::Refused(missing)) => Err(LaunchError::Because(SpawnError::NotEnforced {
            program: file.display().to_string(),
            profile: confinement.profile,
            missing,
        })),
        Some(StartReport::Running(_)) | None => Err(because(io::Error::other(SILENT))),
    }
}

/// A relative path is relative to this process's directory, not to the helper's.
fn absolute_path(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

pub(crate) fn absolute(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().map(|path| absolute_path(path)).collect()
}

/// The error for a start that took too long.
pub(super) fn late(program: &Path, error: io::Error) -> SpawnError {
    if error.kind() != io::ErrorKind::TimedOut {
        return error.into();
    }
    SpawnError::Late { program: program.display().to_string(), limit: START_LIMIT }
}

/// Asks a helper whether it could withhold places, and waits up to this long for its answer. The outer error means that
/// it could not be asked.
pub(crate) fn probe(limit: Duration) -> io::Result<Result<(), String>> {
    let helper = jail::helper().ok_or(io::ErrorKind::NotFound)?;
    let argv = [plan::NAME, plan::VERSION, plan::PROBE].map(CString::new);
    let argv = argv.into_iter().collect::<Result<Vec<_>, _>>()?;
    let nowhere = File::options().read(true).write(true).open("/dev/null")?;
    let nowhere = above(nowhere.into(), FURTHER - 1)?;
    let request = Request {
        path: c"",
        argv: &argv,
        envp: &[],
        cwd: None,
        stdin: None,
        stdout: nowhere.as_fd(),
        stderr: nowhere.as_fd(),
        further: &[],
    };
    let begun = begin(&helper, &request, limit)??;
    waitid(WaitId::Pid(begun.process), WaitIdOptions::EXITED)?;
    match StartReport::from_text(&begun.text) {
        Some(StartReport::Running(_)) => Ok(Ok(())),
        Some(StartReport::Impossible(reason)) => Ok(Err(reason)),
        _ => Err(io::Error::other(SILENT)),
    }
}

/// A helper that has reported the result of its start.
struct StartedHelper {
    process: Pid,
    control: OwnedFd,
    text: String,
}

/// Starts a helper by its descriptor and waits up to this long for its report. The inner error is that of its start.
fn begin(
    helper: &Helper,
    request: &Request<'_>,
    limit: Duration,
) -> io::Result<io::Result<StartedHelper>> {
    let (control, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    let (report, reporter) = pipe_with(PipeFlags::CLOEXEC)?;
    // In the helper they have the numbers 3 to 5; the program's own descriptors follow.
    let count = i32::try_from(request.further.len()).unwrap_or(i32::MAX - FURTHER - OF_HELPER);
    let last = FURTHER + OF_HELPER - 1 + count;
    let (theirs, reporter) = (above(theirs, last)?, above(reporter, last)?);
    let file = helper.above(last)?;
    let path = CString::new(format!("/proc/self/fd/{}", FURTHER + OF_HELPER - 1))?;
    let further: Vec<_> = [theirs.as_fd(), reporter.as_fd(), file.as_fd()]
        .into_iter()
        .chain(request.further.iter().copied())
        .collect();
    let process = match spawn(&Request { path: &path, further: &further, ..*request }) {
        Ok(process) => process,
        Err(error) => return Ok(Err(error)),
    };
    drop((theirs, reporter));
    match read_report(&report, Instant::now() + limit) {
        Ok(Some(text)) => Ok(Ok(StartedHelper { process, control, text })),
        slow => {
            // Both end it: the first works even if it does not respond; the second also ends
            // everything it has started.
            let _ = kill_process(process, Signal::KILL);
            drop(control);
            reap_later(process);
            Err(slow.err().unwrap_or_else(|| io::ErrorKind::TimedOut.into()))
        }
    }
}

/// Reads the whole report; empty if it does not arrive in time.
fn read_report(report: &OwnedFd, deadline: Instant) -> io::Result<Option<String>> {
    let mut text = Vec::new();
    let mut chunk = [0; 1024];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec {
            tv_sec: left.as_secs().cast_signed(),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut [PollFd::new(report, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        match rustix::io::read(report, &mut chunk) {
            // The caller detects bytes that are not UTF-8, because they are not a valid report.
            Ok(0) => return Ok(Some(String::from_utf8_lossy(&text).into_owned())),
            Ok(count) => text.extend_from_slice(&chunk[..count]),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A process that waits for a file system ends only when that responds.
fn reap_later(process: Pid) {
    let reap = move || waitid(WaitId::Pid(process), WaitIdOptions::EXITED);
    // Without this thread, the process stays a zombie until this one ends.
    let _ = std::thread::Builder::new().name("toolcrib-reaper".to_owned()).spawn(reap);
}
