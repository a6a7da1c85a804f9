//! `doctor --unit`: the lines of a systemd unit that take a promise away from the server it starts.

mod calls;
mod environment;
mod file;
mod lists;
mod overrides;
mod places;
mod programs;
mod rights;
mod words;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::findings::{FindingLevel, Findings};
use calls::CallFilter;
use file::{Place, Setting};
use lists::is_true;
use places::Places;

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

/// A part of a line, as findings show it.
struct Shown<'a> {
    place: &'a Place,
    text: String,
}

impl<'a> Shown<'a> {
    /// The whole line, where its value is no secret.
    fn whole(setting: &'a Setting) -> Self {
        Self::hiding(setting, &setting.value)
    }

    /// The line with this in the place of its value.
    fn hiding(setting: &'a Setting, value: &str) -> Self {
        Self { place: &setting.place, text: format!("{}={value}", setting.key) }
    }
}

/// Where findings about lines go.
struct Report<'a> {
    findings: &'a mut Findings,
}

impl Report<'_> {
    fn add(&mut self, level: FindingLevel, shown: &Shown<'_>, says: &str, help: &'static str) {
        let Shown { place, text } = shown;
        self.findings.trouble(level, "unit", format!("{place}: `{text}`: {says}"), help);
    }
}

fn check(settings: &[Setting], findings: &mut Findings) {
    let before = findings.list.len();
    let mut filter = CallFilter::default();
    for setting in settings {
        match setting.key.as_str() {
            "SystemCallFilter" => filter.apply(setting),
            "SystemCallErrorNumber" => filter.answers_with_an_error(!setting.value.is_empty()),
            _ => {}
        }
    }
    filter.check(findings);
    let places = Places::of(settings, &programs::workspaces(settings));
    let mut report = Report { findings: &mut *findings };
    environment::check(settings, &places, &mut report);
    programs::check(settings, &places, &mut report);
    processes(settings, &mut report);
    rights::files(settings, &places, &mut report);
    rights::check(settings, &mut report);
    if findings.list[before..].iter().all(|finding| finding.verdict == FindingLevel::Note) {
        findings.good("unit", "no line of it takes a promise away");
    }
}

/// Checks what confining and ending programs takes.
fn processes(settings: &[Setting], report: &mut Report<'_>) {
    let mut add = |level, setting: &Setting, says: &str, help| {
        report.add(level, &Shown::whole(setting), says, help);
    };
    // Of these settings the last value counts.
    let last = |key: &str| settings.iter().rev().find(|setting| setting.key == key);
    if let Some(subset) = last("ProcSubset").filter(|subset| subset.value == "pid") {
        let says = "without the rest of /proc, programs that leave their group are not found: promise 4 does not hold";
        let help = "remove it, or write `ProcSubset=all`";
        add(FindingLevel::Failure, subset, says, help);
    }
    for hidden in file::in_effect(settings, "InaccessiblePaths") {
        let paths = words::words(&hidden.value);
        if paths
            .iter()
            .any(|path| path.trim_start_matches(['-', '+']).trim_end_matches('/') == "/proc")
        {
            let says = "without /proc, programs that leave their group are not found: promise 4 does not hold";
            add(FindingLevel::Failure, hidden, says, "remove it");
        }
    }
    if let Some(spaces) = lists::forbidden_namespaces(settings) {
        let says = "programs cannot have a PID namespace: promise 4 holds one rung lower, a program that has fled its \
                    call is found and ended up to a second after it";
        add(FindingLevel::Warning, spaces, says, "write `RestrictNamespaces=user pid`");
    }
    if let Some(mode) = last("KillMode").filter(|mode| ["process", "none"].contains(&&*mode.value))
    {
        let says = "what the server leaves behind is not ended with it: promise 4 holds for confined programs only";
        add(FindingLevel::Warning, mode, says, "write `KillMode=mixed`");
    }
    if let Some(deny) = last("MemoryDenyWriteExecute").filter(|deny| is_true(&deny.value)) {
        let says = "programs that compile while they run, such as node and most of its MCP servers, do not start";
        add(FindingLevel::Note, deny, says, "remove it if tools need such programs");
    }
    if let Some(families) = lists::missing_unix(settings) {
        let says = "without AF_UNIX `toolcrib status`, `approvals` and `reload` do not reach the server, and systemd \
                    does not learn that it is ready";
        add(FindingLevel::Failure, families, says, "add AF_UNIX");
    }
    if let Some(stop) = last("TimeoutStopSec").filter(|stop| is_less_than_the_drain(&stop.value)) {
        let says = "running calls have 5 s to end before the server does; this kills them earlier";
        add(FindingLevel::Warning, stop, says, "allow 10 s or more");
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
            ("User=a\nExecStart=+/usr/bin/toolcrib serve", Warning, "promise 9"),
            ("User=a\nExecStart=-!/usr/bin/toolcrib serve", Warning, "promise 9"),
            ("User=a\nExecStart=!!/usr/bin/toolcrib serve", Warning, "ambient"),
            (
                "User=a\nExecStart=/usr/bin/toolcrib serve\nExecStart=\nExecStart=+/x serve",
                Warning,
                "root",
            ),
            ("ExecStart=/usr/bin/toolcrib serve --set server.no_auth=true", Warning, "promise 7"),
            ("ExecStart=/usr/bin/toolcrib serve --set=server.token=abc", Failure, "promise 9"),
            (
                "ExecStart=/usr/bin/toolcrib serve --set sandbox.require=best_effort",
                Warning,
                "confine",
            ),
            ("ExecStart=/usr/bin/toolcrib serve --set server.listen=0.0.0.0:1", Warning, "no TLS"),
            ("ExecStart=/bin/sh -c \"exec toolcrib serve\"", Warning, "shell"),
            ("ExecStart=/bin/sh -c \"exec toolcrib serve --no-auth\"", Warning, "promise 7"),
            ("ExecStart=|toolcrib serve", Warning, "shell"),
            (
                "ExecStart=/usr/bin/env TOOLCRIB__SERVER__NO_AUTH=true TOOLCRIB_TOKEN=a x",
                Failure,
                "promise 9",
            ),
            ("ExecStartPre=/var/lib/toolcrib/workspace/x.sh", Failure, "promise 10"),
            ("ExecStartPre=/bin/sh /var/lib/toolcrib/workspace/x.sh", Failure, "promise 10"),
            ("StateDirectory=t\nExecStartPre=/var/lib/t/x.sh", Warning, "promise 10"),
            ("Environment=\"TOOLCRIB__SERVER__NO_AUTH=true\"", Warning, "promise 7"),
            ("Environment=A=b TOOLCRIB__server__no_auth=true", Warning, "promise 7"),
            ("Environment='TOOLCRIB__SERVER={no_auth: true}'", Warning, "promise 7"),
            ("Environment=TOOLCRIB__SANDBOX__REQUIRE=best_effort", Warning, "confine"),
            ("Environment=TOOLCRIB__SERVER__LISTEN=0.0.0.0:80", Warning, "no TLS"),
            ("Environment=LD_PRELOAD=/var/lib/toolcrib/workspace/x.so", Failure, "promise 10"),
            ("Environment=PATH=/usr/bin:/tmp/bin", Failure, "promise 10"),
            ("Environment=LD_PRELOAD=/opt/x.so", Warning, "no promise"),
            ("EnvironmentFile=-/var/lib/toolcrib/workspace/env", Failure, "promise 10"),
            (
                "Environment=TOOLCRIB__WORKSPACE__ROOT=/srv/w\nEnvironmentFile=/srv/w/env",
                Failure,
                "promise 10",
            ),
            (
                "ExecStart=/x --set workspace.root=/srv/w\nEnvironmentFile=/srv/w/env",
                Failure,
                "promise 10",
            ),
            ("WorkingDirectory=/var/lib/toolcrib/workspace", Warning, "promise 10"),
            ("SupplementaryGroups=docker", Warning, "as good as root"),
            ("AmbientCapabilities=CAP_SYS_ADMIN", Warning, "trusted programs"),
            ("SetCredential=a:b", Failure, "promise 9"),
            ("StateDirectoryMode=0777", Warning, "other users"),
            ("InaccessiblePaths=-/proc", Failure, "promise 4"),
            ("SendSIGKILL=no", Warning, "promise 4"),
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
            "User=a\nExecStart=+/x --no-auth\nExecStart=\nExecStart=-/usr/bin/toolcrib serve",
            "Environment=TOOLCRIB__SERVER__NO_AUTH=true\nEnvironment=TOOLCRIB__SERVER__NO_AUTH=false",
            "Environment=LD_PRELOAD=/tmp/x\nEnvironment=",
            "Environment=TOOLCRIB__WORKSPACE__ROOT=/srv/w TZ=UTC PATH=/usr/bin",
            "EnvironmentFile=/etc/toolcrib/env\nExecStartPre=+/usr/bin/install -d /srv/x",
            "SupplementaryGroups=www-data\nAmbientCapabilities=CAP_NET_BIND_SERVICE\nSendSIGKILL=yes",
            "AmbientCapabilities=CAP_SYS_ADMIN\nAmbientCapabilities=\nWorkingDirectory=/etc/toolcrib",
            "User=a\nExecStart=/usr/bin/toolcrib serve --set server.no_auth=false --set sandbox.require=required",
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
