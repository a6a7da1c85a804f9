//! The layout of the repository: folders that one can overlook, and files with one subject.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::path::{Path, PathBuf};

/// The most entries of a folder with Rust source; about fifteen is typical.
const ENTRIES: usize = 20;
/// The most lines of a Rust file; under 400 is typical.
const LINES: usize = 600;
/// The most lines of unit tests in the file that they test. Longer ones are in a `tests.rs`.
const UNIT_TESTS: usize = 150;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

/// Every folder below `folder` that holds Rust source, with its entries.
fn folders(folder: &Path, found: &mut Vec<(PathBuf, Vec<PathBuf>)>) {
    let entries = fs::read_dir(folder).expect("a folder of the repository");
    let entries: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    for entry in entries.iter().filter(|entry| entry.is_dir() && !entry.ends_with("target")) {
        folders(entry, found);
    }
    if entries.iter().any(|entry| is_source(entry)) {
        found.push((folder.to_owned(), entries));
    }
}

fn source_folders() -> Vec<(PathBuf, Vec<PathBuf>)> {
    let mut found = Vec::new();
    for folder in ["crates", "benches", "examples", "fuzz"] {
        folders(&root().join(folder), &mut found);
    }
    assert!(found.len() > 100, "{} folders with Rust source were found", found.len());
    found
}

/// Checks every Rust file; `problem` says what is wrong with it.
fn check_files(problem: impl Fn(&str) -> Option<String>) {
    let folders = source_folders();
    let files = folders.iter().flat_map(|(_, entries)| entries).filter(|entry| is_source(entry));
    let problems: Vec<String> = files
        .filter_map(|file| {
            let text = fs::read_to_string(file).expect("a source file");
            problem(&text).map(|problem| format!("{}: {problem}", file.display()))
        })
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn no_source_folder_has_more_than_twenty_entries() {
    let full: Vec<String> = source_folders()
        .iter()
        .filter(|(_, entries)| entries.len() > ENTRIES)
        .map(|(folder, entries)| format!("{}: {} entries", folder.display(), entries.len()))
        .collect();
    assert!(full.is_empty(), "group these by subject:\n{}", full.join("\n"));
}

#[test]
fn no_source_file_has_more_than_six_hundred_lines() {
    check_files(|text| {
        let lines = text.lines().count();
        (lines > LINES).then(|| format!("{lines} lines: split it by subject"))
    });
}

#[test]
fn long_unit_tests_are_in_files_of_their_own() {
    check_files(|text| {
        let start = text.find("\nmod tests {\n")?;
        let lines = text[start..].lines().count();
        (lines > UNIT_TESTS)
            .then(|| format!("{lines} lines of unit tests: move them to `tests.rs`"))
    });
}
