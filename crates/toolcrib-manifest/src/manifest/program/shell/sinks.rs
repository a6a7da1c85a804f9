//! Places in a text where a value becomes a program, code, or the name of a variable.

use std::ops::Range;

use super::Taint;
use super::builtins::COMPARISONS;
use super::flow::{Flow, join, numbered};
use super::reader::DECLARATIONS;
use super::syntax::{Assignment, Command, Kind, Part, Redirection, Way, Word, split_name};
use crate::environment::is_dangerous_env;
use crate::manifest::schema::value_shape::Shape;

const AS_ARGUMENT: &str = "write the name of the program, and pass the value as an argument of it, which is \
                           not code; for a choice among several, use `case` or an `enum`";

const BLANK: &str = "`[` is a program of its own: write a blank behind it, and one before `]`";

impl Flow<'_> {
    /// Reads one command, which may read `piped` from the one before it; the commands before it in the
    /// pipeline use `mentioned`.
    pub(super) fn command(
        &mut self,
        command: &Command,
        piped: Option<Taint>,
        mentioned: Option<Taint>,
    ) {
        let function = command.function.as_deref();
        for assignment in &command.assignments {
            self.assignment(assignment, command, function);
        }
        match command.kind {
            Kind::Loop => {
                let values = command.words.iter().skip(1);
                let taint = values.filter_map(|word| self.taint(word, function));
                let taint = taint.reduce(Taint::joined);
                if let Some(word) = command.words.first()
                    && let Some(name) = word.literal()
                {
                    self.steers(&word.range, &name, taint);
                    self.set(&name, taint, None);
                }
            }
            Kind::Test => self.test(&command.words, function),
            Kind::End => self.read = join(self.read, self.source(&command.redirections, function)),
            Kind::Expression | Kind::Case | Kind::Pattern => {}
            Kind::Simple => self.simple(command, piped, mentioned),
        }
    }

    /// What redirections let a command read.
    fn source(&self, redirections: &[Redirection], function: Option<&str>) -> Option<Taint> {
        let read = redirections.iter().filter(|one| matches!(one.way, Way::Text | Way::Input));
        read.filter_map(|one| self.taint(&one.target, function)).reduce(Taint::joined)
    }

    fn assignment(&mut self, assignment: &Assignment, command: &Command, function: Option<&str>) {
        let Assignment { name, values, .. } = assignment;
        let taints = values.iter().filter_map(|value| self.taint(value, function));
        let taint = taints.reduce(Taint::joined);
        let literal = match values.as_slice() {
            [value] => value.literal(),
            _ => None,
        };
        let first = command.words.first().and_then(Word::literal);
        let declares = |letter: char| {
            let mut words = command.words.iter().skip(1).filter_map(Word::literal);
            first.as_deref().is_some_and(|first| DECLARATIONS.contains(&first))
                && words.any(|word| word.starts_with('-') && word.contains(letter))
        };
        if declares('i') {
            self.integers.insert(name.clone());
        }
        if declares('A') {
            self.maps.insert(name.clone());
        }
        let range = values.first().map(|value| value.range.clone()).unwrap_or_default();
        if let Some(taint) = taint.filter(|taint| !taint.is_fixed()) {
            if is_dangerous_env(name) {
                self.steers(&range, name, Some(taint));
            } else if declares('n') {
                self.named(&range, taint);
            } else if self.integers.contains(name) {
                self.expression(&range, name, taint);
            }
        }
        self.set(name, taint, literal);
    }

    /// Reports a value in a variable that decides what programs load or run.
    pub(super) fn steers(&mut self, range: &Range<usize>, name: &str, taint: Option<Taint>) {
        if let Some(taint) = taint.filter(|taint| !taint.is_fixed() && is_dangerous_env(name)) {
            let message =
                format!("`{name}` decides what programs load or run; a model must not set it");
            let help = "pass the value as an argument, or in a variable of your own";
            self.report(range, "dangerous-env", message, help, taint);
        }
    }

    /// Reports a value that names a variable.
    pub(super) fn named(&mut self, range: &Range<usize>, taint: Taint) {
        if taint.shape < Shape::Free {
            return;
        }
        let message = "the value names a variable here, and the shell evaluates what stands in its \
                       brackets: `a[$(id)]`";
        let help = "write the name of the variable, or give the argument a pattern such as \
                    `^[a-z_]+$`";
        self.report(range, "evaluated-variable", message.to_owned(), help, taint);
    }

    fn test(&mut self, words: &[Word], function: Option<&str>) {
        let literals: Vec<Option<String>> = words.iter().map(Word::literal).collect();
        for (at, word) in words.iter().enumerate() {
            let is = |at: Option<usize>, all: &[&str]| {
                let text = at.and_then(|at| literals.get(at)).and_then(Option::as_deref);
                text.is_some_and(|text| all.contains(&text))
            };
            let compared = is(at.checked_sub(1), &COMPARISONS) || is(Some(at + 1), &COMPARISONS);
            let is_name = is(at.checked_sub(1), &["-v"]);
            if compared && let Some(name) = &literals[at] {
                // A bare name is a variable there.
                if let Some(taint) =
                    self.value_of(split_name(name).0, function).filter(|_| !name.is_empty())
                {
                    self.expression(&word.range, name, taint);
                }
            }
            let Some(taint) = self.taint(word, function) else { continue };
            if compared {
                self.expression(&word.range, &shown(word), taint);
            } else if is_name {
                self.named(&word.range, taint);
            }
        }
    }

    fn simple(&mut self, command: &Command, piped: Option<Taint>, mentioned: Option<Taint>) {
        let function = command.function.as_deref();
        let Some((first, rest)) = started(&command.words).split_first() else {
            return;
        };
        let own = self.source(&command.redirections, function);
        if let Some(taint) = self.taint(first, function).filter(|taint| !taint.is_fixed()) {
            let message = format!("`{}` would choose the program that is run here", shown(first));
            let help = if first.begins().starts_with('[') { BLANK } else { AS_ARGUMENT };
            self.report(&first.range, "model-chosen-program", message, help, taint);
            return;
        }
        let name = self.resolved(first).unwrap_or_default();
        if let Some(parameters) = self.parameters_of(&name, rest, function) {
            let known = self.functions.entry(name.clone()).or_default();
            for (key, taint) in parameters {
                let joined = known.get(&key).map_or(taint, |known| known.joined(taint));
                known.insert(key, joined);
            }
            return;
        }
        let has_input = command.redirections.iter().any(|one| one.way != Way::Output);
        let read = join(own, if has_input { None } else { join(piped, self.read) });
        self.builtin(&name, rest, read, function);
        if name == "exec" && rest.is_empty() {
            self.read = join(self.read, own);
        }
        let is_descriptor = command.redirections.iter().any(|one| one.way == Way::Descriptor);
        let others =
            if is_descriptor || !has_input && !command.is_piped { self.read } else { None };
        let input = join(own, join(if has_input { None } else { mentioned }, others));
        self.program(command, input);
    }

    /// The text of a word, with variables that only ever have one value.
    fn resolved(&self, word: &Word) -> Option<String> {
        let mut text = String::new();
        for part in &word.parts {
            match part {
                Part::Text(piece) => text.push_str(piece),
                Part::Variable(variable) if variable.operands.is_empty() => {
                    text.push_str(self.literals.get(&variable.name)?.as_deref()?);
                }
                _ => return None,
            }
        }
        Some(text)
    }

    /// What a function of the text is given by a call.
    fn parameters_of(
        &self,
        name: &str,
        rest: &[Word],
        function: Option<&str>,
    ) -> Option<super::flow::Parameters> {
        self.functions.contains_key(name).then(|| {
            let values = rest.iter().map(|word| self.taint(word, function));
            numbered(&std::iter::once(None).chain(values).collect::<Vec<_>>())
        })
    }
}

/// The words from the one on that names what is run: `command`, `builtin` and `time -p` stand before it.
fn started(words: &[Word]) -> &[Word] {
    let mut words = words;
    while let Some((first, rest)) = words.split_first() {
        let name = first.literal().unwrap_or_default();
        if !matches!(name.as_str(), "command" | "builtin" | "-p" | "--") {
            break;
        }
        // `command -v` tells where a program is.
        let next = rest.first().and_then(Word::literal).unwrap_or_default();
        if rest.is_empty()
            || name == "command" && next.starts_with('-') && next.contains(['v', 'V'])
        {
            break;
        }
        words = rest;
    }
    words
}

/// A word as messages show it.
pub(super) fn shown(word: &Word) -> String {
    let mut text = String::new();
    for part in &word.parts {
        match part {
            Part::Text(piece) => text.push_str(piece),
            Part::Variable(variable) => {
                text.push('$');
                text.push_str(&variable.name);
            }
            _ => text.push_str("$(…)"),
        }
    }
    text
}

/// The name of the variable in a word.
pub(super) fn bare(word: &Word) -> String {
    let name = word.parts.iter().find_map(|part| match part {
        Part::Variable(variable) => Some(variable.name.clone()),
        _ => None,
    });
    name.unwrap_or_else(|| "$(…)".to_owned())
}
