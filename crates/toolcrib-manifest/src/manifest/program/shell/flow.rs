//! How values move through a text: from variable to variable, into functions, through pipes and out of
//! substitutions.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::builtins::{FILTERS, REPEAT, TELLS_VARIABLES};
use super::suspects::{INTEGERS, is_declaration_of};
use super::syntax::{Command, Form, Kind, Part, Variable, Way, Word};
use super::unknown::FileNames;
use super::{Analysis, ShellFinding, Taint, Use, reader};
use crate::manifest::schema::value_shape::Shape;
use crate::programs::name_without_version;

/// The code of a value that may be taken for an option.
pub(super) const OPTION: &str = "option-from-value";

/// Texts within texts that are read.
const DEPTH_MAX: usize = 6;

/// The values of positional parameters: `1`, `2`, …, and `@` for all of them.
pub(super) type Parameters = BTreeMap<String, Taint>;

/// What is known while a text is read.
pub(super) struct Flow<'v> {
    /// The whole text.
    pub(super) source: &'v str,
    /// The variables that the text is given.
    given: &'v BTreeMap<String, Option<Taint>>,
    /// The free values of a model that the text is given.
    pub(super) ambient: Option<Taint>,
    /// What the values of variables may hold.
    pub(super) tainted: BTreeMap<String, Taint>,
    /// Variables that are only ever set to one text.
    pub(super) literals: BTreeMap<String, Option<String>>,
    /// The texts other than numbers that variables and the parameters of functions are set to.
    pub(super) texts: BTreeMap<String, BTreeSet<String>>,
    /// Variables that may hold a value, because a program which gets it has written theirs.
    pub(super) guesses: BTreeMap<String, Taint>,
    /// What the indexes of arrays may hold.
    pub(super) keys: BTreeMap<String, Taint>,
    /// What any variable may hold, since a value was put into one whose name is not known.
    pub(super) anywhere: Option<Taint>,
    /// What is known of the names of files that the text runs.
    pub(super) file_names: FileNames,
    /// Other names of variables: `declare -n`.
    pub(super) references: BTreeSet<String>,
    /// Files that a value was written to, by their names in the text.
    pub(super) files: BTreeMap<String, Taint>,
    /// Whether the text has changed its folder, so that a file may have another name.
    pub(super) has_moved: bool,
    /// Whether the shell evaluates numbers as expressions wherever it takes one.
    pub(super) evaluates_numbers: bool,
    /// The value that chooses the folder from here on.
    pub(super) moved: Option<Taint>,
    /// Variables whose values are evaluated when they are set.
    pub(super) integers: BTreeSet<String>,
    /// Variables that hold values by name, whose indexes are texts.
    pub(super) maps: BTreeSet<String>,
    /// What the functions of the text are given.
    pub(super) functions: BTreeMap<String, Parameters>,
    /// Functions that run their parameters as a command: `retry() { "$@"; }`.
    pub(super) runners: BTreeSet<String>,
    /// What the functions of the text read on standard input.
    pub(super) inputs: BTreeMap<String, Taint>,
    /// What they write.
    pub(super) outputs: BTreeMap<String, Taint>,
    /// The functions around the commands of substitutions and texts.
    within: Vec<Option<String>>,
    /// The positional parameters of the text, and of texts within it.
    pub(super) frames: Vec<Parameters>,
    /// What a loop or a descriptor of the text reads.
    pub(super) read: Option<Taint>,
    /// Whether findings are kept.
    pub(super) reports: bool,
    /// The place of the word that holds the text, within another text.
    place: Option<Range<usize>>,
    depth: usize,
    analysis: Analysis,
}

impl<'v> Flow<'v> {
    pub(super) fn new(
        source: &'v str,
        given: &'v BTreeMap<String, Option<Taint>>,
        parameters: &[Option<Taint>],
    ) -> Self {
        let tainted =
            given.iter().filter_map(|(name, taint)| Some((name.clone(), (*taint)?))).collect();
        let values = given.values().chain(parameters).flatten().copied();
        let free = values.filter(|taint| taint.is_by_model && taint.shape == Shape::Free);
        Self {
            source,
            given,
            ambient: free.reduce(Taint::joined).map(Taint::changed),
            tainted,
            literals: BTreeMap::new(),
            texts: BTreeMap::new(),
            guesses: BTreeMap::new(),
            keys: BTreeMap::new(),
            anywhere: None,
            file_names: FileNames::default(),
            references: BTreeSet::new(),
            files: BTreeMap::new(),
            has_moved: false,
            evaluates_numbers: false,
            moved: None,
            integers: INTEGERS.into_iter().map(str::to_owned).collect(),
            maps: BTreeSet::new(),
            functions: BTreeMap::new(),
            runners: BTreeSet::new(),
            inputs: BTreeMap::new(),
            outputs: BTreeMap::new(),
            within: Vec::new(),
            frames: vec![numbered(parameters)],
            read: None,
            reports: false,
            place: None,
            depth: 0,
            analysis: Analysis::default(),
        }
    }

    pub(super) fn into_analysis(mut self) -> Analysis {
        self.analysis.findings.sort_by_key(|found| found.range.start);
        let (given, set) = (self.given, &self.literals);
        self.analysis.unknown.retain(|name| !given.contains_key(name) && !set.contains_key(name));
        self.analysis
    }

    /// Reads commands in their order.
    pub(super) fn run(&mut self, commands: &[Command]) {
        let mut piped = None;
        let mut mentioned = None;
        // What the commands before write and use, of which a compound command may be made.
        let (mut all_written, mut all_mentioned) = (None, None);
        for name in commands.iter().filter_map(|command| command.function.as_ref()) {
            self.functions.entry(name.clone()).or_default();
        }
        for command in commands {
            if !command.is_piped {
                piped = None;
                mentioned = None;
            }
            if command.is_coproc {
                self.read = join(self.read, self.ambient);
            }
            self.parts_of(command);
            self.command(command, piped, mentioned);
            let before = piped;
            piped = self.output(command, piped, None);
            mentioned = join(mentioned, join(self.mentioned(command), piped));
            self.writes(command, join(before, mentioned));
            if let (Some(name), Some(written)) = (&command.function, piped) {
                let known = self.outputs.entry(name.clone()).or_insert(written);
                *known = known.joined(written);
            }
            all_written = join(all_written, piped);
            all_mentioned = join(all_mentioned, mentioned);
            if command.kind == Kind::End {
                (piped, mentioned) = (all_written, all_mentioned);
            }
            // `$_` is the last argument of the command before.
            let last = command.words.last();
            let last = last.and_then(|word| self.taint(word, command.function.as_deref()));
            if let Some(taint) = last {
                self.tainted.insert("_".to_owned(), taint);
            } else {
                self.tainted.remove("_");
            }
        }
    }

    /// Reads a text that a command of this one runs.
    pub(super) fn text(
        &mut self,
        text: &str,
        place: &Range<usize>,
        parameters: Option<Parameters>,
        function: Option<&str>,
    ) {
        if self.depth >= DEPTH_MAX {
            return;
        }
        let commands = reader::read(text);
        let own = parameters.is_some();
        self.within.push(function.filter(|_| !own).map(str::to_owned));
        self.frames.extend(parameters);
        let outer = self.place.clone();
        self.place.get_or_insert_with(|| place.clone());
        self.depth += 1;
        self.run(&commands);
        self.depth -= 1;
        self.place = outer;
        self.within.pop();
        if own {
            self.frames.pop();
        }
    }

    pub(super) fn report(
        &mut self,
        range: &Range<usize>,
        code: &'static str,
        message: String,
        help: &str,
        taint: Taint,
    ) {
        if !self.reports {
            return;
        }
        let range = self.place.clone().unwrap_or_else(|| range.clone());
        let known = self.analysis.findings.iter();
        if known.clone().any(|found| found.range == range) {
            return;
        }
        let help = help.to_owned();
        let is_certain = taint.is_by_model && code != OPTION;
        let (is_doubt, is_hint) = (false, false);
        let found = ShellFinding { range, code, message, help, is_certain, is_doubt, is_hint };
        self.analysis.findings.push(found);
    }

    /// Warns of a value of which nobody knows what becomes of it.
    pub(super) fn doubt(&mut self, range: &Range<usize>, message: String, help: &str) {
        if self.ambient.is_some() {
            self.add_warning(range, "evaluated-variable", message, help, false);
        }
    }

    /// Warns of something of which nobody knows what it does.
    pub(super) fn add_warning(
        &mut self,
        range: &Range<usize>,
        code: &'static str,
        message: String,
        help: &str,
        is_hint: bool,
    ) {
        if !self.reports {
            return;
        }
        let range = self.place.clone().unwrap_or_else(|| range.clone());
        if self.analysis.findings.iter().any(|found| found.range == range) {
            return;
        }
        let help = help.to_owned();
        let (is_certain, is_doubt) = (false, true);
        let found = ShellFinding { range, code, message, help, is_certain, is_doubt, is_hint };
        self.analysis.findings.push(found);
    }

    /// Reads the expansions of a command: uses of variables, expressions, and commands in them.
    fn parts_of(&mut self, command: &Command) {
        let function = command.function.as_deref();
        let splits = command.kind == Kind::Simple || command.kind == Kind::Loop;
        for word in &command.words {
            self.parts(&word.parts, splits, false, function);
        }
        for assignment in &command.assignments {
            let declares_map = is_declaration_of(command, 'A');
            let evaluates = !declares_map && !self.maps.contains(&assignment.name);
            self.parts(&assignment.index, false, evaluates, function);
            if let Some(taint) = self.taint_of(&assignment.index, function) {
                self.keys.insert(assignment.name.clone(), taint);
            }
            for value in &assignment.values {
                self.parts(&value.parts, false, false, function);
            }
        }
        for redirection in &command.redirections {
            let splits = matches!(redirection.way, Way::Input | Way::Output);
            self.parts(&redirection.target.parts, splits, false, function);
        }
    }

    fn parts(&mut self, parts: &[Part], splits: bool, evaluates: bool, function: Option<&str>) {
        for part in parts {
            match part {
                Part::Text(_) => {}
                Part::Variable(variable) => self.variable(variable, splits, evaluates, function),
                Part::Substitution { range, commands } => {
                    self.run_within(commands, function);
                    if evaluates && let Some(taint) = self.suspected_in(part, function) {
                        self.expression(range, "$(…)", taint);
                    }
                }
                Part::Process { commands, is_written, .. } => {
                    let outer = self.read;
                    if *is_written {
                        self.read = join(self.read, self.ambient);
                    }
                    self.run_within(commands, function);
                    self.read = outer;
                }
                Part::Expression(inner) => self.parts(inner, false, true, function),
            }
        }
    }

    fn variable(
        &mut self,
        variable: &Variable,
        splits: bool,
        evaluates: bool,
        function: Option<&str>,
    ) {
        let Variable { name, range, is_quoted, form, expressions, operands, is_assigned } =
            variable;
        if self.reports && name.len() > 1 {
            self.analysis.unknown.insert(name.clone());
        }
        let is_parameter = name.bytes().all(|byte| byte.is_ascii_digit()) || name == "@";
        let is_looked_for = self.given.contains_key(name)
            || is_parameter && self.value_of(name, function).is_some_and(|it| !it.is_fixed());
        if self.reports && is_looked_for {
            let is_split = splits && !is_quoted && *form != Form::Length;
            let range = self.place.clone().unwrap_or_else(|| range.clone());
            let found =
                Use { range, name: name.clone(), is_split: is_split && self.place.is_none() };
            self.analysis.uses.push(found);
        }
        let evaluates_index = !self.maps.contains(name);
        self.parts(expressions, false, evaluates_index, function);
        self.parts(operands, splits && !is_quoted, evaluates, function);
        if *is_assigned && !name.is_empty() {
            let taint = self.taint_of(operands, function);
            self.set(name, taint, None);
        }
        if *form == Form::Unknown {
            self.unknown_form(range);
        }
        let led_to = if evaluates { self.evaluated(variable, function) } else { None };
        let Some(taint) = self.value_of(name, function).or(led_to) else { return };
        match form {
            Form::Length | Form::Names => {}
            Form::Indirect | Form::Expanded if !taint.is_fixed() => {
                let message = format!("the value of `{name}` is run as code here");
                let help = "use the value itself: `${!NAME}` and `${NAME@P}` evaluate it once more";
                self.report(range, "evaluated-variable", message, help, taint);
            }
            _ => {
                if let Some(taint) = led_to {
                    self.expression(range, name, taint);
                }
            }
        }
    }

    /// Reads the commands of a substitution in a function.
    fn run_within(&mut self, commands: &[Command], function: Option<&str>) {
        let outer = self.within.last().cloned().flatten();
        self.within.push(function.map(str::to_owned).or(outer));
        self.run(commands);
        self.within.pop();
    }

    /// The function to which a command belongs.
    pub(super) fn function_of<'a>(&'a self, function: Option<&'a str>) -> Option<&'a str> {
        function.or_else(|| self.within.last().and_then(Option::as_deref))
    }

    /// Reports a value that is evaluated as an expression.
    pub(super) fn expression(&mut self, range: &Range<usize>, name: &str, taint: Taint) {
        if taint.shape < crate::manifest::schema::value_shape::Shape::Free {
            return;
        }
        let message = format!(
            "the value of `{name}` is evaluated as an expression here, which can run commands: \
             `a[$(id)]`"
        );
        let help = "give the argument `type: integer`, or compare texts: `[ \"$N\" -gt 1 ]` and \
                    `case` evaluate nothing";
        self.report(range, "evaluated-variable", message, help, taint);
    }

    /// What a variable or a parameter may hold.
    pub(super) fn value_of(&self, name: &str, function: Option<&str>) -> Option<Taint> {
        let is_parameter = name.bytes().all(|byte| byte.is_ascii_digit())
            || matches!(name, "@" | "*" | "BASH_ARGV");
        if !is_parameter {
            return join(self.tainted.get(name).copied(), self.anywhere);
        }
        let function = self.function_of(function);
        let own = function.and_then(|function| self.functions.get(function));
        let parameters = if function.is_some() { own } else { self.frames.last() };
        if name == "0"
            && let Some(taint) = self.tainted.get("BASH_ARGV0")
        {
            return Some(*taint);
        }
        let key = if name.starts_with(['*', 'B']) { "@" } else { name };
        parameters.and_then(|known| known.get(key)).copied()
    }

    /// What parts may hold.
    pub(super) fn taint_of(&self, parts: &[Part], function: Option<&str>) -> Option<Taint> {
        let each = parts.iter().filter_map(|part| match part {
            Part::Text(_)
            | Part::Expression(_)
            | Part::Variable(Variable { form: Form::Length | Form::Names, .. }) => None,
            Part::Variable(Variable { form: Form::Keys, name, .. }) => self.keys.get(name).copied(),
            Part::Variable(variable) if variable.form == Form::Indirect => {
                join(self.value_of(&variable.name, function), self.pointed_at(variable, function))
            }
            Part::Variable(variable) => join(
                self.value_of(&variable.name, function),
                self.taint_of(&variable.operands, function),
            ),
            Part::Substitution { commands, .. } => self.output_of(commands, function),
            Part::Process { commands, .. } => {
                commands.iter().filter_map(|command| self.mentioned(command)).reduce(Taint::joined)
            }
        });
        let taint = each.reduce(Taint::joined)?;
        let is_whole = matches!(parts, [Part::Variable(_)]);
        Some(if is_whole { taint } else { taint.changed() })
    }

    pub(super) fn taint(&self, word: &Word, function: Option<&str>) -> Option<Taint> {
        self.taint_of(&word.parts, function)
    }

    /// What the words and the input of a command may hold, whatever it does with them.
    pub(super) fn mentioned(&self, command: &Command) -> Option<Taint> {
        let function = command.function.as_deref();
        let words = command.words.iter().skip(1);
        let targets = command.redirections.iter();
        let targets = targets.filter(|one| one.way != Way::Output).map(|one| &one.target);
        words.chain(targets).filter_map(|word| self.taint(word, function)).reduce(Taint::joined)
    }

    /// What a command may write, if that is made of values that the text is given.
    fn output(
        &self,
        command: &Command,
        piped: Option<Taint>,
        outer: Option<&str>,
    ) -> Option<Taint> {
        let function = command.function.as_deref().or(outer);
        let name = command.words.first().and_then(Word::literal).unwrap_or_default();
        if let Some(written) =
            self.outputs.get(&name).filter(|_| self.functions.contains_key(&name))
        {
            return Some(*written);
        }
        let name = name_without_version(&name);
        if TELLS_VARIABLES.contains(&name) {
            let is_prefix = command.words.len() > 1 && matches!(name, "env" | "set" | "export");
            return if is_prefix { None } else { self.ambient };
        }
        let input = command.redirections.iter().filter(|one| one.way == Way::Text);
        let input = input.filter_map(|one| self.taint(&one.target, function)).reduce(Taint::joined);
        let input = join(input, self.held_by_files(command));
        let words = command.words.iter().skip(1);
        let own = words.filter_map(|word| self.taint(word, function)).reduce(Taint::joined);
        let repeated =
            join(own.filter(|_| REPEAT.contains(&name)), input.filter(|_| name == "cat"));
        let repeated = join(repeated, self.tainted.get("PWD").copied().filter(|_| name == "pwd"));
        let passed = join(input, piped).filter(|_| FILTERS.contains(&name));
        join(repeated, passed).map(Taint::changed)
    }

    /// What a list of commands may write.
    fn output_of(&self, commands: &[Command], function: Option<&str>) -> Option<Taint> {
        let mut written = None;
        let mut piped = None;
        for (nth, command) in commands.iter().enumerate() {
            let before = if command.is_piped { piped } else { None };
            piped = self.output(command, before, function);
            if !commands.get(nth + 1).is_some_and(|next| next.is_piped) {
                written = join(written, piped);
            }
        }
        written
    }

    /// What the variables may hold that programs see.
    pub(super) fn given_by_model(&self) -> Option<Taint> {
        let given = self.given.values().flatten().copied();
        given.filter(|taint| taint.is_by_model && !taint.is_fixed()).reduce(Taint::joined)
    }

    /// Records the value of a variable.
    pub(super) fn set(&mut self, name: &str, taint: Option<Taint>, literal: Option<String>) {
        if let Some(taint) = taint {
            let known = self.tainted.entry(name.to_owned()).or_insert(taint);
            *known = known.joined(taint);
            if self.references.contains(name) {
                self.anywhere = join(self.anywhere, Some(taint));
            }
        }
        if let Some(literal) = &literal {
            self.add_text(name, literal);
        }
        match self.literals.get(name) {
            None => {
                self.literals.insert(name.to_owned(), literal);
            }
            Some(known) if *known != literal => {
                self.literals.insert(name.to_owned(), None);
            }
            Some(_) => {}
        }
    }
}

/// Positional parameters from `$0` on.
pub(super) fn numbered(values: &[Option<Taint>]) -> Parameters {
    let each = values.iter().enumerate();
    let mut parameters: Parameters =
        each.filter_map(|(nth, taint)| Some((nth.to_string(), (*taint)?))).collect();
    if let Some(all) = values.iter().skip(1).filter_map(|taint| *taint).reduce(Taint::joined) {
        parameters.insert("@".to_owned(), all);
    }
    parameters
}

pub(super) fn join(one: Option<Taint>, other: Option<Taint>) -> Option<Taint> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.joined(other)),
        (one, other) => one.or(other),
    }
}
