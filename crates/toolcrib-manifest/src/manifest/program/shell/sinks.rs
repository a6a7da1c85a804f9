//! Places in a text where a value becomes a program, code, or the name of a variable.

use std::ops::Range;

use super::Taint;
use super::builtins::{COMPARISONS, RUN_ALL};
use super::flow::{Flow, join, numbered};
use super::suspects::{is_declaration_of, parameters_of};
use super::syntax::{Assignment, Command, Form, Kind, Part, Variable, Way, Word};
use crate::environment::is_dangerous_env;
use crate::manifest::schema::value_shape::Shape;
use crate::programs::is_any_shell;
use crate::words::Words;

const AS_ARGUMENT: &str = "write the name of the program, and pass the value as an argument of it, which is \
                           not code; for a choice among several, use `case` or an `enum`";

/// Programs that run or load files of the folder in which they are started.
pub(super) static LOAD_FROM_FOLDER: Words = Words::of(
    "ant bazel bundle cargo cmake composer direnv docker-compose git go gradle just make mix mvn \
     ninja npm npx pnpm rake tox yarn",
);

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
                if let Some((word, values)) = command.words.split_first()
                    && let Some(name) = word.literal()
                {
                    self.loop_over(word, &name, values, function);
                }
            }
            Kind::Test => self.test(&command.words, function),
            Kind::End => {
                self.read = join(self.read, self.source_of(&command.redirections, function));
            }
            Kind::Pattern => command.words.iter().for_each(|word| self.pattern(word, function)),
            Kind::Expression | Kind::Case => {}
            Kind::Simple => self.simple(command, piped, mentioned),
        }
    }

    /// `for NAME in VALUES`; without any, the parameters.
    fn loop_over(&mut self, word: &Word, name: &str, values: &[Word], function: Option<&str>) {
        let taints = values.iter().filter_map(|word| self.taint(word, function));
        let mut taint = taints.reduce(Taint::joined);
        if values.is_empty() {
            taint = self.value_of("@", function);
        }
        for value in values {
            if let Some(text) = value.literal() {
                self.add_text(name, &text);
            }
            for part in &value.parts {
                if let Part::Variable(Variable { form: Form::Names, name: start, .. }) = part {
                    let known = self.tainted.keys().chain(self.literals.keys());
                    let names: Vec<String> =
                        known.filter(|known| known.starts_with(start)).cloned().collect();
                    for found in &names {
                        self.add_text(name, found);
                    }
                }
            }
        }
        self.names(name, values, function);
        self.steers(&word.range, name, taint);
        if let Some(taint) = taint.filter(|_| self.integers.contains(name)) {
            self.expression(&word.range, name, taint);
        }
        self.set(name, taint, None);
        if let Some(guess) = values.iter().find_map(|word| self.guess_of(&word.parts, function)) {
            self.guesses.insert(name.to_owned(), guess);
        }
    }

    fn assignment(&mut self, assignment: &Assignment, command: &Command, function: Option<&str>) {
        let Assignment { name, values, .. } = assignment;
        let taints = values.iter().filter_map(|value| self.taint(value, function));
        let taint = taints.reduce(Taint::joined);
        let literal = match values.as_slice() {
            [value] => value.literal(),
            _ => None,
        };
        let declares = |letter: char| is_declaration_of(command, letter);
        if declares('i') {
            self.integers.insert(name.clone());
        }
        if declares('A') {
            self.maps.insert(name.clone());
        }
        let range = values.first().map(|value| value.range.clone()).unwrap_or_default();
        if values.len() > 1 {
            values.iter().filter_map(Word::literal).for_each(|text| self.add_text(name, &text));
        }
        if let Some(guess) = values.iter().find_map(|value| self.guess_of(&value.parts, function)) {
            self.guesses.insert(name.clone(), guess);
        }
        let taint = if declares('n') {
            self.references.insert(name.clone());
            let parts = values.iter().flat_map(|value| &value.parts);
            let targets = parts.filter_map(|part| match part {
                Part::Text(name) => self.value_of(name, function),
                Part::Variable(variable) => self.pointed_at(variable, function),
                _ => None,
            });
            join(taint, targets.reduce(Taint::joined))
        } else {
            taint
        };
        if self.integers.contains(name)
            && let Some(taint) = values.iter().find_map(|value| self.arithmetic(value, function))
        {
            self.expression(&range, name, taint);
        }
        if let Some(taint) = taint.filter(|taint| !taint.is_fixed()) {
            if decides_what_runs(name) {
                self.steers(&range, name, Some(taint));
            } else if declares('n') && values.iter().any(|value| value.literal().is_none()) {
                self.named(&range, taint);
            }
        }
        self.names(name, values, function);
        self.set(name, taint, literal);
    }

    /// Reports a value in a variable that decides what programs load or run.
    pub(super) fn steers(&mut self, range: &Range<usize>, name: &str, taint: Option<Taint>) {
        if let Some(taint) = taint.filter(|taint| !taint.is_fixed() && decides_what_runs(name)) {
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
        if literals.iter().flatten().any(|text| text == "=~") {
            let taints = words.iter().filter_map(|word| self.taint(word, function));
            self.set("BASH_REMATCH", taints.reduce(Taint::joined), None);
        }
        for (at, word) in words.iter().enumerate() {
            let is = |at: Option<usize>, all: &[&str]| {
                let text = at.and_then(|at| literals.get(at)).and_then(Option::as_deref);
                text.is_some_and(|text| all.contains(&text))
            };
            let compared = is(at.checked_sub(1), &COMPARISONS) || is(Some(at + 1), &COMPARISONS);
            let is_name = is(at.checked_sub(1), &["-v"]);
            if compared {
                // A bare name is a variable there.
                if let Some(taint) = self.arithmetic(word, function) {
                    self.expression(&word.range, &shown(word), taint);
                }
                continue;
            }
            if is(at.checked_sub(1), &["==", "=", "!="]) {
                self.pattern(word, function);
            }
            let Some(taint) = self.taint(word, function) else { continue };
            if is_name {
                self.named(&word.range, taint);
            }
        }
    }

    fn simple(&mut self, command: &Command, piped: Option<Taint>, mentioned: Option<Taint>) {
        let function = command.function.as_deref();
        let Some((first, rest)) = started(&command.words).split_first() else {
            return;
        };
        let own = self.source_of(&command.redirections, function);
        let has_input = command
            .redirections
            .iter()
            .any(|one| !matches!(one.way, Way::Output | Way::Descriptor));
        let enclosing = self.function_of(function).and_then(|name| self.inputs.get(name)).copied();
        if let Some(runner) = self.runs_its_parameters(first, rest, function) {
            self.runners.insert(runner);
            return;
        }
        if let Some(taint) = self.suspected(first, function).filter(|taint| !taint.is_fixed()) {
            let message = format!("`{}` would choose the program that is run here", shown(first));
            let help = if first.begins().starts_with('[') { BLANK } else { AS_ARGUMENT };
            self.report(&first.range, "model-chosen-program", message, help, taint);
            return;
        }
        let name = self.resolved(first).unwrap_or_else(|| {
            self.unknown_program(command, first, rest);
            String::new()
        });
        if let Some(parameters) = self.parameters_of(&name, rest, function) {
            let known = self.functions.entry(name.clone()).or_default();
            for (key, taint) in parameters {
                let joined = known.get(&key).map_or(taint, |known| known.joined(taint));
                known.insert(key, joined);
            }
            self.passes_unknown(&name, rest, function);
            let key = parameters_of(&name);
            rest.iter().filter_map(Word::literal).for_each(|text| self.add_text(&key, &text));
            let before = if has_input { None } else { join(join(piped, mentioned), enclosing) };
            if self.runners.contains(&name) {
                let run = Command {
                    words: rest.to_vec(),
                    redirections: command.redirections.clone(),
                    is_piped: command.is_piped,
                    function: command.function.clone(),
                    ..Command::default()
                };
                self.simple(&run, piped, mentioned);
            }
            if let Some(input) = join(own, before) {
                self.inputs.insert(name, input);
            }
            return;
        }
        let others = join(join(piped, self.read), enclosing);
        let read = join(own, if has_input { None } else { others });
        self.builtin(&name, rest, read, function);
        if name == "exec" && rest.is_empty() {
            self.read = join(self.read, own);
        }
        self.runs_in_chosen_folder(first, &name, rest);
        let is_descriptor = command.redirections.iter().any(|one| one.way == Way::Descriptor);
        let others = if is_descriptor || !has_input && !command.is_piped {
            join(self.read, enclosing)
        } else {
            None
        };
        let direct = join(own, if has_input { None } else { mentioned });
        let input = join(direct, others);
        self.program(command, input, if is_descriptor { input } else { direct });
    }

    /// The function whose parameters a command is, if no call of it lets a value choose the first of them, which names what
    /// is run: then each call says which command it is.
    fn runs_its_parameters(
        &self,
        first: &Word,
        rest: &[Word],
        function: Option<&str>,
    ) -> Option<String> {
        let is_empty = |part: &&Part| matches!(part, Part::Text(text) if text.is_empty());
        let mut parts = first.parts.iter().filter(|part| !is_empty(part));
        let (Some(Part::Variable(all)), None) = (parts.next(), parts.next()) else { return None };
        // `$@`, not some of them: `${@:2}`.
        let is_all = all.name == "@" && all.is_quoted && all.range.len() == 2;
        let function = self.function_of(function).filter(|_| is_all && rest.is_empty())?;
        self.value_of("1", Some(function)).is_none().then(|| function.to_owned())
    }

    /// A program whose name the text makes, with a value among its arguments.
    fn unknown_program(&mut self, command: &Command, first: &Word, rest: &[Word]) {
        let function = command.function.as_deref();
        // One of several programs that the author names.
        let is_listed = first.parts.iter().all(|part| match part {
            Part::Text(text) => text.is_empty(),
            Part::Variable(variable) => self.texts.get(&variable.name).is_some_and(|texts| {
                texts.iter().all(|text| !RUN_ALL.contains(&text.as_str()) && !is_any_shell(text))
            }),
            _ => false,
        });
        let is_given = rest.iter().any(|word| self.taint(word, function).is_some());
        if is_given && !is_listed {
            let message = format!(
                "`{}` is a program that the text makes the name of, so nobody knows what it does with \
                 the value",
                shown(first)
            );
            self.doubt(&first.range, message, "write the name of the program as a literal");
        }
    }

    /// A program that finds what it runs in the folder that a value has chosen.
    fn runs_in_chosen_folder(&mut self, first: &Word, name: &str, rest: &[Word]) {
        let Some(taint) = self.moved.filter(|taint| taint.shape == Shape::Free) else { return };
        let is_below = |path: &str| path.contains('/') && !path.starts_with(['/', '~', '$']);
        let file = match name {
            "." | "source" => rest.first(),
            _ if is_any_shell(name) => rest.iter().find(|word| !word.begins().starts_with('-')),
            _ => None,
        };
        let file = file.and_then(Word::literal).filter(|file| !file.starts_with(['/', '~']));
        if is_below(name) || file.is_some() || LOAD_FROM_FOLDER.contains(name) {
            let message = format!(
                "`{}` runs what the folder holds that the value before chooses with `cd`",
                shown(first)
            );
            let help =
                "write the folder as `cwd` beside `run`; for a choice among several, use an `enum`";
            self.report(&first.range, "model-chosen-program", message, help, taint);
        }
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

/// The words from the one on that names what is run: `command`, `builtin`, `jobs -x` and `time -p` stand before it.
fn started(words: &[Word]) -> &[Word] {
    let mut words = words;
    while let Some((first, rest)) = words.split_first() {
        let name = first.literal().unwrap_or_default();
        let next = rest.first().and_then(Word::literal).unwrap_or_default();
        if name == "jobs" && next == "-x" && rest.len() > 1 {
            words = &rest[1..];
            continue;
        }
        if !matches!(name.as_str(), "command" | "builtin" | "-p" | "--") {
            break;
        }
        // `command -v` tells where a program is.
        if rest.is_empty()
            || name == "command" && next.starts_with('-') && next.contains(['v', 'V'])
        {
            break;
        }
        words = rest;
    }
    words
}

/// Whether a variable of a text decides what programs load or run, or which program a name starts.
fn decides_what_runs(name: &str) -> bool {
    is_dangerous_env(name) || matches!(name, "BASH_ALIASES" | "BASH_CMDS")
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
