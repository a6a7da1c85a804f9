//! Mistakes in the text of a shell that have nothing to do with values: a shell that does not know what it
//! reads, and words that do something else than they seem to.

use std::ops::Range;

use super::Slip;
use super::syntax::{Command, Form, Kind, Part, Variable, Way, Word};
use crate::words::Words;

/// Builtins of bash that other shells do not have.
const OF_BASH: [&str; 7] = ["declare", "let", "mapfile", "readarray", "shopt", "source", "typeset"];

/// Programs whose arguments are files.
static OF_FILES: Words = Words::of(
    "cat chmod chown cp du file head ls md5sum mv rm sha1sum sha256sum stat tail touch wc",
);

/// Options of such programs with a pattern of their own.
const OF_PATTERNS: [&str; 4] = ["-I", "--ignore", "--hide", "--exclude"];

const WRITE_BASH: &str = "write `shell: bash`: on many systems `sh` is a shell without it";

/// The slips in commands, for a shell that has no more than the standard if `is_plain`.
pub(super) fn all(text: &str, commands: &[Command], is_plain: bool) -> Vec<Slip> {
    let mut reader = SlipReader { text, is_plain, sets: false, slips: Vec::new() };
    reader.sets = commands.iter().any(|command| {
        let name = command.words.first().and_then(Word::literal);
        matches!(name.as_deref(), Some("set" | "." | "source"))
    });
    reader.commands(commands);
    reader.slips.sort_by_key(|slip| slip.range.start);
    reader.slips
}

/// Where the text reads its standard input with `read`, if nothing in the text can give it any.
pub(super) fn unfed_read(text: &str, commands: &[Command]) -> Option<Range<usize>> {
    if text.contains(['|', '<']) {
        return None;
    }
    let is_read = |command: &&Command| {
        let name = command.words.first().and_then(Word::literal);
        command.kind == Kind::Simple && name.as_deref() == Some("read")
    };
    let word = commands.iter().find(is_read)?.words.first()?;
    Some(word.range.clone())
}

struct SlipReader<'t> {
    text: &'t str,
    is_plain: bool,
    /// Whether the text sets its positional parameters.
    sets: bool,
    slips: Vec<Slip>,
}

impl SlipReader<'_> {
    fn add(&mut self, range: Range<usize>, message: String, help: &str) {
        if self.slips.iter().all(|slip| slip.range != range) {
            self.slips.push(Slip { range, message, help: help.to_owned() });
        }
    }

    fn of_bash(&mut self, range: Range<usize>, what: &str) {
        if self.is_plain {
            self.add(
                range,
                format!("`{what}` is a feature of bash, and this runs in `sh`"),
                WRITE_BASH,
            );
        }
    }

    fn commands(&mut self, commands: &[Command]) {
        for command in commands {
            self.command(command);
            let words = command.words.iter();
            let values = command.assignments.iter().flat_map(|assignment| &assignment.values);
            let targets = command.redirections.iter().map(|redirection| &redirection.target);
            for word in words.chain(values).chain(targets) {
                self.parts(&word.parts, word, command.function.is_some());
            }
        }
    }

    fn command(&mut self, command: &Command) {
        let first = command.words.first();
        let start = first.map(|word| word.range.start).unwrap_or_default();
        match command.kind {
            Kind::Test => {
                let at = self.text[..start].rfind("[[").unwrap_or(start);
                self.of_bash(at..at + 2, "[[");
            }
            Kind::Expression => self.of_bash(start..start + 2, "(( ))"),
            _ => {}
        }
        for assignment in &command.assignments {
            if let Some(value) = assignment.values.first().filter(|_| assignment.values.len() > 1) {
                self.of_bash(value.range.clone(), "a=(…)");
            }
        }
        for redirection in command.redirections.iter().filter(|one| one.way == Way::Text) {
            let at = redirection.target.range.start;
            if self.text[..at].trim_end().ends_with("<<<") {
                self.of_bash(redirection.target.range.clone(), "<<<");
            }
        }
        let Some(first) = first.filter(|_| command.kind == Kind::Simple) else { return };
        let name = first.literal().unwrap_or_default();
        if OF_BASH.contains(&name.as_str()) {
            self.of_bash(first.range.clone(), &name);
        }
        let second = command.words.get(1);
        if let Some(second) = second.filter(|second| second.literal().as_deref() == Some("=")) {
            let is_name = !name.is_empty()
                && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
                && !["expr", "let", "test"].contains(&name.as_str());
            if is_name {
                let message = format!("`{name}` is run as a program here");
                let help = format!("write the assignment without blanks: `{name}=…`");
                self.add(first.range.start..second.range.end, message, &help);
            }
        }
        if ["[", "test"].contains(&name.as_str())
            && let Some(output) = command.redirections.iter().find(|one| one.way == Way::Output)
        {
            let message = "`>` writes a file here instead of comparing numbers".to_owned();
            self.add(output.target.range.clone(), message, "write `-gt`, or `-lt` for `<`");
        }
        if OF_FILES.contains(name.as_str()) {
            self.quoted_globs(command);
        }
        let options: Vec<String> = command.words.iter().filter_map(Word::literal).collect();
        if name == "set" && options.iter().any(|option| option == "pipefail") {
            let range =
                first.range.start..command.words.last().map_or(first.range.end, |it| it.range.end);
            self.of_bash(range, "pipefail");
        }
    }

    /// Reports `"*.log"`, which means a file of that name.
    fn quoted_globs(&mut self, command: &Command) {
        for (at, word) in command.words.iter().enumerate().skip(1) {
            let before = command.words.get(at - 1).and_then(Word::literal).unwrap_or_default();
            let written = self.text.get(word.range.clone()).unwrap_or_default();
            let quoted = ['"', '\''].iter().find_map(|quote| {
                written.strip_prefix(*quote)?.strip_suffix(*quote).filter(|it| !it.contains(*quote))
            });
            let Some(inside) = quoted.filter(|inside| inside.contains('*')) else { continue };
            if OF_PATTERNS.contains(&before.as_str())
                || inside.contains(['\\', '`'])
                || inside.contains("$(")
            {
                continue;
            }
            let message =
                "`*` is not expanded between quotes: this is a file of that name".to_owned();
            let help = "put the quotes around what precedes it only: `\"$FOLDER\"/*.log`";
            self.add(word.range.clone(), message, help);
        }
    }

    fn parts(&mut self, parts: &[Part], word: &Word, in_function: bool) {
        for part in parts {
            match part {
                Part::Text(_) => {}
                Part::Variable(variable) => self.variable(variable, word, in_function),
                Part::Substitution { commands, .. } => self.commands(commands),
                Part::Process { range, commands, .. } => {
                    self.of_bash(range.clone(), "<(…)");
                    self.commands(commands);
                }
                Part::Expression(inner) => self.parts(inner, word, in_function),
            }
        }
    }

    fn variable(&mut self, variable: &Variable, word: &Word, in_function: bool) {
        let Variable { name, range, form, operands, expressions, .. } = variable;
        let is_positional = name.len() == 1 && name.starts_with(|c: char| ('1'..='9').contains(&c));
        if is_positional && !in_function && !self.sets {
            let message = format!("`${name}` is empty: values reach this text only as variables");
            let help = "declare one, `vars: {FILE: \"${args.file}\"}`, and write \"$FILE\"";
            self.add(range.clone(), message, help);
        }
        let written = self.text.get(range.clone()).unwrap_or_default();
        let behind = written.strip_prefix("${").and_then(|rest| rest.strip_prefix(name.as_str()));
        let is_of_bash = behind.is_some_and(|rest| rest.starts_with(['^', ',', '/', '[', '@']))
            || matches!(form, Form::Indirect | Form::Expanded | Form::Keys | Form::Names)
            || behind.is_some_and(|rest| rest.starts_with(':')) && !expressions.is_empty();
        if is_of_bash {
            self.of_bash(range.clone(), written);
        }
        self.parts(operands, word, in_function);
        self.parts(expressions, word, in_function);
    }
}
