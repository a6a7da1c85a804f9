//! Mistakes as authors make them, one to a file: `check` reports each at its place, and the help
//! names the repair. The header of a file says what is expected:
//!
//! - `at`: the line and column that the underlined place holds;
//! - `names`: texts that the message or the help contains, separated by ` ; `;
//! - `alone`: nothing else is reported but hints;
//! - `area`: who keeps the check, `programs` or `hints`;
//! - `secrets`, `max_timeout` (seconds): what the config has; `beside`: files in the manifest's folder;
//! - `mend`: edits, `old => new`, after which nothing is reported but hints. `\n`, `\\` and invisible
//!   characters are written as escapes there.
//!
//! `not-yet.txt` lists the rows that are not reported this way yet.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolcrib_manifest::{Diagnostic, LintContext, Severity, lint_with};

struct Row {
    name: String,
    text: String,
    at: (usize, usize),
    names: Vec<String>,
    alone: bool,
    beside: Vec<String>,
    known: LintContext,
    mends: Vec<(String, String)>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes")
}

fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = ["operators", "own", "newcomers", "everyday"]
        .iter()
        .flat_map(|group| {
            let files = fs::read_dir(folder().join(group)).expect("a folder of mistakes");
            files.map(move |file| row(group, &file.expect("a file").path()))
        })
        .collect();
    rows.retain(|row| cfg!(feature = "cel") || !row.text.contains("constraints:"));
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    rows
}

fn row(group: &str, path: &Path) -> Row {
    let text = fs::read_to_string(path).expect("a file");
    let stem = path.file_stem().expect("a name").to_string_lossy();
    let values = |key: &str| -> Vec<String> {
        let prefix = format!("# {key}: ");
        let header = text.lines().take_while(|line| line.starts_with("# "));
        header.filter_map(|line| line.strip_prefix(&prefix)).map(str::to_owned).collect()
    };
    let list = |key: &str, separator: &str| -> Vec<String> {
        values(key).iter().flat_map(|line| line.split(separator).map(str::to_owned)).collect()
    };
    let at = values("at").pop().expect("a place");
    let (line, column) = at.split_once(':').expect("a line and a column");
    let secrets = list("secrets", ", ");
    let seconds = values("max_timeout").pop().map(|text| text.parse().expect("seconds"));
    let mut known = LintContext::default().files(true);
    if !secrets.is_empty() {
        known = known.secrets(secrets);
    }
    if let Some(seconds) = seconds {
        known = known.max_timeout(Duration::from_secs(seconds));
    }
    let plain = |text: &str| {
        let text = text.replace("\\u{200b}", "\u{200b}").replace("\\u{a0}", "\u{a0}");
        text.replace("\\n", "\n").replace("\\\\", "\\")
    };
    let mends = values("mend");
    let mends = mends.iter().map(|mend| {
        let (old, new) = mend.split_once(" => ").expect("an edit");
        (plain(old), plain(new))
    });
    Row {
        name: format!("{group}/{stem}"),
        at: (line.parse().expect("a line"), column.parse().expect("a column")),
        names: list("names", " ; "),
        alone: values("alone") == ["yes"],
        beside: list("beside", ", "),
        known,
        mends: mends.collect(),
        text: text.clone(),
    }
}

impl Row {
    fn lint(&self, text: &str) -> Vec<Diagnostic> {
        let dir = tempfile::tempdir().expect("a folder");
        for file in &self.beside {
            fs::write(dir.path().join(file), "#!/bin/sh\n").expect("a file");
        }
        let file = dir.path().join("mistake.yaml");
        lint_with(&file.to_string_lossy(), text, &self.known, &|_| Vec::new()).diagnostics
    }

    /// The text after all edits, which are made below the header.
    fn mended(&self) -> Option<String> {
        if self.mends.is_empty() {
            return None;
        }
        let start = self.text.split_inclusive('\n').take_while(|line| line.starts_with("# "));
        let start = start.map(str::len).sum();
        let (header, body) = self.text.split_at(start);
        let mut body = body.to_owned();
        for (old, new) in &self.mends {
            assert_eq!(body.matches(old.as_str()).count(), 1, "{}: {old}", self.name);
            body = body.replacen(old.as_str(), new, 1);
        }
        Some(format!("{header}{body}"))
    }

    /// What is wrong with what is said, if anything.
    fn problem(&self) -> Option<String> {
        let found = self.lint(&self.text);
        let shown = || -> String {
            let all = found.iter().map(|one| one.render(&self.name, &self.text, false) + "\n");
            all.collect()
        };
        let (line, column) = self.at;
        let here = |one: &&Diagnostic| {
            let (first, start) = one.position(&self.text);
            let width = self.text[one.span.clone()].chars().count().max(1);
            first == line && (start..start + width).contains(&column)
        };
        let named = |one: &Diagnostic| {
            let said = format!("{} {}", one.message, one.help.as_deref().unwrap_or_default());
            self.names.iter().all(|name| said.contains(name.as_str()))
        };
        if found.is_empty() {
            return Some("nothing is reported".to_owned());
        }
        if !found.iter().any(|one| here(&one)) {
            return Some(format!("nothing is reported at {line}:{column}\n{}", shown()));
        }
        if !found.iter().filter(here).any(named) {
            return Some(format!("the repair {:?} is not named\n{}", self.names, shown()));
        }
        let others = found.iter().filter(|one| one.severity != Severity::Hint && !here(one));
        if self.alone && others.count() > 0 {
            return Some(format!("something else is reported, too\n{}", shown()));
        }
        None
    }
}

/// The rows that are not reported as they should be.
fn not_yet() -> BTreeSet<String> {
    let list = fs::read_to_string(folder().join("not-yet.txt")).expect("the list");
    list.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn every_mistake_is_reported_at_its_place_with_its_repair() {
    let rows = rows();
    assert!(rows.len() >= 80 || cfg!(not(feature = "cel")), "{}", rows.len());
    let listed = not_yet();
    let mut wrong = String::new();
    for row in &rows {
        match (row.problem(), listed.contains(&row.name)) {
            (Some(problem), false) => {
                let _ = writeln!(wrong, "== {}: {problem}", row.name);
            }
            (None, true) => {
                let _ = writeln!(wrong, "== {}: found: take it out of not-yet.txt", row.name);
            }
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_mended_texts_have_no_errors_and_no_warnings() {
    let mut unmended = 0;
    let mut wrong = String::new();
    for row in rows() {
        let Some(text) = row.mended() else {
            unmended += 1;
            continue;
        };
        let found = row.lint(&text);
        for one in found.iter().filter(|one| one.severity != Severity::Hint) {
            let _ = writeln!(wrong, "{}", one.render(&row.name, &text, false));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(unmended, 2, "two of the operators' mistakes have no mending of one line");
}
