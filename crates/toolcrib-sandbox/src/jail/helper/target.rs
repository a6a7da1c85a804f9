//! The process that becomes the program: it builds the jail around itself, then loads the program.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, chdir, fchdir, getppid, getrlimit,
    set_parent_process_death_signal, setrlimit, setsid,
};

use super::plan::{Access, KernelFeature, Plan};
use super::privileges;
use super::report::{BuiltJail, HelperStep, failure, gone, impossible, refusal, replaced};
use crate::jail::files::mounts;
use crate::jail::files::mounts::MountNamespace;
use crate::jail::files::opened::{OpenFailure, PlanOpener};
use crate::jail::files::resolve::{FoundFile, resolve_path};
use crate::jail::files::withheld::WithholdError;
use crate::jail::filter::syscalls;
use crate::jail::helper::tree::TreeHold;
use crate::jail::{files, withheld_by};
use crate::process::sys;
use crate::{Profile, Require};

/// The first Landlock version that can deny opening, renaming and truncating everything that is not
/// granted.
pub(crate) const FLOOR: u32 = 3;

/// Becomes the program that these arguments name: its file, then its argument vector. It returns
/// only after it has reported a failure.
pub(in crate::jail) fn become_program(
    plan: &Plan,
    hold: &TreeHold,
    words: &[OsString],
    supervisor: Option<Pid>,
    mut report: std::fs::File,
) {
    let text = match build(plan, hold, words, supervisor, &mut report) {
        Ok(never) => match never {},
        Err(TargetError::Step(step, error)) => failure(step, &error),
        Err(TargetError::Refused(missing)) => refusal(&missing),
        Err(
            TargetError::Impossible(reason)
            | TargetError::WithheldPlaces(WithholdError::Because(reason)),
        ) => impossible(&reason),
        Err(TargetError::WithheldPlaces(WithholdError::Missing(reason))) => gone(&reason),
        Err(TargetError::WithheldPlaces(WithholdError::Replaced(reason))) => replaced(&reason),
    };
    // The other end is closed, so this cannot be reported.
    let _ = report.write_all(text.as_bytes());
}

enum TargetError {
    Step(HelperStep, io::Error),
    Refused(Vec<String>),
    Impossible(String),
    WithheldPlaces(WithholdError),
}

impl From<io::Error> for TargetError {
    fn from(error: io::Error) -> Self {
        Self::Step(HelperStep::Jail, error)
    }
}

fn build(
    plan: &Plan,
    hold: &TreeHold,
    words: &[OsString],
    supervisor: Option<Pid>,
    report: &mut std::fs::File,
) -> Result<Infallible, TargetError> {
    let jail = |error| TargetError::Step(HelperStep::Jail, error);
    let [file, arguments @ ..] = words else {
        return Err(jail(io::ErrorKind::InvalidInput.into()));
    };
    hold.join().map_err(|error| TargetError::Step(HelperStep::Rung, error))?;
    setsid().map_err(|error| jail(error.into()))?;
    // The supervisor has one thread, so it ends when this thread ends.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| jail(error.into()))?;
    if getppid() != supervisor {
        return Err(jail(io::ErrorKind::BrokenPipe.into()));
    }

    // Processes that already exist are not visible from inside the namespace.
    let processes = plan.limits.processes.and_then(|most| hold.processes(most));
    let mounted = mount(plan)?;
    if mounted.namespace {
        // A new user namespace resets the parent-death signal.
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| jail(error.into()))?;
    }
    let opener = PlanOpener::new(plan);
    enter_directory(plan, &opener, mounted)?;
    let landlock = files::restrict(plan, grants(plan, &opener))?;
    privileges::drop_all().map_err(jail)?;
    limit(plan, processes).map_err(jail)?;
    let syscalls = syscalls::restrict(plan).map_err(jail)?;
    let built = BuiltJail {
        landlock,
        syscalls,
        privileges: true,
        withheld: mounted.withheld,
        missing: missing(plan, landlock, syscalls),
    };
    if plan.require == Require::Required && !built.missing.is_empty() {
        return Err(TargetError::Refused(built.missing));
    }
    report.write_all(built.to_text().as_bytes()).map_err(jail)?;
    Err(TargetError::Step(HelperStep::Execute, sys::execute(file, arguments)))
}

/// The properties of the program's mount namespace.
#[derive(Debug, Clone, Copy, Default)]
struct MountResult {
    /// Whether the program has its own.
    namespace: bool,
    /// Whether it covers withheld places.
    withheld: bool,
}

/// Covers withheld places that the grants contain, and makes everything read-only that the program
/// may not write.
fn mount(plan: &Plan) -> Result<MountResult, TargetError> {
    let mounts = withheld_by(plan).mounts(&plan.grants).map_err(TargetError::WithheldPlaces)?;
    let withheld = !mounts.is_empty();
    // For `pure`, the system call filter already prevents changes of modes and times.
    let writable = if plan.profile == Profile::Pure { None } else { writable(plan) };
    if plan.lacks(KernelFeature::Namespaces) {
        if withheld {
            return Err(TargetError::Impossible(mounts::without_namespaces()));
        }
        return Ok(MountResult::default());
    }
    if withheld {
        mounts::enter().map_err(TargetError::Impossible)?;
    } else if writable.is_none() || mounts::try_to_enter() == MountNamespace::No {
        return Ok(MountResult::default());
    }
    if let Some(writable) = writable {
        mounts::write_only_in(&writable).map_err(TargetError::Impossible)?;
    }
    if withheld {
        mounts::withhold(&mounts).map_err(TargetError::WithheldPlaces)?;
    }
    Ok(MountResult { namespace: true, withheld })
}

/// The places that the program may write, without those inside another one; empty if it may write everything.
fn writable(plan: &Plan) -> Option<Vec<PathBuf>> {
    let mut places = Vec::new();
    for (_, path) in plan.grants.iter().filter(|(access, _)| *access == Access::Write) {
        let Ok(FoundFile { kind, way, .. }) = resolve_path(path) else { continue };
        // Writing to a device does not change its file system.
        if matches!(kind, FileType::Directory | FileType::RegularFile) {
            places.push(way.path(way.ids().len().saturating_sub(1)));
        }
    }
    places.sort_unstable();
    let mut outermost: Vec<PathBuf> = Vec::new();
    for place in places {
        if !outermost.last().is_some_and(|last| place.starts_with(last)) {
            outermost.push(place);
        }
    }
    outermost.iter().all(|place| place.parent().is_some()).then_some(outermost)
}

/// Enters the program's working directory. Descriptors from before bypass the mounts.
fn enter_directory(
    plan: &Plan,
    opener: &PlanOpener,
    mounted: MountResult,
) -> Result<(), TargetError> {
    let failed = |error: Errno| TargetError::Step(HelperStep::Directory, error.into());
    let Some(directory) = &plan.directory else {
        return if mounted.namespace { chdir("/").map_err(failed) } else { Ok(()) };
    };
    let directory = opener.open(directory).map_err(|error| match error {
        OpenFailure::Because(error) => failed(error),
        OpenFailure::Link(reason) => {
            TargetError::Impossible(format!("its working directory {reason}"))
        }
    })?;
    fchdir(&directory).map_err(failed)
}

/// The granted places that exist, each opened on demand.
fn grants(
    plan: &Plan,
    opener: &PlanOpener,
) -> impl Iterator<Item = Result<(Access, OwnedFd), TargetError>> {
    plan.grants.iter().filter_map(|(access, path)| match opener.open(path) {
        Ok(file) => Some(Ok((*access, file))),
        Err(OpenFailure::Because(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM))) => {
            Some(Err(io::Error::from(error).into()))
        }
        // A missing place cannot be granted, and an inaccessible one could not be used.
        Err(OpenFailure::Because(_)) => None,
        Err(OpenFailure::Link(reason)) => {
            Some(Err(TargetError::Impossible(format!("its grant {reason}"))))
        }
    })
}

/// Guarantees of the profile that this kernel does not support.
fn missing(plan: &Plan, landlock: Option<u32>, syscalls: bool) -> Vec<String> {
    let mut missing = Vec::new();
    match landlock {
        Some(version) if version >= FLOOR => {}
        Some(version) => missing.push(format!(
            "files: version {version} of Landlock does not keep them from being truncated or moved \
             (Linux 6.2 does)"
        )),
        None => {
            missing.push("files: this kernel has no Landlock, or it is switched off".to_owned());
        }
    }
    if !syscalls {
        let without = "this kernel has no seccomp filters";
        missing.push(format!("syscalls: {without}"));
        if plan.profile != Profile::WorkspaceNet {
            missing.push(format!("network: {without}"));
        }
    }
    missing
}

fn limit(plan: &Plan, processes: Option<u64>) -> io::Result<()> {
    let limits = &plan.limits;
    let cpu = limits.cpu.map(|cpu| cpu.as_secs());
    // Node.js, Go and Java reserve far more address space than they ever use.
    let memory = if plan.profile == Profile::Pure { Resource::As } else { Resource::Data };
    for (resource, limit) in [
        (Resource::Core, Some(0)),
        (Resource::Cpu, cpu),
        (Resource::Fsize, limits.file_size),
        (Resource::Nproc, processes),
        (Resource::Nofile, limits.open_files),
        // This comes last, because the process may need more resources until here.
        (memory, limits.memory),
    ] {
        let Some(limit) = limit else { continue };
        let most = getrlimit(resource).maximum.map_or(limit, |maximum| maximum.min(limit));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}
