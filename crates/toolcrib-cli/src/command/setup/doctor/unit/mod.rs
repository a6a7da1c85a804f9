//! `doctor --unit`: the lines of a systemd unit that take a promise away from the server it starts.

mod calls;
mod file;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::findings::{FindingLevel, Findings};
use calls::CallFilter;
use file::Setting;

/// How long running calls have to end, and some time for everything else.
const STOP_SECONDS: u64 = 8;

/// Reads the unit and its drop-ins, in the order in which systemd applies them, and checks what they say together.
pub(super) fn look(paths: &[PathBuf], findings: &mut Findings) -> anyhow::Result<()> {
    findings.section("Unit");
    let mut settings = Vec::new();
    for path in paths {
        settings.extend(file::settings(&path.to_string_lossy(), &text(path)?));
    }
    if settings.is_empty() {
        anyhow::bail!(
            "there is no section [Service] with settings: this is not the unit of a service"
        );
    }
    check(&settings, findings);
    Ok(())
}

fn text(path: &Path) -> anyhow::Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("reading standard input")?;
        return Ok(text);
    }
    std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

fn check(settings: &[Setting], findings: &mut Findings) {
    let before = findings.list.len();
    let mut filter = CallFilter::default();
    for setting in settings {
        match setting.key.as_str() {
            "SystemCallFilter" => filter.apply(setting),
            "SystemCallErrorNumber" => filter.answers_with_an_error(!setting.value.is_empty()),
            "Environment" => environment(setting, findings),
            "ExecStart" => command(setting, findings),
            _ => {}
        }
    }
    filter.check(findings);
    // Of other settings the last value counts.
    let last = |key: &str| settings.iter().rev().find(|setting| setting.key == key);
    if let Some(subset) = last("ProcSubset").filter(|subset| subset.value == "pid") {
        let says = "without the rest of /proc, programs that leave their group are not found: promise 4 does not hold";
        report(
            findings,
            FindingLevel::Failure,
            subset,
            says,
            "remove it, or write `ProcSubset=all`",
        );
    }
    if let Some(spaces) =
        last("RestrictNamespaces").filter(|spaces| forbids_namespaces(&spaces.value))
    {
        let says = "programs cannot have a PID namespace: promise 4 holds one rung lower, a program that has fled its \
                    call is found and ended up to a second after it";
        report(
            findings,
            FindingLevel::Warning,
            spaces,
            says,
            "write `RestrictNamespaces=user pid`",
        );
    }
    if let Some(mode) = last("KillMode").filter(|mode| ["process", "none"].contains(&&*mode.value))
    {
        let says = "what the server leaves behind is not ended with it: promise 4 holds for confined programs only";
        report(findings, FindingLevel::Warning, mode, says, "write `KillMode=mixed`");
    }
    if let Some(deny) = last("MemoryDenyWriteExecute").filter(|deny| is_true(&deny.value)) {
        let says = "programs that compile while they run, such as node and most of its MCP servers, do not start";
        report(findings, FindingLevel::Note, deny, says, "remove it if tools need such programs");
    }
    if let Some(families) =
        last("RestrictAddressFamilies").filter(|families| lacks_unix(&families.value))
    {
        let says = "without AF_UNIX `toolcrib status`, `approvals` and `reload` do not reach the server, and systemd \
                    does not learn that it is ready";
        report(findings, FindingLevel::Failure, families, says, "add AF_UNIX");
    }
    if let Some(stop) = last("TimeoutStopSec").filter(|stop| is_less_than_the_drain(&stop.value)) {
        let says = "running calls have 5 s to end before the server does; this kills them earlier";
        report(findings, FindingLevel::Warning, stop, says, "allow 10 s or more");
    }
    user(settings, findings);
    if findings.list[before..].iter().all(|finding| finding.verdict == FindingLevel::Note) {
        findings.good("unit", "no line of it takes a promise away");
    }
}

/// Programs as root can inspect the server.
fn user(settings: &[Setting], findings: &mut Findings) {
    let Some(command) = settings.iter().find(|setting| setting.key == "ExecStart") else {
        // A drop-in alone.
        return;
    };
    let last = |key: &str| settings.iter().rev().find(|setting| setting.key == key);
    let says = "the server runs as root, and trusted programs as root can inspect any process: promise 9 holds in part";
    let help = "write `User=toolcrib`, or `DynamicUser=yes`";
    match last("User") {
        Some(user) if ["root", "0", ""].contains(&user.value.as_str()) => {
            report(findings, FindingLevel::Warning, user, says, help);
        }
        None if !last("DynamicUser").is_some_and(|dynamic| is_true(&dynamic.value)) => {
            report(findings, FindingLevel::Warning, command, says, help);
        }
        _ => {}
    }
}

/// Everybody may read the environment in a unit.
fn environment(setting: &Setting, findings: &mut Findings) {
    let shows = ["TOOLCRIB_TOKEN=", "TOOLCRIB__SERVER__TOKEN="];
    if shows.iter().any(|variable| setting.value.contains(variable)) {
        shown_token(setting, findings);
    }
}

fn command(setting: &Setting, findings: &mut Findings) {
    let words: Vec<&str> = setting.value.split_whitespace().collect();
    if words.iter().any(|word| *word == "--token" || word.starts_with("--token=")) {
        shown_token(setting, findings);
    }
    if words.contains(&"--no-auth") {
        let says = "no token is required: promise 7 holds in part";
        report(findings, FindingLevel::Warning, setting, says, "remove `--no-auth`");
    }
    let listen =
        words.iter().enumerate().find_map(|(at, word)| match word.strip_prefix("--listen") {
            Some("") => words.get(at + 1).copied(),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        });
    let listen = listen.and_then(|listen| listen.parse::<toolcrib::http::Listen>().ok());
    if listen.is_some_and(|listen| !listen.is_local()) {
        let says = "other machines can reach the server, which has no TLS: promise 7 holds in part";
        let help = "listen on 127.0.0.1 behind a proxy with TLS";
        report(findings, FindingLevel::Warning, setting, says, help);
    }
}

fn shown_token(setting: &Setting, findings: &mut Findings) {
    let says = "every user of the machine can read the token with `systemctl show`: promise 9 does not hold";
    let help =
        "put the hash of a token into the config (`toolcrib token NAME`), or use LoadCredential";
    report(findings, FindingLevel::Failure, setting, says, help);
}

fn report(
    findings: &mut Findings,
    level: FindingLevel,
    setting: &Setting,
    says: &str,
    help: &'static str,
) {
    let Setting { place, key, value } = setting;
    findings.trouble(level, "unit", format!("{place}: `{key}={value}`: {says}"), help);
}

fn is_true(value: &str) -> bool {
    ["yes", "true", "on", "1"].contains(&value.to_lowercase().as_str())
}

/// Whether programs cannot make a user and a PID namespace.
fn forbids_namespaces(value: &str) -> bool {
    if is_true(value) {
        return true;
    }
    if value.is_empty() || ["no", "false", "off", "0"].contains(&value.to_lowercase().as_str()) {
        return false;
    }
    let (denied, names) = match value.strip_prefix('~') {
        Some(names) => (true, names),
        None => (false, value),
    };
    let names: Vec<&str> = names.split_whitespace().collect();
    ["user", "pid"].iter().any(|needed| names.contains(needed) == denied)
}

fn lacks_unix(value: &str) -> bool {
    match value.strip_prefix('~') {
        Some(denied) => denied.split_whitespace().any(|name| name == "AF_UNIX"),
        None if value == "none" => true,
        None => !value.is_empty() && !value.split_whitespace().any(|name| name == "AF_UNIX"),
    }
}

/// Only plain numbers of seconds are judged; longer texts mean longer times.
fn is_less_than_the_drain(value: &str) -> bool {
    let number = value.strip_suffix('s').unwrap_or(value).trim();
    number.parse::<u64>().is_ok_and(|seconds| seconds > 0 && seconds < STOP_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The levels and texts about a unit with these lines.
    fn found(lines: &str) -> Vec<(FindingLevel, String)> {
        let mut findings = Findings::default();
        check(&file::settings("own.conf", &format!("[Service]\n{lines}\n")), &mut findings);
        findings.list.into_iter().map(|finding| (finding.verdict, finding.says)).collect()
    }

    #[test]
    fn each_line_that_takes_a_promise_away_is_named() {
        use FindingLevel::{Failure, Note, Warning};
        for (line, level, why) in [
            ("SystemCallFilter=@system-service", Failure, "no confined program starts"),
            ("SystemCallFilter=~@privileged @resources", Failure, "no confined program starts"),
            ("RestrictNamespaces=yes", Warning, "one rung lower"),
            ("RestrictNamespaces=~user", Warning, "one rung lower"),
            ("ProcSubset=pid", Failure, "promise 4 does not hold"),
            ("KillMode=process", Warning, "promise 4"),
            ("MemoryDenyWriteExecute=true", Note, "node"),
            ("RestrictAddressFamilies=AF_INET AF_INET6", Failure, "AF_UNIX"),
            ("TimeoutStopSec=2s", Warning, "5 s"),
            ("Environment=TOOLCRIB_TOKEN=abc", Failure, "promise 9"),
            ("ExecStart=/usr/bin/toolcrib serve\nUser=root", Warning, "root"),
            ("User=a\nExecStart=/usr/bin/toolcrib serve --no-auth", Warning, "promise 7"),
            ("User=a\nExecStart=/usr/bin/toolcrib serve --listen 0.0.0.0:80", Warning, "no TLS"),
        ] {
            let found = found(line);
            let is_named = |(verdict, says): &(FindingLevel, String)| {
                *verdict == level && says.starts_with("own.conf:") && says.contains(why)
            };
            assert!(found.iter().any(is_named), "{line}: {found:?}");
        }
    }

    #[test]
    fn what_takes_nothing_away_is_not_reported() {
        for lines in [
            "User=a\nExecStart=/usr/bin/toolcrib serve --listen 127.0.0.1:80",
            "RestrictNamespaces=user pid\nProcSubset=all\nKillMode=mixed",
            "RestrictNamespaces=yes\nRestrictNamespaces=no",
            "RestrictAddressFamilies=AF_UNIX AF_INET\nTimeoutStopSec=15",
            "TimeoutStopSec=1min\nDynamicUser=yes\nExecStart=/usr/bin/toolcrib serve",
        ] {
            let found = found(lines);
            assert!(
                found.iter().all(|(level, _)| *level == FindingLevel::Good),
                "{lines}: {found:?}"
            );
        }
    }
}
