//! Loads directories of manifests: which files are loaded, in which order, and with which results.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use toolcrib_tool::ToolDefinition;

use crate::declaration::{Declaration, UpstreamDeclaration};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::position::{Span, without_bom};
use crate::document::FILE_MAX_BYTES;
use crate::lint::{LintContext, Remark, lint_with};
use crate::live::{FileVersion, Observation, observe};
use crate::manifest::{Loaded, load_str};

/// The subfolder of a directory of manifests that contains a catalogue of further manifests. Its
/// files are checked but never loaded; operators copy those they want.
pub const CATALOGUE: &str = "available";

/// The endings of manifests' names.
pub const ENDINGS: [&str; 3] = ["yaml", "yml", "toml"];

/// The number of files that take longer to load than a thread takes to start.
const FILES_PER_THREAD: usize = 16;
/// The number of bytes that take longer to load than a thread takes to start.
const BYTES_PER_THREAD: u64 = 64 * 1024;

/// The result of loading a list of directories.
#[derive(Debug, Clone, Default)]
pub struct DirectoryLoad {
    /// Every manifest, in the order that decides conflicts of names: directories as they were
    /// given, files in byte order of their names.
    pub files: Vec<FileLoad>,
    /// Directories that could not be read, with the reasons.
    pub unreadable: Vec<FileLoad>,
    paths: Vec<PathBuf>,
}

/// The result of loading one file.
#[derive(Debug, Clone)]
pub struct FileLoad {
    /// The file, or the directory that could not be read.
    pub path: PathBuf,
    /// Its text without a byte order mark; empty if it could not be read.
    pub text: String,
    /// Its declarations and diagnostics.
    pub loaded: Loaded,
    /// The position of its directory in the given list.
    pub rank: u32,
    /// The version of the file; `None` if it could not be read.
    pub(crate) version: Option<FileVersion>,
}

impl FileLoad {
    /// A file that is not a manifest, such as a config, with what was found about it.
    pub fn of_other(path: PathBuf, text: String, diagnostics: Vec<Diagnostic>) -> Self {
        let loaded = Loaded { diagnostics, ..Loaded::default() };
        Self { path, text, loaded, rank: 0, version: None }
    }

    /// The diagnostics as text, in the style of a compiler.
    pub fn render(&self, colour: bool) -> String {
        let file = self.path.to_string_lossy();
        let problems = self.loaded.diagnostics.iter();
        problems.map(|problem| problem.render(&file, &self.text, colour) + "\n").collect()
    }

    /// Adds a diagnostic that depends on other files.
    pub fn add(&mut self, diagnostic: Diagnostic) {
        let all = &mut self.loaded.diagnostics;
        let at = all.partition_point(|found| found.span.start <= diagnostic.span.start);
        all.insert(at, diagnostic);
    }

    /// The span of the word that begins at this line and column of a declaration's origin.
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
            loaded: Loaded { diagnostics: vec![diagnostic], ..Loaded::default() },
            rank: 0,
            version: None,
        }
    }
}

impl DirectoryLoad {
    /// All tools of files without errors, in order.
    pub fn declarations(&self) -> impl Iterator<Item = &Declaration> {
        self.files.iter().flat_map(|file| &file.loaded.declarations)
    }

    /// All MCP servers of files without errors, in order.
    pub fn upstreams(&self) -> impl Iterator<Item = &UpstreamDeclaration> {
        self.files.iter().flat_map(|file| &file.loaded.upstreams)
    }

    /// All diagnostics, with the file or directory of each.
    pub fn problems(&self) -> impl Iterator<Item = (&FileLoad, &Diagnostic)> {
        let all = self.unreadable.iter().chain(&self.files);
        all.flat_map(|file| file.loaded.diagnostics.iter().map(move |problem| (file, problem)))
    }

    /// Adds the results of other files, which do not take part in conflicts of names.
    pub fn append(&mut self, other: Self) {
        self.files.extend(other.files);
        self.unreadable.extend(other.unreadable);
    }

    /// Removes the errors about missing directories.
    pub fn forgive_missing(&mut self) {
        self.unreadable.retain(|dir| dir.path.exists());
    }

    /// The requested directories and files, without duplicates, in order.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Whether a file or a directory has errors.
    pub fn has_errors(&self) -> bool {
        self.unreadable.iter().chain(&self.files).any(|file| file.loaded.has_errors())
    }
}

/// Loads every manifest of the directories on all processors. A broken manifest does not keep the
/// others from loading. A path to a file is loaded as a manifest, whatever its name is.
///
/// Manifests are the files of the directory itself whose names end in `.yaml`, `.yml` or `.toml`,
/// except dot files and backups of editors. The [catalogue](CATALOGUE) is not loaded. A file that
/// is given twice is loaded once.
pub fn load_dirs(paths: &[PathBuf]) -> DirectoryLoad {
    load_paths(paths, &load_str)
}

/// Lints directories and single files as [`lint_str`](crate::lint_str) does.
///
/// The manifests and their order are those of [`load_dirs`].
pub fn lint_paths(
    paths: &[PathBuf],
    remarks: &(dyn Fn(&ToolDefinition) -> Vec<Remark> + Sync),
) -> DirectoryLoad {
    lint_paths_with(paths, &LintContext::default(), remarks)
}

/// Like [`lint_paths`], with knowledge about the config and the machine, as [`lint_with`] has it.
pub fn lint_paths_with(
    paths: &[PathBuf],
    context: &LintContext,
    remarks: &(dyn Fn(&ToolDefinition) -> Vec<Remark> + Sync),
) -> DirectoryLoad {
    load_paths(paths, &|file, text| lint_with(file, text, context, remarks))
}

fn load_paths(paths: &[PathBuf], read: &(dyn Fn(&str, &str) -> Loaded + Sync)) -> DirectoryLoad {
    let mut load = DirectoryLoad::default();
    for path in paths {
        if !load.paths.contains(path) {
            load.paths.push(path.clone());
        }
    }
    let mut files = Vec::new();
    for (rank, path) in (0..).zip(&load.paths) {
        if path.is_file() {
            files.push((path.clone(), rank));
            continue;
        }
        match manifests(path) {
            Ok(found) => files.extend(found.into_iter().map(|path| (path, rank))),
            Err(error) => {
                load.unreadable.push(FileLoad { rank, ..unreadable_dir(path, &error) });
            }
        }
    }
    // A file that is given twice is one file and does not conflict with itself. A directory
    // contains each file once.
    if load.paths.len() > 1 {
        let mut seen = HashSet::new();
        files.retain(|(path, _)| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
    }
    load.files = load_files(&files, read);
    load
}

/// Loads files on all processors; the results are in order.
fn load_files(
    files: &[(PathBuf, u32)],
    read: &(dyn Fn(&str, &str) -> Loaded + Sync),
) -> Vec<FileLoad> {
    let workers = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((path, rank)) = files.get(at) else { return done };
            done.push((at, load_file(path, *rank, read)));
        }
    };
    let others = workers.min(worth_threads(files, workers)).saturating_sub(1);
    let mut done: Vec<(usize, FileLoad)> = std::thread::scope(|scope| {
        let others: Vec<_> = (0..others).map(|_| scope.spawn(work)).collect();
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
    done.into_iter().map(|(_, file)| file).collect()
}

/// The number of threads for these files: many small files are worth several, and so are a few
/// large ones.
fn worth_threads(files: &[(PathBuf, u32)], workers: usize) -> usize {
    let by_number = files.len().div_ceil(FILES_PER_THREAD);
    if by_number >= workers {
        return by_number;
    }
    let size = |(path, _): &(PathBuf, u32)| fs::metadata(path).map_or(0, |found| found.len());
    let bytes: u64 = files.iter().map(size).sum();
    let by_bytes = usize::try_from(bytes.div_ceil(BYTES_PER_THREAD)).unwrap_or(workers);
    by_number.max(by_bytes.min(files.len()))
}

fn unreadable_dir(directory: &Path, error: &io::Error) -> FileLoad {
    if error.kind() == io::ErrorKind::NotFound {
        return missing(directory);
    }
    let message = format!("the directory cannot be read: {error}");
    let help = match error.kind() {
        io::ErrorKind::PermissionDenied => "check its owner and permissions",
        _ => "restore it, or correct the list of directories",
    };
    FileLoad::unread(directory, "unreadable", message, help)
}

/// Loads one manifest. If it cannot be read, the reason is a diagnostic.
fn load_file(path: &Path, rank: u32, read: &dyn Fn(&str, &str) -> Loaded) -> FileLoad {
    match observe(path, None) {
        Observation::File(file) => file.load(path, rank, read),
        Observation::Unread(load) => FileLoad { rank, ..*load },
        Observation::Busy => {
            let error = io::Error::new(io::ErrorKind::ResourceBusy, "the file is being written");
            FileLoad { rank, ..unread(path, &error) }
        }
        Observation::Missing { .. } | Observation::Same(_) => FileLoad { rank, ..missing(path) },
    }
}

/// Whether a path is a dangling link.
pub(crate) fn is_dead_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink())
}

/// The result for a path that does not exist.
fn missing(path: &Path) -> FileLoad {
    if is_dead_link(path) {
        let message = "it is a dangling link".to_owned();
        let help = "restore its target, or remove the link";
        return FileLoad::unread(path, "unreadable", message, help);
    }
    let message = "there is no such file or directory".to_owned();
    FileLoad::unread(path, "unreadable", message, "check the spelling of the path")
}

/// The result for a manifest that cannot be read.
pub(crate) fn unread(path: &Path, error: &io::Error) -> FileLoad {
    let message = format!("the file cannot be read: {error}");
    let help = match error.kind() {
        io::ErrorKind::InvalidInput => "only files, and links to files, are manifests: rename it",
        io::ErrorKind::PermissionDenied => "check its owner and permissions",
        _ => "check that it is a file, or a link to one, on a working disk",
    };
    FileLoad::unread(path, "unreadable", message, help)
}

/// Loads a manifest from its bytes.
pub(crate) fn load_bytes(
    path: &Path,
    bytes: Vec<u8>,
    read: &dyn Fn(&str, &str) -> Loaded,
) -> FileLoad {
    if bytes.len() > FILE_MAX_BYTES {
        let message = "the file is larger than 4 MiB, the limit for manifests".to_owned();
        return FileLoad::unread(path, "too-large", message, "split it into several files");
    }
    match String::from_utf8(bytes) {
        Ok(text) => {
            let loaded = read(&path.to_string_lossy(), &text);
            let text = without_bom(&text).to_owned();
            FileLoad { path: path.to_owned(), text, loaded, rank: 0, version: None }
        }
        Err(error) if is_utf16(error.as_bytes()) => {
            let message =
                "the file is UTF-16, as written by PowerShell's `>`, instead of UTF-8".to_owned();
            let help = "save it as UTF-8, in PowerShell with `Set-Content -Encoding utf8`";
            FileLoad::unread(path, "not-utf8", message, help)
        }
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..at].split(|byte| *byte == b'\n').count();
            let message = format!(
                "the file is not UTF-8: byte {at}, in line {line} does not begin a \
                 character"
            );
            FileLoad::unread(path, "not-utf8", message, "save the file as UTF-8")
        }
    }
}

/// Whether the bytes begin with the byte order mark of UTF-16.
fn is_utf16(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff])
}

/// The [catalogue](CATALOGUE) of a directory, if it has one.
pub fn catalogue(directory: &Path) -> Option<PathBuf> {
    let folder = directory.join(CATALOGUE);
    folder.is_dir().then_some(folder)
}

/// The manifests of a directory, in byte order of their names.
pub(crate) fn manifests(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        // The listing has the types of most entries; only links need a look at their targets.
        let is_dir = || match entry.file_type() {
            Ok(found) if !found.is_symlink() => found.is_dir(),
            _ => entry.path().is_dir(),
        };
        if counts(&name) && !is_dir() {
            names.push(name);
        }
    }
    names.sort_unstable_by(|a, b| a.as_encoded_bytes().cmp(b.as_encoded_bytes()));
    Ok(names.into_iter().map(|name| directory.join(name)).collect())
}

/// The names of the entries of a directory that are neither manifests nor hidden: files with other
/// endings, and folders other than the [catalogue](CATALOGUE), which end with a slash. Empty if the
/// directory cannot be read.
pub fn left_aside(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.file_name();
            let is_dir = entry.path().is_dir();
            let is_taken = if is_dir { name == CATALOGUE } else { counts(&name) };
            (!is_taken && !is_hidden(&name)).then(|| {
                let slash = if is_dir { "/" } else { "" };
                format!("{}{slash}", name.to_string_lossy())
            })
        })
        .collect();
    names.sort_unstable();
    names
}

impl DirectoryLoad {
    /// The entries of each directory that [`left_aside`] finds, except those that a manifest of the
    /// directory mentions, such as its scripts and workers.
    pub fn left_aside(&self) -> Vec<(&Path, Vec<String>)> {
        let of = |directory: &'_ PathBuf| {
            let here = |file: &&FileLoad| file.path.parent() == Some(directory.as_path());
            let texts: Vec<&str> =
                self.files.iter().filter(here).map(|file| file.text.as_str()).collect();
            let mut names = left_aside(directory);
            names.retain(|name| !texts.iter().any(|text| names_file(text, name)));
            names
        };
        let all = self.paths.iter().map(|directory| (directory.as_path(), of(directory)));
        all.filter(|(_, names)| !names.is_empty()).collect()
    }
}

/// Whether a manifest's text mentions a file or folder beside it as a whole word. A folder's name
/// ends with a slash.
fn names_file(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    text.match_indices(name).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        let begins = before.is_none_or(|c| !is_part(c));
        begins && (found.ends_with('/') || after.is_none_or(|c| !is_part(c)))
    })
}

/// Whether a name is that of a dot file or of an editor's backup or lock file.
fn is_hidden(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    bytes.starts_with(b".") || bytes.starts_with(b"#") || bytes.ends_with(b"~")
}

/// Whether a file of this name is a manifest: its ending is right, and it is neither a dot file nor
/// an editor's backup or lock file.
pub fn counts(name: &OsStr) -> bool {
    if is_hidden(name) {
        return false;
    }
    let extension = Path::new(name).extension();
    extension.is_some_and(|found| ENDINGS.iter().any(|known| found == *known))
}
