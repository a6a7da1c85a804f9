//! The machine: what is needed to end what tools start, and what the kernel could confine.

use std::fs;
use std::path::Path;

use super::Findings;

/// The oldest kernel whose processes can be held by a descriptor.
const KERNEL: (u32, u32) = (5, 4);

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
            "this is root, and so is every program that a tool runs",
            "run the server as a user that may little",
        ),
        Some(id) => findings.good("user", format!("not root (user id {id})")),
        None => findings.note("user", "the user cannot be told here"),
    }
}

/// What the kernel offers. This version uses none of it, and says so.
fn confinement(findings: &mut Findings) {
    let modules = read("/sys/kernel/security/lsm");
    let namespaces = read("/proc/sys/user/max_user_namespaces");
    let offers = [
        ("Landlock", modules.split(',').any(|module| module == "landlock")),
        ("seccomp", Path::new("/proc/sys/kernel/seccomp").exists()),
        ("user namespaces", namespaces.parse().is_ok_and(|most: u64| most > 0)),
        ("control groups v2", Path::new("/sys/fs/cgroup/cgroup.controllers").exists()),
    ];
    let here: Vec<_> = offers.iter().filter(|(_, here)| *here).map(|(name, _)| *name).collect();
    let offered = if here.is_empty() { "nothing".to_owned() } else { here.join(", ") };
    findings.warn(
        "confinement",
        format!("none: programs may do what this user may (the kernel offers {offered})"),
        "this version confines no programs; see \"What is not there yet\" in SECURITY.md",
    );
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}
