//! Checks against the config and the machine: secrets, limits, files and programs.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use crate::diagnostic::position::Span;
use crate::diagnostic::{Diagnostic, Findings, did_you_mean};
use crate::document::{Entry, Node, NodeValue};
use crate::manifest::started;
use crate::template::{Reference, Template};
use crate::units::HumanDuration;

/// What [`lint_with`](crate::lint_with) knows about the config and the machine. By default nothing:
/// then only the file itself is checked.
#[derive(Debug, Clone, Default)]
pub struct LintContext {
    pub(super) secrets: Option<BTreeSet<String>>,
    pub(super) max_timeout: Option<Duration>,
    pub(super) files: bool,
    pub(super) workspace: Option<PathBuf>,
    pub(super) path: Option<OsString>,
}

impl LintContext {
    /// The names of the config's secrets. A reference to any other secret is a warning.
    #[must_use]
    pub fn secrets<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.secrets = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// The executor's maximum time limit of a call. A longer `timeout` is a warning.
    #[must_use]
    pub fn max_timeout(mut self, longest: Duration) -> Self {
        self.max_timeout = Some(longest);
        self
    }

    /// Whether to check that scripts and the files of workers exist.
    #[must_use]
    pub fn files(mut self, look: bool) -> Self {
        self.files = look;
        self
    }

    /// The workspace, in which programs run. A file that an interpreter in `argv` would run there
    /// and that does not exist is a warning.
    #[must_use]
    pub fn workspace(mut self, folder: impl Into<PathBuf>) -> Self {
        self.workspace = Some(folder.into());
        self
    }

    /// The value of `PATH` for looking up programs. A missing program is a hint, because the server
    /// may run on another machine.
    #[must_use]
    pub fn programs(mut self, path: impl Into<OsString>) -> Self {
        self.path = Some(path.into());
        self
    }
}

impl LintContext {
    /// Checks a manifest against this knowledge.
    pub(super) fn check(&self, file: &str, root: &Node, findings: &mut Findings<'_>) {
        if let Some(secrets) = &self.secrets {
            check_secrets(root, secrets, findings);
        }
        if let Some(longest) = self.max_timeout {
            check_timeout(root.entry("defaults"), longest, findings);
        }
        let manifests = Path::new(file).parent().unwrap_or(Path::new(""));
        if let Some(workspace) = &self.workspace {
            let servers = root.entry("upstream").map(|servers| servers.node.items());
            for server in servers.unwrap_or_default() {
                check_upstream(server, workspace, manifests, findings);
            }
        }
        // Cached, because many tools run the same programs, and a lookup searches all folders of
        // `PATH`.
        let mut looked_up: HashMap<&str, ProgramLookup> = HashMap::new();
        let folder = manifests;
        for tool in root.entry("tools").map(|tools| tools.node.items()).unwrap_or_default() {
            if let Some(longest) = self.max_timeout
                && tool.entry("client").is_none()
            {
                check_timeout(tool.entry("limits"), longest, findings);
            }
            let Some(run) = tool.entry("run") else { continue };
            if self.files {
                check_files(&run.node, folder, findings);
            }
            if let Some(workspace) = &self.workspace {
                let cwd = tool.entry("cwd").and_then(|cwd| cwd.node.as_str()).unwrap_or_default();
                let folder = workspace.join(cwd);
                if let Some(cwd) = tool.entry("cwd") {
                    check_cwd(&cwd.node, &folder, findings);
                }
                check_files_of_argv(&run.node, &folder, findings);
            }
            if let Some(path) = &self.path {
                check_program(&run.node, path, &mut looked_up, findings);
            }
        }
    }
}

/// Reports references to unknown secrets.
fn check_secrets(node: &Node, secrets: &BTreeSet<String>, findings: &mut Findings<'_>) {
    match &node.value {
        NodeValue::String(text) if text.contains("${secret.") => {
            let Ok(template) = Template::parse(text) else { return };
            for reference in template.references() {
                let Reference::Secret(name) = reference else { continue };
                if secrets.contains(name) {
                    continue;
                }
                let help = did_you_mean(name, secrets.iter().map(String::as_str));
                let place = place_of(node, &reference.to_string(), findings.text);
                unknown_secret(name, &place, help, findings);
            }
        }
        NodeValue::Sequence(items) => {
            for item in items {
                check_secrets(item, secrets, findings);
            }
        }
        NodeValue::Mapping(entries) => {
            for entry in entries.iter().filter(|entry| !entry.key.starts_with("x-")) {
                check_secrets(&entry.node, secrets, findings);
            }
        }
        _ => {}
    }
}

fn unknown_secret(name: &str, place: &Span, help: Option<String>, findings: &mut Findings<'_>) {
    let help = help.unwrap_or_else(|| {
        format!(
            "declare it under `secrets` in config.yml: `secrets: {{{name}: {{file: \
             /run/secrets/{name}}}}}`"
        )
    });
    let message =
        format!("the config has no secret `{name}`, so tools that need it will be unavailable");
    findings.add(Diagnostic::warning("unknown-secret", place, message).help(help));
}

/// The place of a piece in a node, or that of the node if the piece cannot be found.
fn place_of(node: &Node, piece: &str, text: &str) -> Span {
    let written = text.get(node.span.clone()).unwrap_or_default();
    written
        .find(piece)
        .map_or(node.span.clone(), |at| node.span.start + at..node.span.start + at + piece.len())
}

fn check_timeout(limits: Option<&Entry>, longest: Duration, findings: &mut Findings<'_>) {
    let Some(entry) = limits.and_then(|limits| limits.node.entry("timeout")) else { return };
    let Some(written) = entry.node.as_str() else { return };
    let Ok(HumanDuration(Some(timeout))) = written.parse() else { return };
    if timeout > longest {
        let most = HumanDuration(Some(longest));
        let message =
            format!("calls get {most}, because `executor.max_timeout` of the config is less");
        findings.add(Diagnostic::warning("capped-timeout", &entry.node.span, message).help(
            format!(
                "write at most {most}, or raise `executor.max_timeout` in the config to {written}"
            ),
        ));
    }
}

/// File name endings of scripts.
const SCRIPTS: [&str; 8] = ["sh", "py", "js", "mjs", "rb", "pl", "php", "lua"];

/// Checks the script, and the files of a worker.
fn check_files(run: &Node, folder: &Path, findings: &mut Findings<'_>) {
    if let Some(script) = run.entry("script")
        && let Some(written) = script.node.as_str().filter(|written| !written.contains("${"))
        && check_file(written, &script.node.span, folder, findings)
    {
        check_start(written, &script.node.span, &folder.join(written), findings);
    }
    for item in run.entry("worker").map(|worker| worker.node.items()).unwrap_or_default() {
        let Some(written) = item.as_str().filter(|written| !written.contains(' ')) else {
            continue;
        };
        let ending = Path::new(written).extension().and_then(|ending| ending.to_str());
        if ending.is_some_and(|ending| SCRIPTS.contains(&ending)) && !written.starts_with('-') {
            check_file(written, &item.span, folder, findings);
        }
    }
}

/// Reports a script that cannot be started: a text whose first line names no interpreter.
fn check_start(written: &str, place: &Span, path: &Path, findings: &mut Findings<'_>) {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    // An unreadable file is not checked. Binary programs have zero bytes at the beginning, texts do
    // not.
    if !path.is_file() || read.is_err() || head.starts_with(b"#!") || head.contains(&0) {
        return;
    }
    let message =
        format!("the script `{written}` does not begin with `#!`, so the tool will be unavailable");
    let help = format!(
        "make its first line the one that names its interpreter, such as `{}`",
        interpreter_line(path)
    );
    findings.add(Diagnostic::warning("unstartable-script", place, message).help(help));
}

/// The first line for a script of this name.
fn interpreter_line(path: &Path) -> &'static str {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("py") => "#!/usr/bin/env python3",
        Some("js" | "mjs") => "#!/usr/bin/env node",
        Some("rb") => "#!/usr/bin/env ruby",
        Some("pl") => "#!/usr/bin/env perl",
        _ => "#!/bin/sh",
    }
}

/// Checks that the working directory exists, because nothing creates it.
fn check_cwd(cwd: &Node, folder: &Path, findings: &mut Findings<'_>) {
    let Some(written) = cwd.as_str() else { return };
    // Shell syntax has been reported.
    if folder.is_dir() || written.starts_with('~') || written.contains('$') {
        return;
    }
    let message = format!("the folder `{written}` does not exist, so every call will fail");
    let help = format!("make it: `mkdir -p {}`, or correct `cwd`", folder.display());
    findings.add(Diagnostic::warning("missing-folder", &cwd.span, message).help(help));
}

/// Checks the files that interpreters in an argument vector run, relative to their working
/// directory.
fn check_files_of_argv(run: &Node, folder: &Path, findings: &mut Findings<'_>) {
    let Some(argv) = run.entry("argv") else { return };
    for (written, place) in
        started(&argv.node, findings).into_iter().filter_map(|program| program.file)
    {
        let ending = Path::new(&written).extension().and_then(|ending| ending.to_str());
        if written.contains('/') || ending.is_some_and(|ending| SCRIPTS.contains(&ending)) {
            check_file(&written, &place, folder, findings);
        }
    }
}

/// Checks the working directory of an MCP server's program, and the files that an interpreter in `command` runs.
fn check_upstream(server: &Node, workspace: &Path, manifests: &Path, findings: &mut Findings<'_>) {
    let cwd = server.entry("cwd");
    let profile = server.entry("sandbox").and_then(|sandbox| sandbox.node.entry("profile"));
    let is_trusted = profile.and_then(|profile| profile.node.as_str()) == Some("trusted");
    let written = cwd.and_then(|cwd| cwd.node.as_str()).unwrap_or_default();
    let folder =
        if is_trusted && cwd.is_none() { manifests.to_owned() } else { workspace.join(written) };
    if let Some(cwd) = cwd {
        check_cwd(&cwd.node, &folder, findings);
    }
    let Some(command) = server.entry("command") else { return };
    for (written, place) in
        started(&command.node, findings).into_iter().filter_map(|program| program.file)
    {
        let ending = Path::new(&written).extension().and_then(|ending| ending.to_str());
        let is_file =
            written.contains('/') || ending.is_some_and(|ending| SCRIPTS.contains(&ending));
        let path = folder.join(&written);
        if !is_file || written.contains("${") || path.exists() {
            continue;
        }
        let beside = manifests.join(&written);
        let help = if beside.exists() {
            let from = cwd_for(manifests, workspace);
            format!("`{}` exists: write `cwd: {}`", beside.display(), from.display())
        } else {
            "put it there, or correct the path: it is relative to `cwd`, and that to the workspace"
                .to_owned()
        };
        let message = format!(
            "the file `{written}` does not exist, so the server cannot start: it would be `{}`",
            path.components().collect::<PathBuf>().display()
        );
        findings.add(Diagnostic::warning("missing-script", &place, message).help(help));
    }
}

/// The folder as a `cwd`: relative to the workspace, if both can be found.
fn cwd_for(folder: &Path, workspace: &Path) -> PathBuf {
    let absolute = Path::new(".").join(folder).canonicalize();
    let (Ok(folder), Ok(workspace)) = (absolute, workspace.canonicalize()) else {
        return folder.to_owned();
    };
    let shared = folder.components().zip(workspace.components());
    let shared = shared.take_while(|(one, other)| one == other).count();
    let up = workspace.components().skip(shared).map(|_| Component::ParentDir);
    let relative: PathBuf = up.chain(folder.components().skip(shared)).collect();
    if relative.as_os_str().is_empty() { PathBuf::from(".") } else { relative }
}

/// How many bytes of a script are read to distinguish a text from a binary program.
const HEAD_BYTES: u64 = 64;

/// Whether a file exists; adds a warning if not.
fn check_file(written: &str, place: &Span, folder: &Path, findings: &mut Findings<'_>) -> bool {
    let path = folder.join(written);
    if path.exists() {
        return true;
    }
    let beside = path.parent().unwrap_or(folder);
    let names: Vec<String> = std::fs::read_dir(beside)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let wanted = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let near = did_you_mean(&wanted.unwrap_or_default(), names.iter().map(String::as_str));
    let message = format!("the file `{written}` does not exist, so the tool will be unavailable");
    let arguments = written.split_once(' ').filter(|(file, _)| folder.join(file).exists());
    let arguments = arguments.map(|(file, rest)| {
        let words: Vec<_> = rest.split_whitespace().map(|word| format!("\"{word}\"")).collect();
        format!(
            "write the arguments beside it: `script: {file}` and `args: [{}]`",
            words.join(", ")
        )
    });
    let help = arguments.or(near).unwrap_or_else(|| {
        format!("put it into {}", beside.components().collect::<PathBuf>().display())
    });
    findings.add(Diagnostic::warning("missing-script", place, message).help(help));
    false
}

/// The result of looking up a program on `PATH`, with advice for a missing one.
enum ProgramLookup {
    Found,
    Missing { help: String },
}

/// Looks up a program on `PATH`, once for each name.
fn check_program<'n>(
    run: &'n Node,
    path: &OsString,
    looked_up: &mut HashMap<&'n str, ProgramLookup>,
    findings: &mut Findings<'_>,
) {
    let list = run.entry("argv").or(run.entry("worker"));
    let Some(node) = list.and_then(|list| list.node.items().first()) else { return };
    let Some(name) = node.as_str() else { return };
    let plain = !name.is_empty() && !name.contains(['/', ' ', '$']);
    let own_path = run.entry("env").is_some_and(|env| env.node.entry("PATH").is_some());
    if !plain || own_path {
        return;
    }
    let found = looked_up.entry(name).or_insert_with(|| look_up(name, path));
    let ProgramLookup::Missing { help } = found else { return };
    let message = format!("there is no program `{name}` on this machine's PATH");
    findings.add(Diagnostic::hint("missing-program", &node.span, message).help(help.clone()));
}

fn look_up(name: &str, path: &OsString) -> ProgramLookup {
    let folders: Vec<_> = std::env::split_paths(path).collect();
    if folders.iter().any(|folder| folder.join(name).is_file()) {
        return ProgramLookup::Found;
    }
    let names: Vec<String> = folders
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let near = did_you_mean(name, names.iter().map(String::as_str));
    let help = near.unwrap_or_else(|| {
        "install it where the server runs; until then the tool is unavailable there".to_owned()
    });
    ProgramLookup::Missing { help }
}
