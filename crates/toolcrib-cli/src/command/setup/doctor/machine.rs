//! The machine: what is needed to end what tools start, and what of the profiles it enforces.

use std::fs;
use std::time::Duration;

use toolcrib_sandbox::{
    Command, Confinement, Enforced, KillRung, Profile, Require, STARTS_PROGRAMS, SpawnError,
    run_blocking,
};

use super::findings::Findings;

/// The oldest kernel whose processes can be held by a descriptor.
const KERNEL: (u32, u32) = (5, 4);

/// How long a program that does nothing may take, on a busy machine.
const TRIAL: Duration = Duration::from_secs(10);

/// What promises depend on.
#[derive(Debug)]
pub(super) struct Machine {
    /// Whether a process can be held by a descriptor, if one is started.
    pub(super) holds_processes: bool,
    /// Whether a server can keep what it knows from other programs of its user.
    pub(super) closes_to_others: bool,
    pub(super) is_root: bool,
    /// What holds programs under these profiles, or why none can be started.
    pub(super) pure: Result<Enforced, String>,
    pub(super) workspace: Result<Enforced, String>,
}

pub(super) fn look(findings: &mut Findings) -> Machine {
    if !STARTS_PROGRAMS {
        return without_programs(findings);
    }
    let holds_processes = kernel(findings);
    process_table(findings);
    scratch(findings);
    let is_root = user(findings);
    let pure = confinement(Profile::Pure, findings);
    let workspace = confinement(Profile::Workspace, findings);
    let _ = confinement(Profile::WorkspaceNet, findings);
    Machine { holds_processes, closes_to_others: true, is_root, pure, workspace }
}

/// A system on which no program is started.
pub(super) fn without_programs(findings: &mut Findings) -> Machine {
    let why = "no program is started on this system, which has nothing to hold it by";
    let help =
        "tools that are compiled in work, those of files too; run the others on Linux (glibc)";
    findings.fail("programs", why, help);
    let none = || Err(why.to_owned());
    Machine {
        holds_processes: true,
        closes_to_others: false,
        is_root: user(findings),
        pure: none(),
        workspace: none(),
    }
}

fn kernel(findings: &mut Findings) -> bool {
    let release = read("/proc/sys/kernel/osrelease");
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version >= KERNEL {
        findings.good("kernel", format!("Linux {release}: programs are ended with their calls"));
    } else {
        let (major, minor) = KERNEL;
        findings.fail(
            "kernel",
            format!("Linux {release}: command tools need {major}.{minor} or newer"),
            "their programs cannot be ended safely here",
        );
    }
    version >= KERNEL
}

fn process_table(findings: &mut Findings) {
    if fs::read("/proc/self/environ").is_ok() {
        findings.good("processes", "/proc is readable: what leaves its process group is found");
    } else {
        findings.fail(
            "processes",
            "/proc cannot be read: a process that leaves its group outlives its call",
            "mount /proc where the server runs",
        );
    }
}

fn scratch(findings: &mut Findings) {
    let temporary = std::env::temp_dir();
    let dir = temporary.join(format!("toolcrib-doctor-{}", std::process::id()));
    match fs::create_dir(&dir).and_then(|()| fs::remove_dir(&dir)) {
        Ok(()) => findings.good(
            "scratch",
            format!("each call of a command gets a home of its own in {}", temporary.display()),
        ),
        Err(error) => findings.fail(
            "scratch",
            format!("{}: {error}: command tools cannot start", temporary.display()),
            "set TMPDIR to a directory that the server may write to",
        ),
    }
}

fn user(findings: &mut Findings) -> bool {
    let status = read("/proc/self/status");
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let effective = ids.and_then(|ids| ids.split_whitespace().nth(1));
    match effective {
        Some("0") => findings.warn(
            "user",
            "this is root, and so is every trusted program; confined ones lose its capabilities",
            "run the server as a user with few rights",
        ),
        Some(id) => findings.good("user", format!("not root (user id {id})")),
        None => findings.note("user", "the user cannot be told here"),
    }
    effective == Some("0")
}

/// What holds of a profile, found out by starting a program that does nothing under it.
fn confinement(profile: Profile, findings: &mut Findings) -> Result<Enforced, String> {
    let about = profile.as_str();
    let confinement = Confinement::new(profile).require(Require::BestEffort);
    let why = match run_blocking(Command::new("true").confine(confinement), TRIAL) {
        Ok(finished) => {
            held(about, &finished.enforced, findings);
            return Ok(finished.enforced);
        }
        Err(error @ SpawnError::NoHelper { .. }) => error.to_string(),
        Err(error) => format!("no program can be started under it: {error}"),
    };
    let help = "only tools that declare `sandbox: {profile: trusted}` run here";
    findings.fail(about, why.as_str(), help);
    Err(why)
}

/// Whether a confined program is held to its profile here, and nothing of it outlives its call.
fn held(about: &'static str, enforced: &Enforced, findings: &mut Findings) {
    let held: Vec<_> = enforced.held().collect();
    let ended = match enforced.processes {
        KillRung::PidNamespace => "nothing outlives a call (a PID namespace)",
        KillRung::Cgroup => "nothing outlives a call (a control group)",
        KillRung::SealedGroup => "nothing outlives a call (a process group that nobody can leave)",
        KillRung::Subreaper => "what a call leaves behind is found and ended",
        _ => "what leaves its process group may outlive a call",
    };
    let says = format!("the kernel holds programs to it ({}); {ended}", held.join(", "));
    if !enforced.is_complete() {
        findings.warn(
            about,
            format!(
                "held to: {}; not held: {}; {ended}",
                held.join(", "),
                enforced.missing.join("; ")
            ),
            "programs that need it are refused; with `sandbox.require: best_effort` in the config \
             they run under what there is, and their results say what that was",
        );
    } else if enforced.processes == KillRung::ProcessGroup {
        findings.warn(about, says, "allow user namespaces, or mount /proc where the server runs");
    } else {
        findings.good(about, says);
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}
