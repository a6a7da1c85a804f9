//! Checks tools: which files are invalid, which tools cannot run here, and who may change them.

use toolcrib::manifest::Severity;
use toolcrib::settings::LoadedConfig;
use toolcrib_sandbox::{Confinement, Profile};

use super::findings::{FindingLevel, Findings};
use super::settings::mode;
use crate::options::Options;
use crate::screen::count;
use crate::startup::{self, Started};

pub(super) fn look(options: &Options, loaded: &LoadedConfig, findings: &mut Findings) {
    let config = loaded.config();
    for dir in config.manifests.absent() {
        findings.note(
            "manifests",
            format!("{} does not exist: there are only built-in tools", dir.display()),
        );
    }
    for dir in &config.manifests.dirs {
        if let Some(mode) = mode(dir).filter(|mode| mode & 0o022 != 0) {
            findings.warn(
                "manifests",
                format!("others may write to {} (mode {mode:03o})", dir.display()),
                "anybody who may write there can run programs as the server: chmod go-w",
            );
        }
    }
    let started = match startup::without_state(options) {
        Ok(started) => started,
        Err(error) => {
            findings.fail("start", format!("{error:#}"), "servers and calls do not start");
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
                "anybody who may write it can run programs as the server: chmod go-w",
            );
        }
        let mut errors =
            file.loaded.diagnostics.iter().filter(|found| found.severity == Severity::Error);
        if let Some(first) = errors.next() {
            let (line, column) = first.position(&file.text);
            findings.fail(
                "manifests",
                format!("{}:{line}:{column}: {}", file.path.display(), first.message),
                "its tools are left out; `toolcrib check` shows all errors",
            );
        }
    }
    control_plane(&started, findings);
    let snapshot = started.crib.executor().registry().snapshot();
    let callable = snapshot.definitions().len();
    findings.good("tools", format!("{} can be called", count(callable, "tool")));
    for entry in snapshot.entries() {
        if let Some(reason) = entry.unavailable_reason() {
            findings.add(
                "tools",
                FindingLevel::Warning,
                format!("{} cannot be called: {reason}", entry.name()),
            );
        }
    }
    for text in loaded.reports(&started.crib.unmatched_names(config)) {
        findings.warn("config", text, "correct the name, or remove the entry");
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

/// The control plane, and whether this machine protects it from programs in the workspace.
fn control_plane(started: &Started, findings: &mut Findings) {
    let plane = started.crib.control_plane();
    let holds = "tools can neither read settings, state and secrets, nor change manifests and the files they run";
    let root = &started.config.workspace.root;
    let root = std::path::absolute(root).unwrap_or_else(|_| root.clone());
    let program = Confinement::new(Profile::Workspace).workspace(&root).control_plane(plane);
    let within = program.hidden.iter().chain(&program.read_only);
    let within = within.filter(|place| place.starts_with(&root)).count();
    match program.check() {
        Ok(()) if within == 0 => {
            findings.good("control plane", format!("{holds}; none of them is in the workspace"));
        }
        Ok(()) => findings.good(
            "control plane",
            format!(
                "{holds}; {} in the workspace, hidden from programs by mounts",
                count(within, "place")
            ),
        ),
        Err(reason) => findings.fail(
            "control plane",
            format!("programs in the workspace are unavailable: {reason}"),
            "set workspace.root to a folder outside of what is named here",
        ),
    }
}
