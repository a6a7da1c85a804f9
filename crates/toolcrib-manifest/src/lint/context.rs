//! Checks against the config and the machine: secrets, limits and programs.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::diagnostic::position::Span;
use crate::diagnostic::{Diagnostic, Findings, did_you_mean};
use crate::document::{Entry, Node, NodeValue};
use crate::lint::files::{self, Places};
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
    /// Real paths.
    pub(super) unwritable: Vec<PathBuf>,
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

    /// Files and folders that no confined program may change, such as those of the manifests. A grant of writing in
    /// one of them is a warning, if the workspace is known.
    #[must_use]
    pub fn unwritable<P: AsRef<Path>>(mut self, places: impl IntoIterator<Item = P>) -> Self {
        self.unwritable = places.into_iter().map(|place| files::real(place.as_ref())).collect();
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
        let places = self.workspace.as_ref().map(|workspace| Places {
            workspace,
            manifests,
            unwritable: &self.unwritable,
        });
        if let Some(places) = &places {
            let servers = root.entry("upstream").map(|servers| servers.node.items());
            for server in servers.unwrap_or_default() {
                places.check_upstream(server, findings);
            }
        }
        // Cached, because many tools run the same programs, and a lookup searches all folders of
        // `PATH`.
        let mut looked_up: HashMap<&str, ProgramLookup> = HashMap::new();
        for tool in root.entry("tools").map(|tools| tools.node.items()).unwrap_or_default() {
            if let Some(longest) = self.max_timeout
                && tool.entry("client").is_none()
            {
                check_timeout(tool.entry("limits"), longest, findings);
            }
            let Some(run) = tool.entry("run") else { continue };
            if self.files {
                files::check(&run.node, manifests, findings);
            }
            if let Some(places) = &places {
                places.check_tool(tool, &run.node, findings);
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
