//! The gallery: files with one mistake each, and a few with several, as an author meets them. What is
//! said about each is a snapshot, and the page `src/docs/diagnostics.md` shows all of them.
//!
//! `TOOLCRIB_WRITE_DOCS=1 cargo test -p toolcrib-manifest gallery` writes the page anew.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use toolcrib_manifest::{CODES, Diagnostic, Severity, fix_str, lint_str};

/// A file of the gallery.
struct Broken {
    /// Its name with its ending.
    file: String,
    /// What its author did, from its first line.
    mistake: String,
    text: String,
    found: Vec<Diagnostic>,
}

impl Broken {
    /// Everything that is said about it, as `check` shows it.
    fn shown(&self) -> String {
        let shown = self.found.iter().map(|found| found.render(&self.file, &self.text, false));
        shown.collect::<Vec<_>>().join("\n\n")
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All files, in the order of their names.
fn gallery() -> Vec<Broken> {
    let mut paths: Vec<PathBuf> = fs::read_dir(root().join("tests/gallery"))
        .expect("the gallery")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    paths.iter().map(|path| broken(path)).collect()
}

fn broken(path: &Path) -> Broken {
    let file = path.file_name().expect("a name").to_string_lossy().into_owned();
    let text = fs::read_to_string(path).expect("a file");
    let first = text.lines().next().unwrap_or_default();
    let mistake =
        first.strip_prefix("# ").expect("a first line that says what is wrong").to_owned();
    let found = lint_str(&file, &text, &|_| Vec::new()).diagnostics;
    Broken { file, mistake, text, found }
}

#[test]
fn what_is_said_about_each_file_is_as_it_was() {
    for broken in gallery() {
        assert!(!broken.found.is_empty(), "{} has no mistake", broken.file);
        insta::with_settings!({
            snapshot_path => root().join("tests/gallery/snapshots"),
            prepend_module_to_snapshot => false,
            omit_expression => true,
            description => broken.mistake.clone(),
        }, {
            insta::assert_snapshot!(broken.file.replace('.', "_"), broken.shown());
        });
    }
}

#[test]
fn a_file_with_windows_line_endings_is_shown_as_any_other() {
    for broken in gallery() {
        let text = broken.text.replace('\n', "\r\n");
        let found = lint_str(&broken.file, &text, &|_| Vec::new()).diagnostics;
        let shown = found.iter().map(|found| found.render(&broken.file, &text, false));
        let shown = shown.collect::<Vec<_>>().join("\n\n");
        assert!(!shown.contains('\u{240d}'), "{shown}");
        assert_eq!(shown, broken.shown(), "{}", broken.file);
    }
}

#[test]
fn a_file_with_one_mistake_has_one_problem() {
    let files = gallery();
    let single = files.iter().filter(|broken| {
        let worst = broken.found.iter().map(|found| found.severity).min();
        broken.found.iter().filter(|found| Some(found.severity) == worst).count() == 1
    });
    assert!(single.count() >= 50, "one mistake is told once");
    assert!(files.len() >= 60);
}

#[test]
fn every_message_says_where_and_most_say_what_would_be_right() {
    for broken in gallery() {
        for found in &broken.found {
            let place = &broken.text[found.span.clone()];
            assert!(!place.trim().is_empty(), "{}: {} has no place", broken.file, found.code);
            // Where the choices are listed, nothing more can be said.
            let said = found.help.is_some() || found.message.contains("expects one of");
            assert!(said, "{}: {} does not help: {}", broken.file, found.code, found.message);
        }
    }
}

#[test]
fn the_page_shows_the_gallery_as_it_is() {
    let path = root().join("src/docs/diagnostics.md");
    let page = page();
    if std::env::var_os("TOOLCRIB_WRITE_DOCS").is_some() {
        fs::write(&path, &page).expect("the page is written");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "src/docs/diagnostics.md is not what is said now: run \
         `TOOLCRIB_WRITE_DOCS=1 cargo test -p toolcrib-manifest gallery`"
    );
}

/// The texts of all files below a folder.
fn read_all(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder of snapshots") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read_all(&path, text);
        } else {
            text.push_str(&fs::read_to_string(&path).expect("a snapshot"));
        }
    }
}

/// The page: every code with what it means, and the files of the gallery that show it.
fn page() -> String {
    let files = gallery();
    let mut page = String::from(
        "What is said about manifests, with an example of most of it.\n\n\
         Errors keep a file from being loaded, warnings are probably not meant, hints could be better.\n\
         What `toolcrib check --fix` edits is marked so. This page is written by a test from the files in\n\
         `tests/gallery`.\n",
    );
    let mut shown = BTreeSet::new();
    for code in CODES.iter() {
        let word = code.severity.as_str();
        let _ = write!(page, "\n# `{}`\n\n*{word}* — {}\n", code.code, code.summary);
        let _ = write!(page, "\n{}\n", code.help);
        let of_code = files.iter().filter(|broken| {
            let several = broken.file.starts_with("several");
            let worst = broken.found.iter().min_by_key(|found| found.severity);
            !several && worst.is_some_and(|found| found.code == code.code)
        });
        for broken in of_code {
            shown.insert(&broken.file);
            example(broken, &mut page);
        }
    }
    page.push_str("\n# Several at once\n");
    for broken in files.iter().filter(|broken| !shown.contains(&broken.file)) {
        example(broken, &mut page);
    }
    page
}

fn example(broken: &Broken, page: &mut String) {
    let fixed = fix_str(&broken.file, &broken.text);
    let mended = match fixed.applied.as_slice() {
        [] => String::new(),
        applied => {
            let done: Vec<&str> = applied.iter().map(|applied| applied.what.as_str()).collect();
            format!("\n\n`--fix` does this: {}.", done.join("; "))
        }
    };
    // Hints beside a warning are the same in every example.
    let worst = broken.found.iter().map(|found| found.severity).min();
    let several = broken.file.starts_with("several");
    let told: Vec<String> = broken
        .found
        .iter()
        .filter(|found| {
            several || Some(found.severity) == worst || found.severity != Severity::Hint
        })
        .map(|found| found.render(&broken.file, &broken.text, false))
        .collect();
    let told = told.join("\n\n");
    let mistake = &broken.mistake;
    let _ = write!(page, "\n{mistake}\n\n```text\n{told}\n```{mended}\n");
}

#[test]
fn every_code_is_shown_somewhere_or_said_why_not() {
    // Not to be shown in one text file: several files, bytes, sizes, and what others say.
    let elsewhere = [
        "bad-definition",
        "capped-timeout", // depends on a config
        "invalid-value",
        "missing-folder",    // depends on the disk
        "missing-grant",     // depends on the disk
        "missing-program",   // depends on the machine
        "missing-script",    // depends on the disk
        "missing-secret",    // about a config
        "needs-trust",       // depends on a config
        "not-supported-yet", // only of builds with fewer features
        "not-utf8",
        "provider-differs",
        "provider-refused",
        "provider-renamed",
        "refused-setting", // about a config
        "shadowed-name",
        "too-complex",
        "too-large",
        "ungranted-file", // depends on the disk
        "unknown-secret", // depends on a config
        "unlisted",
        "unmatched-name", // about a config
        "unreadable",
        "unstartable-script", // depends on the disk
    ];
    // Shown by the snapshots of this folder's other files only, beside the commoner ones here.
    let mut seen = String::new();
    for folder in ["tests/suite/diagnostics/snapshots", "tests/suite/loading/snapshots"] {
        read_all(&root().join(folder), &mut seen);
    }
    let here: BTreeSet<&str> =
        gallery().iter().flat_map(|broken| broken.found.iter().map(|found| found.code)).collect();
    let never: Vec<_> = CODES
        .iter()
        .map(|code| code.code.as_str())
        .filter(|code| {
            !here.contains(code)
                && !seen.contains(&format!("[{code}]"))
                && !elsewhere.contains(code)
        })
        .collect();
    assert!(never.is_empty(), "{never:?}");
}
