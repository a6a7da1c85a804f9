//! `--fix`: editing files where only one edit is right.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolcrib::manifest::directory::{DirectoryLoad, FileLoad};
use toolcrib::manifest::{Applied, fix_str};

use crate::screen::{self, ERROR, STRONG};

/// What was done to one file.
pub(super) struct Mended {
    path: PathBuf,
    pub(super) applied: Vec<Applied>,
    /// Why the file could not be written; then nothing of it was changed.
    pub(super) failure: Option<String>,
}

impl Mended {
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
        for Applied { line, column, code, what, .. } in &self.applied {
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

/// Mends every file that has something to mend.
pub(super) fn mend(files: &DirectoryLoad) -> Vec<Mended> {
    let offered = |file: &&FileLoad| file.loaded.diagnostics.iter().any(|p| p.fix.is_some());
    files.files.iter().filter(offered).filter_map(mend_file).collect()
}

fn mend_file(file: &FileLoad) -> Option<Mended> {
    let name = file.path.to_string_lossy();
    let fixed = fix_str(&name, &file.text);
    if fixed.applied.is_empty() {
        return None;
    }
    let path = file.path.clone();
    Some(match replace(&path, &file.text, &fixed.text) {
        Ok(()) => Mended { path, applied: fixed.applied, failure: None },
        Err(error) => Mended { path, applied: Vec::new(), failure: Some(error.to_string()) },
    })
}

/// Puts a text in the place of the one that was read, whole or not at all: it is written beside the
/// file, with its permissions, and takes its place. A byte order mark stays.
fn replace(path: &Path, read: &str, after: &str) -> io::Result<()> {
    // What a link points to is edited, and the link stays one.
    let path = path.canonicalize()?;
    let now = fs::read(&path)?;
    let mark: &[u8] = if now.starts_with("\u{feff}".as_bytes()) { &now[..3] } else { &[] };
    if now.get(mark.len()..) != Some(read.as_bytes()) {
        return Err(io::Error::other("it has changed since it was read; run the command again"));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // A dot file: whoever watches the directory passes it over.
    let beside = path.with_file_name(format!(".{name}.{}.fix", std::process::id()));
    let write = || {
        let mut file = fs::File::create_new(&beside)?;
        file.set_permissions(fs::metadata(&path)?.permissions())?;
        file.write_all(mark)?;
        file.write_all(after.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, &path)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}
