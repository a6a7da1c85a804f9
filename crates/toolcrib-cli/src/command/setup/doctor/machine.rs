//! The machine: whether processes of tools can be ended, and which parts of confinement profiles
//! are enforced.

use std::fs;
use std::time::Duration;

use toolcrib_sandbox::{
    Command, Confinement, Enforced, KillRung, Profile, Require, STARTS_PROGRAMS, SpawnError,
    run_blocking, scratch_folder,
};

use super::findings::Findings;

/// The oldest kernel with usable pidfds.
const KERNEL: (u32, u32) = (5, 4);

/// How long a program that does nothing may take on a busy machine.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// The properties of the machine that promises depend on.
#[derive(Debug)]
pub(super) struct Machine {
    /// Whether a started process can be controlled through a pidfd.
    pub(super) holds_processes: bool,
    /// Whether a server can protect its memory from other programs of its user.
    pub(super) closes_to_others: bool,
    pub(super) is_root: bool,
    /// What confines programs under these profiles, or why none can be started.
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
    let why = "no program is started on this system, because it could not be ended safely";
    let help = "compiled-in tools and file tools work; run the others on Linux (glibc)";
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
        findings.good("processes", "/proc is readable: processes that leave their group are found");
    } else {
        findings.fail(
            "processes",
            "/proc cannot be read: a process that leaves its group outlives its call",
            "mount /proc where the server runs",
        );
    }
}

fn scratch(findings: &mut Findings) {
    match scratch_folder() {
        Ok(folder) => findings.good(
            "scratch",
            format!("each call of a command gets a home of its own in {}", folder.display()),
        ),
        Err(error) => findings.fail(
            "scratch",
            format!("{error}: command tools cannot start"),
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
            "the server would be root, and so would every trusted program; confined programs lose root's capabilities",
            "run the server as a user with few rights",
        ),
        Some(id) => findings.good("user", format!("not root (user id {id})")),
        None => findings.note("user", "the user cannot be determined here"),
    }
    effective == Some("0")
}

/// Tests how far a profile is enforced, by starting a program under it that does nothing.
fn confinement(profile: Profile, findings: &mut Findings) -> Result<Enforced, String> {
    let about = profile.as_str();
    let confinement = Confinement::new(profile).require(Require::BestEffort);
    let why = match run_blocking(Command::new("true").confine(confinement), TRIAL_TIMEOUT) {
        Ok(finished) => {
            report_enforcement(about, &finished.enforced, findings);
            return Ok(finished.enforced);
        }
        Err(error @ SpawnError::NoHelper { .. }) => error.to_string(),
        Err(error) => format!("no program can be started under this profile: {error}"),
    };
    let help = "only tools that declare `sandbox: {profile: trusted}` run here";
    findings.fail(about, why.as_str(), help);
    Err(why)
}

/// Reports whether a confined program is confined as declared here, and whether it can outlive its
/// call.
fn report_enforcement(about: &'static str, enforced: &Enforced, findings: &mut Findings) {
    let held: Vec<_> = enforced.held().collect();
    let ended = match enforced.processes {
        KillRung::PidNamespace => "no process outlives a call (PID namespace)",
        KillRung::Cgroup => "no process outlives a call (control group)",
        KillRung::SealedGroup => "no process outlives a call (sealed process group)",
        KillRung::Subreaper => "processes that a call leaves behind are found and ended",
        _ => "processes that leave their group may outlive a call",
    };
    let says = format!("the kernel enforces it ({}); {ended}", held.join(", "));
    if !enforced.is_complete() {
        findings.warn(
            about,
            format!(
                "enforced: {}; not enforced: {}; {ended}",
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
