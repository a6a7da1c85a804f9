//! The result of a check, for people and for programs.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json};
use toolcrib::lint::CheckReport;
use toolcrib::manifest::directory::{DirectoryLoad, FileLoad};
use toolcrib::manifest::lock::Kind;
use toolcrib::manifest::{Diagnostic, Lines, Severity};
use toolcrib::tool::{Source, fully_visible};

use crate::command::manifests::check::fix::FileEdits;
use crate::screen::{self, FAINT, STRONG, WARNING, count};

/// Everything that a check reports.
pub(super) struct Report<'c> {
    files: &'c DirectoryLoad,
    shadowed: Vec<Value>,
    /// The edits of `--fix`; none without it.
    edits: Option<Vec<FileEdits>>,
    /// Problems of the config, by file, variable or flag.
    config: &'c [FileLoad],
    /// What the MCP servers that upstreams name are found to lack.
    upstreams: Vec<String>,
    strict: bool,
    /// Whether hints are omitted.
    quiet: bool,
    /// Whether the check fails.
    pub(super) failed: bool,
}

/// Problems that are shown together.
type Group<'c> = Vec<(&'c FileLoad, &'c Diagnostic)>;

/// Fewer problems of one kind are shown separately.
const GATHERED_MIN: usize = 3;

/// The number of positions that are named for problems that are not shown.
const NAMED_PLACES: usize = 3;

/// How many further problems a group has, and where.
fn more_of(group: &[(&FileLoad, &Diagnostic)]) -> Option<String> {
    let others = group.get(1..).filter(|others| !others.is_empty())?;
    let places = others.iter().take(NAMED_PLACES).map(|(file, problem)| {
        let (line, column) = problem.position(&file.text);
        format!("{}:{line}:{column}", file.path.display())
    });
    let places = places.collect::<Vec<_>>().join(", ");
    let rest = if others.len() > NAMED_PLACES { ", …" } else { "" };
    Some(format!(
        "{FAINT}and {} like it, at {places}{rest}{FAINT:#}",
        count(others.len(), "more problem")
    ))
}

/// All declarations that lost a name conflict, as JSON.
fn shadowed(checked: &CheckReport) -> Vec<Value> {
    let record = |kind: Kind, name: &str, loser: &Source, winner: &Source| {
        json!({
            "kind": kind.as_str(),
            "name": name,
            "source": loser.to_string(),
            "kept_by": winner.to_string(),
        })
    };
    let tools = checked
        .shadowed
        .iter()
        .map(|own| record(Kind::Tool, own.loser.name(), &own.loser.source, &own.winner));
    let names = checked
        .shadowed_names
        .iter()
        .filter_map(|own| Some(record(own.kind, &own.name, &own.source, own.shadowed_by()?)));
    tools.chain(names).collect()
}

impl<'c> Report<'c> {
    pub(super) fn new(
        checked: &'c CheckReport,
        config: &'c [FileLoad],
        strict: bool,
        quiet: bool,
        edits: Option<Vec<FileEdits>>,
    ) -> Self {
        let of_config = config.iter().flat_map(|file| &file.loaded.diagnostics);
        let all = checked.files.problems().map(|(_, found)| found).chain(of_config);
        let failed = all.into_iter().any(|found| fails(found.severity, strict))
            || edits.iter().flatten().any(|file| file.failure.is_some());
        let (files, shadowed) = (&checked.files, shadowed(checked));
        Self { files, shadowed, edits, config, upstreams: Vec::new(), strict, quiet, failed }
    }

    /// Takes what connections to upstreams have shown, as warnings.
    pub(super) fn with_upstreams(mut self, found: Vec<String>) -> Self {
        self.failed |= self.strict && !found.is_empty();
        self.upstreams = found;
        self
    }

    /// The reported problems, ordered by file and position.
    pub(super) fn problems(
        &self,
    ) -> impl Iterator<Item = (&'c FileLoad, &'c Diagnostic)> + use<'c> {
        let quiet = self.quiet;
        let of_config = self
            .config
            .iter()
            .flat_map(|file| file.loaded.diagnostics.iter().map(move |problem| (file, problem)));
        let all = of_config.chain(self.files.problems());
        all.filter(move |(_, found)| !quiet || found.severity != Severity::Hint)
    }

    /// The reported problems with their JSON. The line starts of a file are computed once.
    pub(super) fn values(
        &self,
    ) -> impl Iterator<Item = (&'c FileLoad, &'c Diagnostic, Value)> + use<'c> {
        let mut current: Option<(&'c FileLoad, Lines<'c>)> = None;
        self.problems().map(move |(file, problem)| {
            if current.as_ref().is_none_or(|(known, _)| !std::ptr::eq(*known, file)) {
                current = None;
            }
            let (_, lines) = current.get_or_insert_with(|| (file, Lines::new(&file.text)));
            let value = problem.to_value_in(&file.path.to_string_lossy(), lines);
            (file, problem, value)
        })
    }

    fn count(&self, severity: Severity) -> usize {
        self.problems().filter(|(_, found)| found.severity == severity).count()
    }

    fn warnings(&self) -> usize {
        self.count(Severity::Warning) + self.upstreams.len()
    }

    /// Files in the manifest directories that are not manifests and not used by one.
    fn left_aside(&self) -> Vec<String> {
        let of = |(directory, names): (&Path, Vec<String>)| {
            let path = |name: String| directory.join(name).to_string_lossy().into_owned();
            names.into_iter().map(path).collect::<Vec<_>>()
        };
        self.files.left_aside().into_iter().flat_map(of).collect()
    }

    /// The messages about the config.
    fn about_config(&self) -> Vec<&str> {
        let all = self.config.iter().flat_map(|file| &file.loaded.diagnostics);
        all.map(|problem| problem.message.as_str()).collect()
    }

    /// The result as JSON.
    pub(super) fn to_value(&self) -> Value {
        let diagnostics: Vec<Value> = self.values().map(|(.., value)| value).collect();
        json!({
            "ok": !self.failed,
            "files": self.files.files.len(),
            "tools": self.files.declarations().count(),
            "servers": self.files.upstreams().count(),
            "errors": self.count(Severity::Error),
            "warnings": self.warnings(),
            "config": self.about_config(),
            "upstreams": self.upstreams,
            "hints": self.count(Severity::Hint),
            "diagnostics": diagnostics,
            "left_aside": self.left_aside(),
            "shadowed": self.shadowed,
            "fixed": self.edits.iter().flatten().flat_map(FileEdits::to_values).collect::<Vec<Value>>(),
        })
    }

    /// Groups problems: hints of one kind, and warnings with the same text, are shown once with
    /// their count.
    fn groups(&self, gathers: bool) -> Vec<Group<'c>> {
        let mut groups: Vec<Group<'c>> = Vec::new();
        let mut known: HashMap<(Severity, &str, &str), usize> = HashMap::new();
        for (file, problem) in self.problems() {
            let kind = match problem.severity {
                _ if !gathers => None,
                Severity::Error => None,
                Severity::Warning => Some(problem.message.as_str()),
                Severity::Hint => Some(""),
            };
            let at = kind.map(|kind| {
                *known.entry((problem.severity, problem.code, kind)).or_insert(groups.len())
            });
            match at.and_then(|at| groups.get_mut(at)) {
                Some(group) => group.push((file, problem)),
                None => groups.push(vec![(file, problem)]),
            }
        }
        // Groups of two are shown separately.
        let mut shown: Vec<Group<'c>> = Vec::with_capacity(groups.len());
        for group in groups {
            if group.len() > GATHERED_MIN {
                shown.push(group);
            } else {
                shown.extend(group.into_iter().map(|one| vec![one]));
            }
        }
        shown
    }

    /// Prints the problems to standard error, and their counts to standard output.
    pub(super) fn print(&self, limit: usize) -> anyhow::Result<()> {
        for file in self.edits.iter().flatten() {
            file.print();
        }
        let (mut groups, all) = (self.groups(limit > 0), self.problems().count());
        let limit = if limit == 0 { usize::MAX } else { limit };
        // Errors first, hints last, each kind in the order of the files.
        groups.sort_by_key(|group| group.first().map(|(_, problem)| problem.severity));
        let mut shown = 0;
        for group in groups.iter().take(limit) {
            let Some((file, problem)) = group.first() else { continue };
            shown += group.len();
            screen::note(screen::diagnostic(file, problem));
            if let Some(more) = more_of(group) {
                screen::note(more);
            }
            screen::note("");
        }
        if shown < all {
            screen::note(format!(
                "{FAINT}{} not shown; `--limit 0` shows all{FAINT:#}\n",
                count(all - shown, "more problem")
            ));
        }
        for text in &self.upstreams {
            screen::note(format!(
                "{WARNING}warning[upstream]{WARNING:#}: {}\n",
                fully_visible(text)
            ));
        }
        for line in screen::left_aside(self.files) {
            screen::note(line + "\n");
        }
        let fixable = self.problems().filter(|(_, problem)| problem.fix.is_some()).count();
        match (&self.edits, fixable) {
            (None, 1..) => {
                let problems = match fixable {
                    1 if self.problems().count() == 1 => "it".to_owned(),
                    1 => "one of them".to_owned(),
                    several => format!("up to {several} of them"),
                };
                screen::note(format!("{FAINT}`--fix` mends {problems}{FAINT:#}\n"));
            }
            (Some(edits), _) if edits.is_empty() => screen::note(format!(
                "{FAINT}`--fix` changed nothing: no fix is unambiguous{FAINT:#}\n"
            )),
            _ => {}
        }
        let hints = match (self.quiet, self.count(Severity::Hint)) {
            (true, _) | (_, 0) => String::new(),
            (_, hints) => format!(", {}", count(hints, "hint")),
        };
        let servers = match self.files.upstreams().count() {
            0 => String::new(),
            some => format!(" and {}", count(some, "MCP server")),
        };
        screen::out(format!(
            "{STRONG}{}{servers} in {}{STRONG:#}: {}, {}{hints}",
            count(self.files.declarations().count(), "tool"),
            count(self.files.files.len(), "file"),
            count(self.count(Severity::Error), "error"),
            count(self.warnings(), "warning"),
        ))
    }
}

/// Whether a problem of this severity fails the check.
fn fails(severity: Severity, strict: bool) -> bool {
    severity == Severity::Error || strict && severity == Severity::Warning
}
