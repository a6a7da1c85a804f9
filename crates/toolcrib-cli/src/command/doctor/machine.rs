//! The machine: what is needed to end what tools start, and what of the profiles it enforces.

use std::fs;
use std::time::Duration;

use toolcrib_sandbox::{
    Command, Confinement, Enforced, KillRung, Profile, Require, SpawnError, run_blocking,
};

use super::Findings;

/// The oldest kernel whose processes can be held by a descriptor.
const KERNEL: (u32, u32) = (5, 4);

/// How long a program that does nothing may take, on a busy machine.
const TRIAL: Duration = Duration::from_secs(10);

pub(super) fn look(findings: &mut Findings) {
    kernel(findings);
    process_table(findings);
    scratch(findings);
    user(findings);
    confinement(findings);
}

fn kernel(findings: &mut Findings) {
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

fn user(findings: &mut Findings) {
    let status = read("/proc/self/status");
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    match ids.and_then(|ids| ids.split_whitespace().nth(1)) {
        Some("0") => findings.warn(
            "user",
            "this is root, and so is every trusted program; confined ones lose its capabilities",
            "run the server as a user that may little",
        ),
        Some(id) => findings.good("user", format!("not root (user id {id})")),
        None => findings.note("user", "the user cannot be told here"),
    }
}

/// What holds of each profile, found out by starting a program that does nothing under it.
fn confinement(findings: &mut Findings) {
    for (about, profile) in [
        ("pure", Profile::Pure),
        ("workspace", Profile::Workspace),
        ("workspace+net", Profile::WorkspaceNet),
    ] {
        let confinement = Confinement::new(profile).require(Require::BestEffort);
        match run_blocking(Command::new("true").confine(confinement), TRIAL) {
            Ok(finished) => promises(about, &finished.enforced, findings),
            Err(error @ SpawnError::NoHelper { .. }) => findings.fail(
                about,
                error.to_string(),
                "only tools that declare `sandbox: {profile: trusted}` run here",
            ),
            Err(error) => findings.fail(
                about,
                format!("no program can be started under it: {error}"),
                "only tools that declare `sandbox: {profile: trusted}` run here",
            ),
        }
    }
}

/// Whether a confined program is held to its profile here, and nothing of it outlives its call.
fn promises(about: &'static str, enforced: &Enforced, findings: &mut Findings) {
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
            "tools that require it are refused; the others say in their results what held them",
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
