//! `file_search`, `search_files`: finds lines that match a regular expression in the files of a folder.

use std::fmt::Write as _;

use globset::GlobMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_sandbox::{Kind, OpenFile, WalkControl, WalkReport, WorkspaceError};
use toolcrib_tool::{ToolError, ToolOutput};

use super::call::FileCall;
use super::ignored::IgnoreRules;
use super::list::matcher;
use super::matches::{FileMatches, Pattern};
use super::read_budget::ReadBudget;
use super::refusal::refusal;

/// The most files and folders that one call visits.
const MAX_SEEN: u64 = 200_000;

/// The most bytes that one call reads; of binary files only the beginning is read.
const MAX_READ: u64 = 2 << 30;

/// The longest line that is searched, in bytes; files with longer lines are skipped.
const MAX_LINE: usize = 8 << 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArgs {
    /// A regular expression that a line has to match: `fn \w+\(`. No line is matched across its end.
    #[schemars(length(min = 1, max = 2000))]
    pattern: String,
    /// The folder, or the one file, to search, from the project's folder. Default `.`.
    path: Option<String>,
    /// Which files: a pattern such as `*.rs`, or with a `/` for the path from `path`: `src/**/*.ts`.
    /// Default: all.
    glob: Option<String>,
    /// Take `pattern` as plain text. Default false.
    #[serde(default)]
    literal: bool,
    /// Treat upper and lower case alike. Default false.
    #[serde(default)]
    ignore_case: bool,
    /// How many lines to show before and after each match. Default 0.
    #[serde(default)]
    #[schemars(range(max = 20))]
    context: usize,
    /// How many matching lines to show at most. Default 100.
    #[schemars(range(min = 1, max = 2000))]
    limit: Option<usize>,
    /// Search what `.gitignore` excludes, too. Default false.
    #[serde(default)]
    include_ignored: bool,
}

super::in_both_profiles! {
    /// Search the text files of the project for lines that match a regular expression, with the lines
    /// around them. What `.gitignore` excludes, the folder `.git` and binary files are left out.
    #[tool(
        category = "file",
        tags("file", "grep", "regex"),
        read_only,
        destructive = false,
        idempotent,
        open_world = false,
        reads("files"),
        empty_as_absent("path", "glob"),
        examples(
            r#"{"pattern": "TODO|FIXME"}"#,
            r#"{"pattern": "fn \\w+_test\\(", "path": "src", "glob": "*.rs", "context": 2}"#,
            r#"{"pattern": "a.b(", "literal": true, "ignore_case": true}"#
        )
    )]
    file_search / search_files (SearchArgs) => search
}

fn search(args: &SearchArgs, call: &FileCall<'_>) -> Result<ToolOutput, ToolError> {
    let folder = args.path.as_deref().unwrap_or(".");
    let path = call.relative(folder)?;
    let mut hunt = FileSearch {
        pattern: Pattern::new(&args.pattern, args.literal, args.ignore_case)?,
        glob: args
            .glob
            .as_deref()
            .map(|glob| Ok::<_, ToolError>((matcher(glob)?, glob.contains('/'))))
            .transpose()?,
        searcher: SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .before_context(args.context)
            .after_context(args.context)
            .heap_limit(Some(MAX_LINE))
            .build(),
        limit: args.limit.unwrap_or(100),
        read_budget: ReadBudget::new(MAX_READ),
        found: SearchTotals::default(),
    };
    let entry = call.workspace.look(folder).map_err(|error| refusal(folder, error))?;
    if entry.is_some_and(|entry| entry.kind == Kind::Folder) {
        let ignored = (!args.include_ignored).then(|| IgnoreRules::above(&call.workspace, &path));
        hunt.folder(folder, &path, ignored, call)?;
    } else {
        let file = call.workspace.open_file(folder).map_err(|error| refusal(folder, error))?;
        hunt.file(&file, &path, call);
    }
    call.check_cancelled()?;
    hunt.found.cut |= hunt.read_budget.exhausted();
    Ok(hunt.found.output(hunt.limit))
}

/// A running search.
struct FileSearch {
    pattern: Pattern,
    /// Which files, and whether the pattern applies to the path instead of the name.
    glob: Option<(GlobMatcher, bool)>,
    searcher: Searcher,
    limit: usize,
    read_budget: ReadBudget,
    found: SearchTotals,
}

/// The results so far.
#[derive(Default)]
struct SearchTotals {
    text: String,
    matches: Vec<Value>,
    /// Matching lines, shown or not.
    total: usize,
    /// Files with matching lines.
    files: usize,
    /// Files that were searched.
    searched: u64,
    /// Files that could not be searched: no permission, or a line that is too long.
    unreadable: u64,
    /// A limit ended the search early.
    cut: bool,
}

impl FileSearch {
    fn folder(
        &mut self,
        folder: &str,
        shown: &str,
        mut ignored: Option<IgnoreRules>,
        call: &FileCall<'_>,
    ) -> Result<(), ToolError> {
        let walked = call.workspace.walk(folder, MAX_SEEN, &mut |visit| {
            if call.cx.is_cancelled() || self.read_budget.exhausted() {
                return WalkControl::Stop;
            }
            let is_folder = visit.kind() == Kind::Folder;
            if is_folder && visit.path().ends_with(".git") {
                return WalkControl::Pass;
            }
            if ignored.as_mut().is_some_and(|ignored| ignored.covers(visit, is_folder)) {
                return WalkControl::Pass;
            }
            if visit.kind() != Kind::File || !self.wants(visit.path()) {
                return WalkControl::Enter;
            }
            let name = visit.shown();
            let name = if shown == "." { name } else { format!("{shown}/{name}") };
            match visit.open() {
                Ok(file) => self.file(&file, &name, call),
                Err(WorkspaceError::NotFound) => {}
                Err(_) => self.found.unreadable += 1,
            }
            WalkControl::Enter
        });
        let WalkReport { cut, closed, .. } = walked.map_err(|error| refusal(folder, error))?;
        self.found.cut |= cut;
        self.found.unreadable += closed;
        Ok(())
    }

    fn wants(&self, path: &std::path::Path) -> bool {
        let Some((glob, by_path)) = &self.glob else { return true };
        let name = path.file_name().map(std::path::Path::new).filter(|_| !by_path);
        glob.is_match(name.unwrap_or(path))
    }

    fn file(&mut self, file: &OpenFile, name: &str, call: &FileCall<'_>) {
        self.found.searched += 1;
        let room = self.limit.saturating_sub(self.found.matches.len());
        let mut matches = FileMatches::new(&self.pattern, room);
        let reader = self.read_budget.reader(file.file(), || call.cx.is_cancelled());
        if self.pattern.search(&mut self.searcher, reader, &mut matches).is_err() {
            self.found.unreadable += 1;
        }
        let Some((total, shown)) = matches.finish() else { return };
        self.found.files += 1;
        self.found.total += total;
        if !shown.is_empty() {
            let _ = writeln!(self.found.text, "{name}");
        }
        for block in shown {
            self.found.text.push_str(&block.text);
            for (line, text) in block.lines {
                self.found.matches.push(json!({"path": name, "line": line, "text": text}));
            }
        }
    }
}

impl SearchTotals {
    fn output(mut self, limit: usize) -> ToolOutput {
        let (total, files, searched) = (self.total, self.files, self.searched);
        let shown = self.matches.len();
        let mut said = match total {
            0 => format!("no line matches in {searched} files"),
            1 => format!("1 line in 1 of {searched} files"),
            _ => format!("{total} lines in {files} of {searched} files"),
        };
        if total > shown {
            let _ =
                write!(said, "; the first {limit} are shown: narrow it by pattern, path or glob");
        }
        if self.cut {
            said.push_str("; a limit ended the search early: search one subfolder at a time");
        }
        if self.unreadable > 0 {
            let _ = write!(said, "; {} could not be searched", self.unreadable);
        }
        let _ = write!(self.text, "[{said}]");
        let data = json!({
            "matches": self.matches,
            "total": total,
            "files": files,
            "searched": searched,
            "complete": total == shown && !self.cut && self.unreadable == 0,
        });
        ToolOutput::from(self.text).with_data(data)
    }
}
