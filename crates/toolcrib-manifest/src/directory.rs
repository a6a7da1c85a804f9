//! Directories of manifests: which files count, in which order, and what became of each.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use toolcrib_tool::ToolDefinition;

use crate::declaration::Declaration;
use crate::diagnostic::Diagnostic;
use crate::document::FILE_MAX_BYTES;
use crate::lint::{Remark, lint_str};
use crate::manifest::{Loaded, load_str};
use crate::source::{Span, without_bom};

/// What became of a list of directories.
#[derive(Debug, Clone, Default)]
pub struct DirectoryLoad {
    /// Every file that counts, in the order that decides names: directories as they were given,
    /// files in byte order of their names.
    pub files: Vec<FileLoad>,
    /// Directories that could not be read, with the reason.
    pub unreadable: Vec<FileLoad>,
}

/// What became of one file.
#[derive(Debug, Clone)]
pub struct FileLoad {
    /// The file, or the directory that could not be read.
    pub path: PathBuf,
    /// Its text without a byte order mark; empty if it could not be read.
    pub text: String,
    /// Its tools and diagnostics.
    pub loaded: Loaded,
}

impl FileLoad {
    /// Diagnostics as text, in the manner of a compiler.
    pub fn render(&self, colour: bool) -> String {
        let file = self.path.to_string_lossy();
        let problems = self.loaded.diagnostics.iter();
        problems.map(|problem| problem.render(&file, &self.text, colour) + "\n").collect()
    }

    /// Adds something that only shows beside other files.
    pub fn add(&mut self, diagnostic: Diagnostic) {
        let all = &mut self.loaded.diagnostics;
        let at = all.partition_point(|found| found.span.start <= diagnostic.span.start);
        all.insert(at, diagnostic);
    }

    /// The place of the word that begins in this line and column, as declarations carry them.
    pub fn scalar_at(&self, line: u32, column: u32) -> Span {
        let line = line.saturating_sub(1) as usize;
        let start = self.text.split_inclusive('\n').take(line).map(str::len).sum::<usize>();
        let rest = self.text.get(start..).unwrap_or_default();
        let column = column.saturating_sub(1) as usize;
        let start = start + rest.chars().take(column).map(char::len_utf8).sum::<usize>();
        let word = self.text.get(start..).unwrap_or_default();
        let ends = |c: char| !(c.is_alphanumeric() || "_-\"'".contains(c));
        start..start + word.find(ends).unwrap_or(word.len())
    }

    fn unread(path: &Path, code: &'static str, message: String, help: &str) -> Self {
        let diagnostic = Diagnostic::error(code, &(0..0), message).help(help);
        Self {
            path: path.to_owned(),
            text: String::new(),
            loaded: Loaded { declarations: Vec::new(), diagnostics: vec![diagnostic] },
        }
    }
}

impl DirectoryLoad {
    /// All tools of files without errors, in order.
    pub fn declarations(&self) -> impl Iterator<Item = &Declaration> {
        self.files.iter().flat_map(|file| &file.loaded.declarations)
    }

    /// Everything that was found wrong, with the file or directory it concerns.
    pub fn problems(&self) -> impl Iterator<Item = (&FileLoad, &Diagnostic)> {
        let all = self.unreadable.iter().chain(&self.files);
        all.flat_map(|file| file.loaded.diagnostics.iter().map(move |problem| (file, problem)))
    }

    /// Whether a file or a directory was refused.
    pub fn has_errors(&self) -> bool {
        self.unreadable.iter().chain(&self.files).any(|file| file.loaded.has_errors())
    }
}

/// Loads every manifest of the directories; a broken one does not keep the others from loading.
///
/// Files that count end in `.yaml`, `.yml` or `.toml` and stand in the directory itself. Dot files
/// and the backups of editors do not count.
pub fn load_dirs(directories: &[PathBuf]) -> DirectoryLoad {
    let mut load = DirectoryLoad::default();
    for directory in directories {
        match manifests(directory) {
            Ok(paths) => load.files.extend(paths.iter().map(|path| load_file(path))),
            Err(error) => load.unreadable.push(unreadable_dir(directory, &error)),
        }
    }
    load
}

/// Looks through directories and single files as [`lint_str`] does, with all processors.
///
/// Directories and files are taken in the order they are given; what counts in a directory is what
/// [`load_dirs`] takes.
pub fn lint_paths(
    paths: &[PathBuf],
    remarks: &(dyn Fn(&ToolDefinition) -> Vec<Remark> + Sync),
) -> DirectoryLoad {
    let mut load = DirectoryLoad::default();
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            match manifests(path) {
                Ok(found) => files.extend(found),
                Err(error) => load.unreadable.push(unreadable_dir(path, &error)),
            }
        } else {
            files.push(path.clone());
        }
    }
    // A file that is named twice is one file, and no rival of itself.
    let mut seen = HashSet::new();
    files.retain(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
    let workers = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let next = AtomicUsize::new(0);
    let lint = |file: &str, text: &str| lint_str(file, text, remarks);
    let work = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = files.get(at) else { return done };
            done.push((at, load_file_with(path, &lint)));
        }
    };
    let mut done: Vec<(usize, FileLoad)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers.min(files.len())).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        for other in others {
            match other.join() {
                Ok(theirs) => done.extend(theirs),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(at, _)| *at);
    load.files.extend(done.into_iter().map(|(_, file)| file));
    load
}

fn unreadable_dir(directory: &Path, error: &io::Error) -> FileLoad {
    let message = format!("the directory cannot be read: {error}");
    let help = "create it, or correct the list of directories";
    FileLoad::unread(directory, "unreadable", message, help)
}

/// Loads one manifest. What keeps it from being read is a diagnostic like any other.
pub fn load_file(path: &Path) -> FileLoad {
    load_file_with(path, &load_str)
}

fn load_file_with(path: &Path, load: &dyn Fn(&str, &str) -> Loaded) -> FileLoad {
    let bytes = match read_limited(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let message = "there is no such file or directory".to_owned();
            return FileLoad::unread(path, "unreadable", message, "check the spelling of the path");
        }
        Err(error) => {
            let message = format!("the file cannot be read: {error}");
            let help = "check its owner and permissions";
            return FileLoad::unread(path, "unreadable", message, help);
        }
    };
    if bytes.len() > FILE_MAX_BYTES {
        let message = "the file has more than 4 MiB; no manifest does".to_owned();
        return FileLoad::unread(path, "too-large", message, "split it into several files");
    }
    match String::from_utf8(bytes) {
        Ok(text) => {
            let loaded = load(&path.to_string_lossy(), &text);
            FileLoad { path: path.to_owned(), text: without_bom(&text).to_owned(), loaded }
        }
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..at].split(|byte| *byte == b'\n').count();
            let message =
                format!("the file is not UTF-8: byte {at}, in line {line}, begins no character");
            FileLoad::unread(path, "not-utf8", message, "save the file as UTF-8")
        }
    }
}

/// Reads a regular file, and at most one byte more than is allowed.
///
/// A named pipe or a device would block or never end, so only regular files are opened.
fn read_limited(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The files of a directory that count, in byte order of their names.
fn manifests(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if counts(&entry.file_name()) && !entry.path().is_dir() {
            paths.push(entry.path());
        }
    }
    paths.sort_by(|a, b| {
        let name = |path: &Path| path.file_name().map(|name| name.as_encoded_bytes().to_vec());
        name(a).cmp(&name(b))
    });
    Ok(paths)
}

/// Whether a name is a manifest's: not a dot file, and no editor's backup or lock.
pub fn counts(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    if bytes.starts_with(b".") || bytes.starts_with(b"#") || bytes.ends_with(b"~") {
        return false;
    }
    let extension = Path::new(name).extension();
    extension.is_some_and(|found| ["yaml", "yml", "toml"].iter().any(|known| found == *known))
}
