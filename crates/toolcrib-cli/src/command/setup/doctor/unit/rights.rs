//! Rights that a unit gives the service, and files that it reads.

use super::file::{Setting, in_effect};
use super::lists::{is_false, is_true};
use super::places::{Places, Writers};
use super::words::words;
use super::{Report, Shown};
use crate::command::setup::doctor::findings::FindingLevel;

/// Groups whose members are as good as root.
const ROOTS_GROUPS: [&str; 13] = [
    "0",
    "root",
    "docker",
    "lxd",
    "lxc",
    "incus",
    "incus-admin",
    "libvirt",
    "disk",
    "kmem",
    "shadow",
    "sudo",
    "wheel",
];
/// The capability that only opens ports below 1024.
const HARMLESS: &str = "CAP_NET_BIND_SERVICE";

/// Checks user, groups and capabilities.
pub(super) fn check(settings: &[Setting], report: &mut Report<'_>) {
    user(settings, report);
    let last = |key: &str| settings.iter().rev().find(|setting| setting.key == key);
    let more = in_effect(settings, "SupplementaryGroups");
    for setting in more.into_iter().chain(last("Group")) {
        if words(&setting.value).iter().any(|group| ROOTS_GROUPS.contains(&group.as_str())) {
            let says = "members of the group are as good as root, and trusted programs belong to it: promises 9 and 10 hold \
                        in part";
            let help = "remove the group";
            report.add(FindingLevel::Warning, &Shown::whole(setting), says, help);
        }
    }
    for setting in in_effect(settings, "AmbientCapabilities") {
        if words(&setting.value).iter().any(|name| name != HARMLESS) {
            let says = "the server and trusted programs get them: promises 9 and 10 hold in part";
            let help = "write `AmbientCapabilities=`";
            report.add(FindingLevel::Warning, &Shown::whole(setting), says, help);
        }
    }
    for setting in in_effect(settings, "SetCredential") {
        let name = setting.value.split(':').next().unwrap_or_default();
        let says = "every user of the machine can read the secret with `systemctl show`: promise 9 does not hold";
        let help = "use LoadCredential or LoadCredentialEncrypted";
        report.add(
            FindingLevel::Failure,
            &Shown::hiding(setting, &format!("{name}:…")),
            says,
            help,
        );
    }
    if let Some(mode) = last("StateDirectoryMode").filter(|mode| is_open(&mode.value)) {
        let says =
            "other users can read or change what the server stores: promises 9 and 10 hold in part";
        report.add(
            FindingLevel::Warning,
            &Shown::whole(mode),
            says,
            "write `StateDirectoryMode=0700`",
        );
    }
    if let Some(kill) = last("SendSIGKILL").filter(|kill| is_false(&kill.value)) {
        let says = "what does not end by itself outlives the server: promise 4 holds for confined programs only";
        report.add(FindingLevel::Warning, &Shown::whole(kill), says, "remove it");
    }
}

/// Checks the files and folders that decide what the server does.
pub(super) fn files(settings: &[Setting], places: &Places, report: &mut Report<'_>) {
    for setting in in_effect(settings, "EnvironmentFile") {
        let shown = Shown::whole(setting);
        let help = "name a file that only root writes";
        match places.writers(setting.value.trim_start_matches('-')) {
            Some(Writers::Tools) => {
                let says = "tools or other programs can write the file, which decides what the server loads and which \
                            settings it has: promise 10 does not hold";
                report.add(FindingLevel::Failure, &shown, says, help);
            }
            Some(Writers::Service) => {
                let says = "trusted programs can write the file, which decides what the server loads and which settings it \
                            has: promise 10 holds in part";
                report.add(FindingLevel::Warning, &shown, says, help);
            }
            None => {}
        }
    }
    for key in ["WorkingDirectory", "RootDirectory"] {
        let last = settings.iter().rev().find(|setting| setting.key == key);
        let Some(setting) = last.filter(|setting| !setting.value.is_empty()) else { continue };
        if places.writers(setting.value.trim_start_matches('-')) == Some(Writers::Tools) {
            let says = "tools or other programs can write there, and the server looks there for its config and for what \
                        relative paths name: promise 10 holds in part";
            let help = "name a folder that only root writes, such as /etc/toolcrib";
            report.add(FindingLevel::Warning, &Shown::whole(setting), says, help);
        }
    }
}

/// Programs as root can inspect the server.
fn user(settings: &[Setting], report: &mut Report<'_>) {
    let started = in_effect(settings, "ExecStart");
    let Some(command) = started.last() else {
        // A drop-in alone.
        return;
    };
    let last = |key: &str| settings.iter().rev().find(|setting| setting.key == key);
    let says = "the server runs as root, and trusted programs as root can inspect any process: promise 9 holds in part";
    let help = "write `User=toolcrib`, or `DynamicUser=yes`";
    match last("User") {
        Some(user) if ["root", "0", ""].contains(&user.value.as_str()) => {
            report.add(FindingLevel::Warning, &Shown::whole(user), says, help);
        }
        None if !last("DynamicUser").is_some_and(|dynamic| is_true(&dynamic.value)) => {
            report.add(FindingLevel::Warning, &Shown::hiding(command, "…"), says, help);
        }
        _ => {}
    }
}

/// Whether a mode lets other users read or write.
fn is_open(mode: &str) -> bool {
    u32::from_str_radix(mode, 8).is_ok_and(|mode| mode & 0o026 != 0)
}
