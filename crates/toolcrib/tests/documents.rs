//! The tests and files that the documents name exist.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All words of the sources below a folder. A test is named by `fn`, by a macro, or in a Python file.
fn words(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository").flatten() {
        let path = entry.path();
        if path.is_dir() {
            if entry.file_name() != "target" {
                words(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "py") {
            let text = fs::read_to_string(&path).expect("a source file");
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            found.extend(
                text.split(|c| !word(c)).filter(|word| word.contains('_')).map(str::to_owned),
            );
        }
    }
}

/// The names in backticks of the rows of a document's tables, from the second column on.
fn named(document: &str) -> Vec<String> {
    let rows = document.lines().filter(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.trim_matches('|').split_once(" | "));
    cells
        .flat_map(|(_, rest)| rest.split('`').skip(1).step_by(2))
        .filter(|name| {
            name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_')
        })
        .filter(|name| name.matches('_').count() >= 3)
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_test_that_a_document_names_exists() {
    let mut known = BTreeSet::new();
    for folder in ["crates", "benches", "fuzz"] {
        words(&root().join(folder), &mut known);
    }
    let mut names = 0;
    for document in ["SECURITY.md", "ARCHITECTURE.md"] {
        let text = fs::read_to_string(root().join(document)).expect("a document");
        for name in named(&text) {
            names += 1;
            assert!(
                known.contains(&name),
                "{document} names the test {name}, which does not exist"
            );
        }
    }
    assert!(names > 200, "{names} names were found: the tables have another form");
}
