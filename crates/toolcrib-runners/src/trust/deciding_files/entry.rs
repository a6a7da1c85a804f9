//! Entries of an argument vector, and the files that a vector names for writing.

use std::borrow::Cow;
use std::path::PathBuf;

use super::declaration_folders::DeclarationFolders;
use super::options;
use super::programs::looks_like_a_file;
use super::roles::{self, WordRole};
use super::words::ArgumentText;

/// An entry of an argument vector.
#[derive(Default, Clone, Copy)]
pub(super) struct VectorEntry<'e> {
    /// The entry as the manifest writes it, and whether it is the script of an interpreter.
    pub(super) written: Option<(&'e str, bool)>,
    /// The entry before it.
    pub(super) before: &'e str,
    /// Whether the file that it names, if it names one, is run.
    pub(super) is_code: bool,
    /// Whether it is text that a shell runs.
    pub(super) is_shell_text: bool,
    /// Whether the program runs no files, so that a bare word is not a file name.
    pub(super) bare_is_no_file: bool,
}

impl VectorEntry<'_> {
    /// The parts of the entry that may name files, each with its role for the program. `runs` says whether the program
    /// runs the files in its arguments.
    pub(super) fn parts<'t>(&self, text: &'t str, runs: bool) -> Vec<(Cow<'t, str>, WordRole)> {
        let plain = if self.is_code { WordRole::Code } else { WordRole::Plain };
        let is_name = |part: &&str| {
            !self.bare_is_no_file || !roles::is_bare(part) || self.is_read(text, part)
        };
        let parts = options::values(text).filter(is_name).map(|part| (Cow::Borrowed(part), plain));
        let is_between = |c: char| c.is_whitespace() || ";|&()<>\"'`".contains(c);
        if !runs || !text.contains(is_between) {
            return parts.collect();
        }
        if self.is_shell_text {
            let words = roles::in_shell_text(text).into_iter();
            return parts.chain(words.map(|(word, role)| (Cow::Owned(word), role))).collect();
        }
        let words = text.split(is_between);
        parts.chain(words.map(|word| (Cow::Borrowed(word), WordRole::Code))).collect()
    }

    /// Whether the file that this entry names is certainly a script. The server does not start if such a file is a
    /// symbolic link that programs could replace.
    pub(super) fn is_script(&self, part: &str, role: WordRole) -> bool {
        let is_named = self.written.is_none_or(|(_, is_script)| is_script) && !roles::is_bare(part);
        role == WordRole::Code && (is_named || looks_like_a_file(part))
    }

    /// Whether a part of the entry is the value of an option that names a file.
    fn is_read(&self, text: &str, part: &str) -> bool {
        roles::is_read(option_of(self.before, text, part))
    }
}

/// The option whose value this part of an entry is.
fn option_of<'t>(before: &'t str, text: &'t str, part: &str) -> &'t str {
    match text.strip_suffix(part) {
        Some("") | None => before,
        Some(option) => option.trim_end_matches('='),
    }
}

/// Whether a shell runs the text after this option.
pub(super) fn is_inline(option: &str) -> bool {
    option.starts_with('-') && !option.starts_with("--") && option.ends_with('c')
}

/// The files that a vector names for writing.
pub(super) fn outputs(words: &[ArgumentText], around: &DeclarationFolders<'_>) -> Vec<PathBuf> {
    let texts: Vec<_> = words.iter().map(|word| word.text().unwrap_or_default()).collect();
    let mut outputs = Vec::new();
    for (at, text) in texts.iter().enumerate().skip(1) {
        let before = texts[at - 1];
        let written = options::values(text).filter(|part| {
            let option = option_of(before, text, part);
            // The option itself is not a program; it comes before its value or in the same word.
            let programs = if part == text { &texts[..at - 1] } else { &texts[..at] };
            roles::is_written(option, programs)
        });
        let is_shell_text = words[..at].iter().any(ArgumentText::is_shell) && is_inline(before);
        let in_text = is_shell_text.then(|| roles::in_shell_text(text)).into_iter().flatten();
        let in_text = in_text.filter(|(_, role)| *role == WordRole::Output).map(|(part, _)| part);
        let written = written.map(str::to_owned).chain(in_text);
        for part in written.filter(|part| !part.is_empty() && part.len() <= 4096) {
            let place = around.cwd.join(part);
            outputs.push(place.canonicalize().unwrap_or_else(|_| place.components().collect()));
        }
    }
    outputs
}
