//! Files that an argument vector names and that do not exist: whoever creates them decides what runs.

use std::borrow::Cow;
use std::path::PathBuf;

use super::declaration_folders::DeclarationFolders;
use super::entry::VectorEntry;
use super::programs::{
    changes_folder, folder_in, is_interpreter, is_run_option, looks_like_a_file,
    runs_its_arguments, runs_no_file, runs_only_options,
};
use super::roles::{self, WordRole};
use super::words::ArgumentText;
use super::{DecidingFiles, options};

/// An entry of an argument vector of which a file may be missing.
#[derive(Clone, Copy)]
pub(super) struct AbsentEntry<'e> {
    pub(super) entry: VectorEntry<'e>,
    /// Whether it is the script of an interpreter.
    pub(super) is_script: bool,
    /// Whether no entry so far was certainly code.
    pub(super) is_code_next: bool,
}

/// How certain it is that a program runs a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Certainty {
    /// It does nothing without the file.
    Required,
    /// It runs the file if the word means a file.
    Possible,
}

impl DecidingFiles {
    /// Adds the files that an entry names and that do not exist: required ones to those that are missing, others to
    /// those that are absent. Returns whether one is missing.
    pub(super) fn absent(
        &mut self,
        words: &[ArgumentText],
        at: usize,
        absent: AbsentEntry<'_>,
        around: &DeclarationFolders<'_>,
    ) -> bool {
        let Some(text) = words[at].text() else { return false };
        let cwd = folder_of_files(&words[..at], around);
        let mut is_missing = false;
        for (part, certainty) in parts(words, at, text, absent) {
            let place: PathBuf = cwd.join(&*part).components().collect();
            let is_name = !part.is_empty() && part.len() <= 4096 && !part.starts_with('-');
            if !is_name || place.exists() || around.is_written_or_data(&place) {
                continue;
            }
            // A link may lead to a file that tools can create, and programs could replace it.
            if around.is_behind_a_link(&place) {
                self.linked.push(place);
                continue;
            }
            match certainty {
                Certainty::Required => {
                    self.places.push(place.clone());
                    self.missing.push(place);
                    is_missing = true;
                }
                Certainty::Possible => self.absent.push(place),
            }
        }
        is_missing
    }
}

/// The parts of an entry that name files which are run.
fn parts<'t>(
    words: &[ArgumentText],
    at: usize,
    text: &'t str,
    AbsentEntry { entry, is_script, is_code_next }: AbsentEntry<'_>,
) -> Vec<(Cow<'t, str>, Certainty)> {
    let texts: Vec<_> = words[..at].iter().map(|word| word.text().unwrap_or_default()).collect();
    if entry.is_shell_text {
        return in_shell_text(text).into_iter().map(|(word, how)| (word.into(), how)).collect();
    }
    let one = |text: &'t str, how| vec![(Cow::Borrowed(text), how)];
    let runner = texts.iter().rev().find(|word| runs_its_arguments(word)).copied();
    let is_run = |option: &str| runner.is_some_and(|program| is_run_option(program, option));
    let is_open = !texts.first().is_some_and(|program| runs_no_file(program));
    if let Some(value) = options::values(text).find_map(|value| {
        let option = text.strip_suffix(value)?.trim_end_matches('=');
        (is_run(option) || is_open && option.starts_with("--") && roles::is_read(option))
            .then_some((value, is_run(option)))
    }) {
        return one(value.0, certainty(value.1));
    }
    if text.starts_with('-') {
        return Vec::new();
    }
    if is_run(entry.before) {
        return one(text, Certainty::Required);
    }
    if is_open && roles::is_read(entry.before) && (runner.is_none() || is_code_next) {
        return one(text, Certainty::Possible);
    }
    let Some(runner) = runner.filter(|_| is_code_next && !entry.before.is_empty()) else {
        return Vec::new();
    };
    let started = texts.first().is_some_and(|program| runs_its_arguments(program));
    if is_script && looks_like_a_file(text) {
        return one(text, Certainty::Required);
    }
    if runs_only_options(runner) || is_assignment(text) || is_program_text(runner, &texts) {
        return Vec::new();
    }
    if is_interpreter(runner) {
        let follows = started && entry.before == runner && !runs_its_arguments(text);
        return one(text, certainty(follows));
    }
    if looks_like_a_file(text) || text.contains('/') {
        return one(text, Certainty::Possible);
    }
    Vec::new()
}

fn certainty(is_required: bool) -> Certainty {
    if is_required { Certainty::Required } else { Certainty::Possible }
}

fn is_assignment(text: &str) -> bool {
    text.contains('=') || text.contains(char::is_whitespace)
}

/// Whether an interpreter got its program's text by an option such as `-ne`.
fn is_program_text(runner: &str, texts: &[&str]) -> bool {
    let letters: &[char] =
        if super::programs::is_shell(runner) { &['c'] } else { &['c', 'e', 'E'] };
    let behind = texts.iter().rposition(|text| *text == runner).map_or(0, |at| at + 1);
    texts[behind..]
        .iter()
        .any(|text| text.starts_with('-') && !text.starts_with("--") && text.ends_with(letters))
}

/// The words of a shell's command text that name files which it runs.
fn in_shell_text(text: &str) -> Vec<(String, Certainty)> {
    let mut before = String::new();
    let mut found = Vec::new();
    for (word, role) in roles::in_shell_text(text) {
        // The program, without the folder in which it would be looked for.
        let program = before.rsplit('/').next().unwrap_or_default();
        let is_started = matches!(program, "." | "source") || is_interpreter(program);
        let is_run = role == WordRole::Code && (is_started || looks_like_a_file(&word));
        if is_run && !word.contains('$') {
            found.push((word.clone(), Certainty::Possible));
        }
        before = word;
    }
    found
}

/// The folder in which the program opens its files: its working directory, or the one to which a program before it
/// changes.
pub(super) fn folder_of_files(words: &[ArgumentText], around: &DeclarationFolders<'_>) -> PathBuf {
    let texts: Vec<_> = words.iter().map(|word| word.text().unwrap_or_default()).collect();
    let mut folder = around.cwd.clone();
    for (at, program) in texts.iter().enumerate() {
        let next = texts[at + 1..].iter().position(|text| changes_folder(text));
        let end = next.map_or(texts.len(), |next| at + 1 + next);
        folder.extend(
            changes_folder(program).then(|| folder_in(texts[at..end].iter().copied())).flatten(),
        );
    }
    folder
}
