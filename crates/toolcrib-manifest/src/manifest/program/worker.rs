//! `run: {worker}`: a program that keeps running and answers each call with one JSON line.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::command::{Beside, environment, pass_env};
use crate::declaration::{ScriptFile, WorkerSpec};
use crate::diagnostic::position::Span;
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::Node;
use crate::fields::Fields;
use crate::manifest::tool::references::Scope;
use crate::template::{Reference, Template};
use crate::units::HumanDuration;

/// The default idle time of a worker.
const IDLE: Duration = Duration::from_secs(300);

/// Reads a worker.
pub(in crate::manifest) fn read(
    fields: &Fields<'_>,
    beside: &Beside<'_>,
    scope: &mut Scope,
    findings: &mut Findings<'_>,
) -> Option<WorkerSpec> {
    // All declared arguments are sent, so all count as used.
    scope.used.extend(scope.arguments.keys().cloned());
    if let Some(cwd) = beside.cwd {
        let message = "a worker starts in the manifest's folder, so that its files are found";
        findings.add(
            Diagnostic::error("not-for-this-run", &cwd.key_span, message)
                .help("remove `cwd`; the worker itself can change its directory"),
        );
    }
    let argv = argv(fields, findings);
    let env = environment(fields, scope, findings);
    for (name, template) in &env {
        let entry = fields.node("env").and_then(|env| env.entry(name));
        let place = entry.map_or(&fields.span, |entry| &entry.node.span);
        check_lasting(template, place, findings);
    }
    let idle = fields.node("idle").and_then(|node| {
        let idle: HumanDuration = node.as_str()?.parse().ok()?;
        let idle = idle.0.filter(|idle| !idle.is_zero());
        if idle.is_none() {
            let message = "the idle time of a worker must be greater than zero";
            findings.add(
                Diagnostic::error("out-of-range", &node.span, message).help("write for example 5m"),
            );
        }
        idle
    });
    let max_calls = fields.integer("max_calls").and_then(|number| {
        let calls = u64::try_from(number).ok().filter(|calls| *calls > 0);
        if let (None, Some(node)) = (calls, fields.node("max_calls")) {
            let message = "a worker answers at least one call";
            findings.add(
                Diagnostic::error("out-of-range", &node.span, message)
                    .help("remove the key to keep it for any number of calls"),
            );
        }
        calls
    });
    let argv = argv?;
    Some(WorkerSpec {
        files: files(&argv, beside.folder),
        argv,
        env,
        pass_env: pass_env(fields, findings),
        folder: beside.folder.to_owned(),
        idle: idle.unwrap_or(IDLE),
        max_calls,
        line_bytes: beside.capture_bytes,
    })
}

/// The files that an argument vector names, up to the size limit of scripts, because they are read
/// often. The program counts only if it has a path; otherwise it is looked up on PATH.
fn files(argv: &[String], folder: &Path) -> BTreeMap<String, ScriptFile> {
    let named = argv.iter().enumerate().filter(|(at, word)| *at > 0 || word.contains('/'));
    let at_its_place = named.map(|(_, word)| (word, folder.join(word)));
    let is_script = |path: &Path| {
        path.metadata().is_ok_and(|found| found.is_file() && found.len() <= ScriptFile::MAX_BYTES)
    };
    let files = at_its_place.filter(|(word, path)| !word.is_empty() && is_script(path));
    files.map(|(word, path)| (word.clone(), ScriptFile::read(path))).collect()
}

/// The argument vector, which has no references.
fn argv(fields: &Fields<'_>, findings: &mut Findings<'_>) -> Option<Vec<String>> {
    let node = fields.node("worker")?;
    let argv = fields.texts("worker")?;
    if argv.first().is_none_or(|program| program.trim().is_empty()) {
        let message = "`worker` names no program";
        findings.add(
            Diagnostic::error("empty-argv", &node.span, message)
                .help("write the program and its arguments: worker: [python3, tools/geo.py]"),
        );
        return None;
    }
    let mut right = true;
    for item in node.items() {
        let text = item.as_str().unwrap_or_default();
        if Template::parse(text).map_or(true, |template| template.references().next().is_some()) {
            right = false;
            let message = "nothing is replaced in a worker's arguments: it starts before any call";
            findings.add(Diagnostic::error("reference-in-worker", &item.span, message).help(
                "each call's line brings its arguments and context; put values that the start \
                 needs into `env`",
            ));
        }
    }
    right.then(|| argv.iter().map(|text| text.replace("$${", "${")).collect())
}

/// Refuses output formats, because a worker's answers separate text and data.
pub(in crate::manifest) fn check_output(fields: &Fields<'_>, findings: &mut Findings<'_>) {
    let given = fields.node("output").map(Node::entries).unwrap_or_default();
    for entry in given.iter().filter(|entry| matches!(entry.key.as_str(), "format" | "keep")) {
        let message = format!("`{}` is for what programs print; a worker sends answers", entry.key);
        findings.add(
            Diagnostic::error("not-for-this-run", &entry.key_span, message)
                .help("remove it: a worker answers with `output`, `data` or both"),
        );
    }
}

/// Refuses values of calls in the environment, because a worker outlives calls.
fn check_lasting(template: &Template, place: &Span, findings: &mut Findings<'_>) {
    for reference in template.references() {
        if matches!(reference, Reference::Arg(_) | Reference::Ctx(_)) {
            let message = format!("{reference} is a value of one call, but the worker serves many");
            findings.add(
                Diagnostic::error("reference-in-worker", place, message)
                    .help("each call's line brings its arguments and context: read it there"),
            );
        }
    }
}
