//! Checks of the files and folders that a manifest names: scripts, files in argument vectors, grants.

use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use crate::diagnostic::position::Span;
use crate::diagnostic::{Diagnostic, Findings, did_you_mean};
use crate::document::Node;
use crate::manifest::{RunFile, started};
use crate::programs::looks_like_a_file;

/// Checks the script, and the files of a worker.
pub(super) fn check(run: &Node, folder: &Path, findings: &mut Findings<'_>) {
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
        if looks_like_a_file(written) && !written.starts_with('-') {
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

/// Where relative paths of a manifest begin.
pub(super) struct Places<'a> {
    pub(super) workspace: &'a Path,
    pub(super) manifests: &'a Path,
    /// The real paths that no confined program may change.
    pub(super) unwritable: &'a [PathBuf],
}

impl Places<'_> {
    /// Checks the folders and files of a tool that starts a program in the workspace.
    pub(super) fn check_tool(&self, tool: &Node, run: &Node, findings: &mut Findings<'_>) {
        let cwd = tool.entry("cwd");
        let folder = self.start_folder(tool);
        if let Some(cwd) = cwd {
            check_cwd(&cwd.node, &folder, findings);
        }
        let granted = self.granted(tool, findings);
        let Some(argv) = run.entry("argv") else { return };
        let programs = started(&argv.node, findings);
        for file in programs.into_iter().flat_map(|program| program.files) {
            let Some(path) = path_of(&file, &folder) else { continue };
            if path.exists() {
                self.check_readable(&file, &path, &folder, granted.as_deref(), findings);
                continue;
            }
            let beside = self.manifests.join(&file.written);
            if !beside.is_file() {
                let folder =
                    file.folder.as_ref().map_or(folder.clone(), |below| folder.join(below));
                check_file(&file.written, &file.span, &folder, findings);
                continue;
            }
            let message = format!(
                "the file `{}` does not exist in the workspace, so the tool will be unavailable: it lies beside the \
                 manifest",
                file.written
            );
            let help = format!(
                "start it from there: `run: {{script: ./{}}}` with its arguments in `args`, or move it to {}",
                file.written.trim_start_matches("./"),
                plain(&path).display()
            );
            findings.add(Diagnostic::warning("missing-script", &file.span, message).help(help));
        }
    }

    /// Checks the folders of an MCP server's program, and the files that `command` runs.
    pub(super) fn check_upstream(&self, server: &Node, findings: &mut Findings<'_>) {
        let folder = self.start_folder(server);
        let granted = self.granted(server, findings);
        let programs = server.entry("command").map(|command| started(&command.node, findings));
        // A file beside the manifest needs another `cwd`, whether the folder that is named exists or not.
        let is_beside = |file: &str| self.manifests.join(file).exists();
        let files = || programs.iter().flatten().flat_map(|program| &program.files);
        let has_wrong_cwd = files().any(|file| {
            path_of(file, &folder).is_some_and(|path| !path.exists()) && is_beside(&file.written)
        });
        if let Some(cwd) = server.entry("cwd").filter(|_| !has_wrong_cwd) {
            check_cwd(&cwd.node, &folder, findings);
        }
        for file in files() {
            let Some(path) = path_of(file, &folder) else { continue };
            if path.exists() {
                self.check_readable(file, &path, &folder, granted.as_deref(), findings);
                continue;
            }
            let beside = self.manifests.join(&file.written);
            let help = if is_beside(&file.written) {
                let from = cwd_for(self.manifests, self.workspace);
                format!("`{}` exists: write `cwd: {}`", beside.display(), from.display())
            } else {
                "put it there, or correct the path: it is relative to `cwd`, and that to the workspace"
                    .to_owned()
            };
            let message = format!(
                "the file `{}` does not exist, so the server cannot start: it would be `{}`",
                file.written,
                plain(&path).display()
            );
            findings.add(Diagnostic::warning("missing-script", &file.span, message).help(help));
        }
    }

    /// The folder in which the program of a tool or an MCP server starts.
    fn start_folder(&self, declared: &Node) -> PathBuf {
        match declared.entry("cwd").and_then(|cwd| cwd.node.as_str()) {
            None if is_trusted(declared) => self.manifests.to_owned(),
            None => self.workspace.to_owned(),
            Some(written) => self.relative_to_workspace(Path::new(written)),
        }
    }

    /// A path relative to the workspace. The server makes a missing workspace, so `..` leads out of it as it will
    /// then, and not nowhere.
    fn relative_to_workspace(&self, written: &Path) -> PathBuf {
        let joined = self.workspace.join(written);
        let leads_out = written.components().any(|part| part == Component::ParentDir);
        if written.is_absolute() || !leads_out || self.workspace.exists() {
            return joined;
        }
        let mut path = real(self.workspace);
        for part in written.components() {
            match part {
                Component::ParentDir => drop(path.pop()),
                Component::Normal(name) => path.push(name),
                _ => {}
            }
        }
        path
    }

    /// The paths that `sandbox` grants; `None` for a trusted program, which is not confined. Reports those that do
    /// not exist.
    fn granted(&self, declared: &Node, findings: &mut Findings<'_>) -> Option<Vec<PathBuf>> {
        if is_trusted(declared) {
            return None;
        }
        let mut granted = Vec::new();
        for key in ["read", "write"] {
            let list = declared.entry("sandbox").and_then(|sandbox| sandbox.node.entry(key));
            for item in list.map(|list| list.node.items()).unwrap_or_default() {
                let Some(written) = item.as_str().filter(|text| !text.is_empty()) else { continue };
                let path = self.resolved(Path::new(written));
                // Wrong paths have been reported.
                let may_be_checked = !written.contains(['$', '*', '?', '\0']);
                if may_be_checked && !path.exists() && !is_made_by_the_system(&path) {
                    findings.add(missing_grant(written, key, &path, item));
                } else if key == "write" && self.is_unwritable(&path) {
                    findings.add(withheld_grant(written, item));
                }
                granted.push(path);
            }
        }
        Some(granted)
    }

    fn is_unwritable(&self, path: &Path) -> bool {
        let real = real(path);
        self.unwritable.iter().any(|place| real.starts_with(place))
    }

    fn resolved(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), std::env::home_dir()) {
            (Ok(below), Some(home)) => home.join(below),
            _ => self.relative_to_workspace(path),
        }
    }

    /// Reports a file outside of everything that a confined program may read.
    fn check_readable(
        &self,
        file: &RunFile,
        path: &Path,
        folder: &Path,
        granted: Option<&[PathBuf]>,
        findings: &mut Findings<'_>,
    ) {
        let Some(granted) = granted else { return };
        let Ok(place) = path.canonicalize() else { return };
        let is_below =
            |folder: &Path| folder.canonicalize().is_ok_and(|folder| place.starts_with(folder));
        let is_readable = is_below(self.workspace)
            || is_below(folder)
            || granted.iter().any(|grant| is_below(grant))
            || SYSTEM.iter().any(|folder| place.starts_with(folder));
        if is_readable {
            return;
        }
        let message = format!(
            "a confined program may not read `{}`, which is outside of the workspace, so every call will fail",
            file.written
        );
        let help =
            format!("add it to the grants: `sandbox: {{read: [\"{}\"]}}`", plain(path).display());
        findings.add(Diagnostic::warning("ungranted-file", &file.span, message).help(help));
    }
}

/// Folders that every confined program may read.
const SYSTEM: [&str; 11] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/etc",
    "/proc",
    "/dev",
];

fn is_trusted(declared: &Node) -> bool {
    let profile = declared.entry("sandbox").and_then(|sandbox| sandbox.node.entry("profile"));
    profile.and_then(|profile| profile.node.as_str()) == Some("trusted")
}

/// Where a program that starts in `folder` looks for a file, if the word certainly means one.
fn path_of(file: &RunFile, folder: &Path) -> Option<PathBuf> {
    let is_file = file.is_certain || file.written.contains('/') || looks_like_a_file(&file.written);
    if !is_file || file.written.contains("${") {
        return None;
    }
    let folder = file.folder.as_ref().map_or(folder.to_owned(), |below| folder.join(below));
    Some(folder.join(&file.written))
}

fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

/// The absolute path without symbolic links. The part of it that does not exist stays as written.
pub(super) fn real(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let real = absolute.ancestors().find_map(|there| {
        let rest = absolute.strip_prefix(there).ok()?;
        Some(there.canonicalize().ok()?.join(rest))
    });
    real.unwrap_or(absolute)
}

fn withheld_grant(written: &str, item: &Node) -> Diagnostic {
    let message = format!(
        "`{written}` stays read-only: no confined program may change the server's own files, such as its manifests"
    );
    Diagnostic::warning("idle-grant", &item.span, message)
        .help("let the program write to another folder, and grant that")
}

/// Whether the system makes what is in this place while it runs, so that it may exist later.
fn is_made_by_the_system(path: &Path) -> bool {
    ["/run", "/proc", "/sys", "/dev"].iter().any(|place| path.starts_with(place))
}

fn missing_grant(written: &str, key: &str, path: &Path, item: &Node) -> Diagnostic {
    let message = format!("`{written}` does not exist on this machine, so `{key}` grants nothing");
    let is_socket = path.extension().is_some_and(|extension| extension == "sock");
    let above = path.ancestors().skip(1).find(|folder| folder.is_dir());
    let help = match above.filter(|_| key == "write" && !is_socket) {
        Some(above) => format!(
            "make it before the tool is called; to let the program make it, grant the folder above it: `{}`",
            above.display()
        ),
        None if is_socket => {
            "correct the path, or start the service that makes the socket: it is granted as soon as it exists"
                .to_owned()
        }
        None => "correct the path, or make it: it is granted as soon as it exists".to_owned(),
    };
    Diagnostic::hint("missing-grant", &item.span, message).help(help)
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

/// The folder as a `cwd`: relative to the workspace, if both can be found.
fn cwd_for(folder: &Path, workspace: &Path) -> PathBuf {
    let (folder, workspace) = (real(folder), real(workspace));
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
