//! What the reader does not understand: constructs of other shells, programs that may run what they read, and files
//! that are run although only the shell knows their names.

use std::collections::BTreeSet;

use super::Taint;
use super::flow::Flow;
use super::sinks::shown;
use super::suspects::parameters_of;
use super::syntax::{Command, Form, Part, Variable, Way, Word};
use crate::manifest::program::argv;
use crate::manifest::program::known;
use crate::programs::name_without_version;

/// The code of what is not understood.
pub(super) const NOT_UNDERSTOOD: &str = "not-understood";

/// The code of files that are run and that other tools may change.
pub(super) const LOADED_CODE: &str = "loaded-code";

/// Variables that lead to folders in which no other tool writes, or to the text itself.
const KNOWN_VARIABLES: [&str; 7] =
    ["0", "BASH", "BASH_SOURCE", "HOME", "SHELL", "TMPDIR", "TOOLCRIB_SCRIPT"];

/// Programs that write the name of a file that the text names, or of one that they have made.
const TELL_NAMES: [&str; 8] =
    ["basename", "command", "dirname", "mktemp", "pwd", "readlink", "realpath", "which"];

/// Programs that run a file of the folder in which they start, which no tool can change where the folder is known.
const RUN_PROTECTED: [&str; 4] = ["gmake", "just", "make", "ninja"];

/// What is known of the names of files that a text runs.
#[derive(Debug, Default)]
pub(super) struct FileNames {
    /// Variables that are set to texts which are not known before the shell runs.
    pub(super) unnamed: BTreeSet<String>,
    /// Variables that begin with a folder in which no other tool writes.
    elsewhere: BTreeSet<String>,
    /// Whether the text has changed to a folder that is not known.
    pub(super) is_lost: bool,
    /// Whether only such files are looked for.
    pub(super) looks_for_files: bool,
}

impl Flow<'_> {
    /// Warns of `${…}` in a form that this reader does not know, if a value may be in it.
    pub(super) fn unknown_form(&mut self, range: &std::ops::Range<usize>) {
        let written = self.source.get(range.clone()).unwrap_or("${…}");
        let message = format!(
            "`{written}` is not understood here, so nobody knows what it does with a value"
        );
        let help = "write it in another way, such as `${NAME}` or `$(…)`; or say why it is harmless: \
                    `unsafe_argv: reason`";
        self.not_understood(range, message, help, false);
    }

    /// Warns of a program that may run the value which it reads on standard input.
    pub(super) fn unknown_reader(
        &mut self,
        words: &[argv::Word<'_>],
        read: &known::Read<'_>,
        input: Option<Taint>,
    ) {
        let is_given = input.is_some_and(|taint| taint.is_by_model && !taint.is_fixed());
        let Some(reader) = known::unknown_reader(words, read).filter(|_| is_given) else { return };
        let (message, help) = reader.said();
        let range = words.first().map(|word| word.node.span.clone()).unwrap_or_default();
        self.not_understood(&range, message, &help, !reader.runs_things);
    }

    /// Remembers what is known of the values that a variable is set to, as names of files.
    pub(super) fn names(&mut self, name: &str, values: &[Word], function: Option<&str>) {
        for value in values {
            if !self.is_named(value, function) {
                self.file_names.unnamed.insert(name.to_owned());
            }
            if self.is_outside(value) {
                self.file_names.elsewhere.insert(name.to_owned());
            }
        }
    }

    /// Whether a word is a text that is known before the shell runs, as far as it names a file in the workspace.
    pub(super) fn is_named(&self, word: &Word, function: Option<&str>) -> bool {
        self.is_outside(word)
            || word.parts.iter().all(|part| match part {
                Part::Text(text) => !is_pattern(text) && text != "{}",
                Part::Variable(variable) => self.is_known(variable, function),
                Part::Substitution { commands, .. } => {
                    commands.iter().all(|command| self.tells_name(command))
                }
                Part::Process { .. } | Part::Expression(_) => true,
            })
    }

    /// Whether a word begins with a folder in which no other tool writes.
    fn is_outside(&self, word: &Word) -> bool {
        match word.parts.first() {
            Some(Part::Text(text)) => text.starts_with(['/', '~']),
            Some(Part::Variable(Variable { name, .. })) => {
                KNOWN_VARIABLES.contains(&name.as_str()) || self.file_names.elsewhere.contains(name)
            }
            Some(Part::Substitution { commands, .. }) => {
                let first = commands.first().and_then(|command| command.words.first());
                first.and_then(Word::literal).as_deref() == Some("mktemp")
            }
            _ => false,
        }
    }

    fn is_known(&self, variable: &Variable, function: Option<&str>) -> bool {
        let Variable { name, form, .. } = variable;
        let key = self.text_key(name, function);
        matches!(form, Form::Plain | Form::Length)
            && !self.file_names.unnamed.contains(&key)
            && !self.texts.get(&key).is_some_and(|texts| {
                texts.iter().any(|text| is_pattern(text) && !text.starts_with(['/', '~']))
            })
    }

    /// Whether a command writes the name of a file that the text names.
    fn tells_name(&self, command: &Command) -> bool {
        let name = command.words.first().and_then(Word::literal).unwrap_or_default();
        let function = command.function.as_deref();
        TELL_NAMES.contains(&name.as_str())
            && command.words.iter().skip(1).all(|word| self.is_named(word, function))
            || name == "cd" && command.words.len() > 1
    }

    /// Warns of files that a command runs although nobody knows their names: it starts these programs, which run the
    /// files at these places, and may run what it reads.
    pub(super) fn unknown_files(
        &mut self,
        command: &Command,
        started: &[(usize, &str)],
        files: &[usize],
        runs_input: bool,
    ) {
        let function = command.function.as_deref();
        let Some(first) = command.words.first().filter(|_| self.file_names.looks_for_files) else {
            return;
        };
        if !self.is_named(first, function) {
            return self.unknown_file(first, None);
        }
        let name = first.literal().unwrap_or_default();
        if matches!(name.as_str(), "." | "source") {
            command
                .words
                .get(1)
                .into_iter()
                .for_each(|file| self.file_run(file, Some(&name), function));
            return;
        }
        for (at, program) in started {
            let word = &command.words[*at];
            self.file_run(word, None, function);
            let plain = name_without_version(program);
            if self.file_names.is_lost && RUN_PROTECTED.contains(&plain) {
                self.unknown_file(word, Some(plain));
            }
        }
        let program = started.last().map(|(_, name)| name_without_version(name));
        for file in files {
            self.file_run(&command.words[*file], program, function);
        }
        if !runs_input {
            return;
        }
        for one in command.redirections.iter().filter(|one| one.way == Way::Input) {
            self.file_run(&one.target, program, function);
        }
        if let [.., (_, before), (at, _)] = started
            && name_without_version(before) == "xargs"
        {
            self.unknown_file(&command.words[*at], program);
        }
    }

    /// Warns of a file that is run, if nobody knows where it is.
    fn file_run(&mut self, file: &Word, program: Option<&str>, function: Option<&str>) {
        let is_file = || file.literal().is_none_or(|text| text.contains(['/', '.']));
        let is_lost =
            self.file_names.is_lost && !self.is_outside(file) && (program.is_some() || is_file());
        if !self.is_named(file, function) || is_lost {
            self.unknown_file(file, program);
        }
    }

    fn unknown_file(&mut self, word: &Word, program: Option<&str>) {
        let word_shown = shown(word);
        let what = match program {
            None => format!("`{word_shown}` starts a program"),
            Some(program) if program == word_shown => format!("`{program}` runs a file"),
            Some(program) => format!("`{program}` runs a file, `{word_shown}`,"),
        };
        let message = format!(
            "{what} whose place only the shell knows, so nothing keeps other tools from changing it"
        );
        let help = "write its name as a literal, from the folder in which the text starts; or keep it outside of the \
                    workspace: `sh \"/opt/jobs/$NAME\"`";
        self.add_warning(&word.range, LOADED_CODE, message, help, false);
    }

    /// Remembers that the text changes to a folder, or that it does not say to which.
    pub(super) fn changes_folder(&mut self, words: &[Word], function: Option<&str>) {
        let mut folders = words.iter().filter(|word| !word.begins().starts_with('-'));
        let is_searched = self.literals.contains_key("CDPATH");
        self.file_names.is_lost |=
            folders.any(|word| !self.is_named(word, function) || is_searched);
    }

    /// Remembers what the parameters of a function are given.
    pub(super) fn passes_unknown(&mut self, name: &str, words: &[Word], function: Option<&str>) {
        if words.iter().any(|word| !self.is_named(word, function)) {
            self.file_names.unnamed.insert(parameters_of(name));
        }
    }

    fn not_understood(
        &mut self,
        range: &std::ops::Range<usize>,
        message: String,
        help: &str,
        is_hint: bool,
    ) {
        if self.ambient.is_some() && !self.file_names.looks_for_files {
            self.add_warning(range, NOT_UNDERSTOOD, message, help, is_hint);
        }
    }
}

/// Whether a text is a pattern of file names.
fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?']) || text.contains('[') && text.contains(']')
}
