//! `--fix`: applies fixes that are unambiguous.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolcrib::manifest::directory::{DirectoryLoad, FileLoad};
use toolcrib::manifest::{AppliedFix, fix_str};

use crate::screen::{self, ERROR, STRONG};

/// The edits of one file.
pub(super) struct FileEdits {
    path: PathBuf,
    pub(super) applied: Vec<AppliedFix>,
    /// Why the file could not be written; then it is unchanged.
    pub(super) failure: Option<String>,
}

impl FileEdits {
    pub(super) fn to_values(&self) -> Vec<Value> {
        let file = self.path.to_string_lossy();
        self.applied
            .iter()
            .map(|applied| {
                json!({
                    "file": file,
                    "line": applied.line,
                    "column": applied.column,
                    "code": applied.code,
                    "fix": applied.what,
                })
            })
            .collect()
    }

    pub(super) fn print(&self) {
        let file = self.path.display();
        for AppliedFix { line, column, code, what, .. } in &self.applied {
            screen::note(format!(
                "{STRONG}fixed{STRONG:#} {file}:{line}:{column}: {what} [{code}]"
            ));
        }
        if let Some(failure) = &self.failure {
            screen::note(format!("{ERROR}error{ERROR:#}: {file} was not edited: {failure}"));
        }
        screen::note("");
    }
}

/// Applies all fixes.
pub(super) fn apply_fixes(files: &DirectoryLoad) -> Vec<FileEdits> {
    let offered = |file: &&FileLoad| file.loaded.diagnostics.iter().any(|p| p.fix.is_some());
    files.files.iter().filter(offered).filter_map(fix_file).collect()
}

fn fix_file(file: &FileLoad) -> Option<FileEdits> {
    let name = file.path.to_string_lossy();
    let fixed = fix_str(&name, &file.text);
    if fixed.applied.is_empty() {
        return None;
    }
    let path = file.path.clone();
    Some(match replace(&path, &file.text, &fixed.text) {
        Ok(()) => FileEdits { path, applied: fixed.applied, failure: None },
        Err(error) => FileEdits { path, applied: Vec::new(), failure: Some(error.to_string()) },
    })
}

/// Replaces the text of a file atomically: the new text is written to a temporary file with the
/// same permissions, which is then renamed. A byte order mark is kept.
fn replace(path: &Path, read: &str, after: &str) -> io::Result<()> {
    // Edit the target of a link and keep the link.
    let path = path.canonicalize()?;
    let now = fs::read(&path)?;
    let mark: &[u8] = if now.starts_with("\u{feff}".as_bytes()) { &now[..3] } else { &[] };
    if now.get(mark.len()..) != Some(read.as_bytes()) {
        return Err(io::Error::other("it has changed since it was read; run the command again"));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // A dot file, which directory watchers ignore.
    let temporary = path.with_file_name(format!(".{name}.{}.fix", std::process::id()));
    let write = || {
        let mut file = fs::File::create_new(&temporary)?;
        file.set_permissions(fs::metadata(&path)?.permissions())?;
        file.write_all(mark)?;
        file.write_all(after.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, &path)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })
}
