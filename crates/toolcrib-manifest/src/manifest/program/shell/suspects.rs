//! What is not known for certain: which variable a name leads to, what a program may have written of a
//! value that it was given, and what a shell does with a value in a place that is not known to be safe.

use std::ops::Range;

use super::Taint;
use super::flow::{Flow, join};
use super::reader::DECLARATIONS;
use super::sinks::shown;
use super::syntax::{Command, Form, Part, Redirection, Variable, Way, Word, split_name};
use crate::manifest::program::input::written_words;
use crate::manifest::schema::value_shape::Shape;
use crate::programs::name_without_version;

/// Variables of bash that are set to what an expression yields.
pub(super) const INTEGERS: [&str; 13] = [
    "BASHPID",
    "BASH_SUBSHELL",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "HISTCMD",
    "LINENO",
    "OPTIND",
    "PPID",
    "RANDOM",
    "SECONDS",
    "SRANDOM",
    "UID",
];

/// Programs whose output is a number, or tells nothing of the values that they are given.
const NUMBERS: [&str; 9] =
    ["cmp", "command", "date", "expr", "mktemp", "nproc", "stat", "test", "wc"];

/// Names that lead to names that are followed.
const DEPTH_MAX: usize = 4;

impl Flow<'_> {
    /// Remembers a text that a variable is set to.
    pub(super) fn add_text(&mut self, name: &str, text: &str) {
        let is_number = text.trim_start_matches(['-', '+']).bytes().all(|b| b.is_ascii_digit());
        if !is_number {
            let known = self.texts.entry(name.to_owned()).or_default();
            // What the names of so many variables lead to is not looked at.
            if known.len() < 32 {
                known.insert(text.to_owned());
            }
        }
    }

    /// The name under which the texts of a variable or a parameter are kept.
    pub(super) fn text_key(&self, name: &str, function: Option<&str>) -> String {
        let is_parameter = matches!(name, "@" | "*") || name.bytes().all(|b| b.is_ascii_digit());
        if is_parameter {
            return parameters_of(self.function_of(function).unwrap_or_default());
        }
        name.to_owned()
    }

    /// What the variables hold to which `${!NAME}` may lead.
    pub(super) fn pointed_at(&self, variable: &Variable, function: Option<&str>) -> Option<Taint> {
        let Some(texts) = self.texts.get(&self.text_key(&variable.name, function)) else {
            return self.ambient;
        };
        texts
            .iter()
            .filter_map(|text| self.value_of(split_name(text).0, None))
            .reduce(Taint::joined)
    }

    /// What an expression may evaluate that uses a variable: its value, and what the names in it lead to.
    pub(super) fn evaluated(&self, variable: &Variable, function: Option<&str>) -> Option<Taint> {
        match variable.form {
            Form::Length | Form::Names => None,
            Form::Keys => self.keys.get(&variable.name).copied(),
            Form::Indirect => self.pointed_at(variable, function),
            Form::Plain | Form::Expanded | Form::Unknown => {
                let operands = self.taint_of(&variable.operands, function);
                join(operands, self.evaluated_name(&variable.name, function, 0))
            }
        }
    }

    fn evaluated_name(&self, name: &str, function: Option<&str>, depth: usize) -> Option<Taint> {
        let known = self.value_of(name, function);
        if known.is_some() || depth == DEPTH_MAX {
            return known;
        }
        let texts = self.texts.get(&self.text_key(name, function)).into_iter().flatten();
        let named = texts.filter_map(|text| self.evaluated_text(text, function, depth + 1));
        named.reduce(Taint::joined).or_else(|| self.guesses.get(name).copied())
    }

    /// The same for the text of an expression.
    fn evaluated_text(&self, text: &str, function: Option<&str>, depth: usize) -> Option<Taint> {
        let names = text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric());
        let names = names.filter(|name| !split_name(name).0.is_empty());
        names.filter_map(|name| self.evaluated_name(name, function, depth)).reduce(Taint::joined)
    }

    /// What a word that is an expression may evaluate.
    pub(super) fn arithmetic(&self, word: &Word, function: Option<&str>) -> Option<Taint> {
        let each = word.parts.iter().filter_map(|part| match part {
            Part::Text(text) => self.evaluated_text(text, function, 0),
            Part::Variable(variable) => self.evaluated(variable, function),
            Part::Expression(_) => None,
            other => self.suspected_in(other, function),
        });
        each.reduce(Taint::joined)
    }

    /// What a word may hold, or what a program may have put there that was given a value.
    pub(super) fn suspected(&self, word: &Word, function: Option<&str>) -> Option<Taint> {
        self.taint(word, function).or_else(|| self.guess_of(&word.parts, function))
    }

    /// The same for a part of a word.
    pub(super) fn suspected_in(&self, part: &Part, function: Option<&str>) -> Option<Taint> {
        let part = std::slice::from_ref(part);
        self.taint_of(part, function).or_else(|| self.guess_of(part, function))
    }

    /// What programs may have put into parts that were given a value.
    pub(super) fn guess_of(&self, parts: &[Part], function: Option<&str>) -> Option<Taint> {
        let each = parts.iter().filter_map(|part| match part {
            Part::Variable(Variable { form: Form::Plain, name, operands, .. }) => {
                join(self.guesses.get(name).copied(), self.guess_of(operands, function))
            }
            Part::Substitution { commands, .. } => self.guessed_output(commands, function),
            _ => None,
        });
        each.reduce(Taint::joined).map(|taint| Taint { is_by_model: false, ..taint.changed() })
    }

    fn guessed_output(&self, commands: &[Command], function: Option<&str>) -> Option<Taint> {
        let mut piped = None;
        let mut written = None;
        for (nth, command) in commands.iter().enumerate() {
            let before = if command.is_piped { piped } else { None };
            piped = join(before, self.named_in(command, function));
            let name = command.words.first().and_then(Word::literal).unwrap_or_default();
            if (NUMBERS.contains(&name_without_version(&name)) || counts(&name, command))
                && !self.is_formatted(command, function)
                || self.functions.contains_key(&name)
            {
                piped = None;
            }
            if !commands.get(nth + 1).is_some_and(|next| next.is_piped) {
                written = join(written, piped);
            }
        }
        written
    }

    /// Whether a value may be in the format of what `date` or `stat` writes, or in the name of a file that
    /// it writes.
    fn is_formatted(&self, command: &Command, function: Option<&str>) -> bool {
        let is_format = |text: &str| {
            ["-c", "--format=", "--printf="].iter().any(|option| text.starts_with(option))
        };
        let names_file = |word: &Word| {
            word.literal().is_some_and(|text| text.contains("%n") || text.contains("%N"))
        };
        command.words.windows(2).any(|pair| {
            let begins = pair[1].begins();
            let before = pair[0].literal().unwrap_or_default();
            let is_format = begins.starts_with('+') || is_format(begins) || before == "-c";
            is_format && self.taint(&pair[1], function).is_some() || names_file(&pair[1])
        })
    }

    /// The values that reach a command in its words or on its standard input.
    fn named_in(&self, command: &Command, function: Option<&str>) -> Option<Taint> {
        let function = command.function.as_deref().or(function);
        let words = command.words.iter().skip(1);
        let targets = command.redirections.iter().filter(|one| one.way != Way::Output);
        let words = words.chain(targets.map(|one| &one.target));
        words.filter_map(|word| self.suspected(word, function)).reduce(Taint::joined)
    }

    /// What the files hold that a command reads, if the text has written them.
    pub(super) fn held_by_files(&self, command: &Command) -> Option<Taint> {
        let read = command.redirections.iter().filter(|one| one.way == Way::Input);
        let words = command.words.iter().skip(1).chain(read.map(|one| &one.target));
        words.filter_map(|word| self.files.get(&file_name(word)).copied()).reduce(Taint::joined)
    }

    /// What redirections let a command read.
    pub(super) fn source_of(
        &self,
        redirections: &[Redirection],
        function: Option<&str>,
    ) -> Option<Taint> {
        let read = redirections.iter().filter(|one| matches!(one.way, Way::Text | Way::Input));
        let each = read.filter_map(|one| {
            join(
                self.taint(&one.target, function),
                self.files.get(&file_name(&one.target)).copied(),
            )
        });
        each.reduce(Taint::joined)
    }

    /// Remembers the files that a command writes with values.
    pub(super) fn writes(&mut self, command: &Command, written: Option<Taint>) {
        let Some(written) = written.filter(|taint| !taint.is_fixed()) else { return };
        let outputs = command.redirections.iter().filter(|one| one.way == Way::Output);
        let texts: Vec<String> = command.words.iter().map(shown).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let named = written_words(&texts).into_iter().map(|(at, before)| {
            let name = texts[at][before..].trim_start_matches("./").to_owned();
            (name, command.words[at].range.clone())
        });
        let outputs = outputs.map(|one| (file_name(&one.target), one.target.range.clone()));
        let files: Vec<(String, Range<usize>)> = outputs.chain(named).collect();
        for (file, range) in
            files.into_iter().filter(|(file, _)| !file.is_empty() && file != "/dev/null")
        {
            if written.is_by_model && written.shape == Shape::Free {
                self.starts_programs(&range, &file);
            }
            self.files.insert(file, written);
        }
    }

    /// Warns of a value that is a pattern, so that `*` in it matches everything.
    pub(super) fn pattern(&mut self, word: &Word, function: Option<&str>) {
        for part in &word.parts {
            let Part::Variable(variable) = part else { continue };
            let taint = self.taint_of(std::slice::from_ref(part), function);
            let is_free =
                taint.is_some_and(|taint| taint.is_by_model && taint.shape == Shape::Free);
            if is_free && !variable.is_quoted && variable.form == Form::Plain {
                let message = format!(
                    "the value of `{}` is a pattern here: `*` matches everything",
                    variable.name
                );
                let help = "put it in double quotes: it is then compared as a text";
                self.add_warning(&variable.range, "unquoted-variable", message, help, false);
            }
        }
    }

    /// What `cd` leads to.
    pub(super) fn moves(&mut self, words: &[Word], function: Option<&str>) {
        let taints = words.iter().filter_map(|word| self.taint(word, function));
        let Some(taint) = taints.reduce(Taint::joined) else { return };
        for name in ["PWD", "OLDPWD", "DIRSTACK"] {
            self.set(name, Some(taint), None);
        }
        self.moved = join(self.moved, self.ambient.map(|_| taint));
    }
}

/// Whether a command writes how often it has found something.
fn counts(program: &str, command: &Command) -> bool {
    let is_count = |word: &String| {
        word == "--count"
            || word
                .strip_prefix('-')
                .is_some_and(|letters| !letters.starts_with('-') && letters.contains('c'))
    };
    matches!(name_without_version(program), "grep" | "egrep" | "fgrep" | "rg" | "zgrep")
        && command
            .words
            .iter()
            .filter_map(Word::literal)
            .take_while(|word| word != "--")
            .any(|word| is_count(&word))
}

/// The name under which the texts are kept that a function is given.
pub(super) fn parameters_of(function: &str) -> String {
    format!("{function}()")
}

/// A file as the text names it.
pub(super) fn file_name(word: &Word) -> String {
    shown(word).trim_start_matches("./").to_owned()
}

/// Whether a command declares variables of a kind.
pub(super) fn is_declaration_of(command: &Command, letter: char) -> bool {
    let first = command.words.first().and_then(Word::literal);
    let mut words = command.words.iter().skip(1).filter_map(Word::literal);
    first.is_some_and(|first| DECLARATIONS.contains(&first.as_str()))
        && words.any(|word| word.starts_with('-') && word.contains(letter))
}
