//! Tools: which files are left out, which tools cannot run here, and who may change them.

use toolcrib::config::Config;
use toolcrib::manifest::Severity;

use super::findings::{Findings, Verdict};
use super::settings::mode;
use crate::options::Options;
use crate::screen::count;
use crate::startup;

pub(super) fn look(options: &Options, config: &Config, findings: &mut Findings) {
    for dir in config.manifests.absent() {
        findings.note(
            "manifests",
            format!("there is no {}: no tools but the built-in ones", dir.display()),
        );
    }
    for dir in &config.manifests.dirs {
        if let Some(mode) = mode(dir).filter(|mode| mode & 0o022 != 0) {
            findings.warn(
                "manifests",
                format!("others may write to {} (mode {mode:03o})", dir.display()),
                "whoever may write there may run programs as the server: chmod go-w",
            );
        }
    }
    let started = match startup::without_state(options) {
        Ok(started) => started,
        Err(error) => {
            findings.fail("start", format!("{error:#}"), "nothing starts like this");
            return;
        }
    };
    let files = started.manifests.files();
    for file in files.unreadable.iter().chain(&files.files) {
        if let Some(mode) = mode(&file.path).filter(|mode| mode & 0o022 != 0 && file.path.is_file())
        {
            findings.warn(
                "manifests",
                format!("others may write to {} (mode {mode:03o})", file.path.display()),
                "whoever may write it may run programs as the server: chmod go-w",
            );
        }
        let mut errors =
            file.loaded.diagnostics.iter().filter(|found| found.severity == Severity::Error);
        if let Some(first) = errors.next() {
            let (line, column) = first.position(&file.text);
            findings.fail(
                "manifests",
                format!("{}:{line}:{column}: {}", file.path.display(), first.message),
                "its tools are left out; `toolcrib check` shows all of it",
            );
        }
    }
    let snapshot = started.crib.executor().registry().snapshot();
    let callable = snapshot.definitions().len();
    findings.good("tools", format!("{} can be called", count(callable, "tool")));
    for entry in snapshot.entries() {
        if let Some(reason) = entry.unavailable_reason() {
            findings.add(
                "tools",
                Verdict::Warning,
                format!("{} cannot be called: {reason}", entry.name()),
            );
        }
    }
    for conflict in snapshot.conflicts() {
        findings.warn("names", conflict.to_string(), "rename one of them");
    }
    for own in started.crib.declared_names() {
        if let Some(by) = own.shadowed_by() {
            let (kind, name, loser) = (own.kind.as_str(), &own.name, &own.source);
            let text = format!("{kind} `{name}` of {loser}: the name belongs to {by}");
            findings.warn("names", text, "rename one of them");
        }
    }
    for own in snapshot.would_differ() {
        findings.note("names", format!("a restart would give `{}` to {}", own.name, own.fresh));
    }
}
