//! Directories of manifests: which files count, in which order, and what became of each.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::declaration::Declaration;
use crate::diagnostic::Diagnostic;
use crate::document::FILE_MAX_BYTES;
use crate::manifest::{Loaded, load_str};
use crate::source::without_bom;

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
            Err(error) => {
                let message = format!("the directory cannot be read: {error}");
                let help = "create it, or correct the list of directories";
                let unread = FileLoad::unread(directory, "unreadable", message, help);
                load.unreadable.push(unread);
            }
        }
    }
    load
}

/// Loads one manifest. What keeps it from being read is a diagnostic like any other.
pub fn load_file(path: &Path) -> FileLoad {
    let bytes = match read_limited(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            let message = format!("the file cannot be read: {error}");
            return FileLoad::unread(
                path,
                "unreadable",
                message,
                "check its owner and permissions",
            );
        }
    };
    if bytes.len() > FILE_MAX_BYTES {
        let message = "the file has more than 4 MiB; no manifest does".to_owned();
        return FileLoad::unread(path, "too-large", message, "split it into several files");
    }
    match String::from_utf8(bytes) {
        Ok(text) => {
            let loaded = load_str(&path.to_string_lossy(), &text);
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
