//! Commands of a text as the programs that they start read them: the tables are those of argument
//! vectors.

use super::Taint;
use super::builtins::is_descriptor;
use super::flow::{Flow, OPTION, numbered};
use super::sinks::shown;
use super::syntax::{Command, Part, Word, split_name};
use crate::document::{Node, NodeValue, Style};
use crate::manifest::program::argv;
use crate::manifest::program::{input, interpreters, known};
use crate::manifest::schema::value_shape::{Beginning, Shape};
use crate::manifest::tool::references::{Argument, Scope};
use crate::template::{Piece, Reference, Template};

const BEHIND_TEXT: &str = "write the text between single quotes, and pass the value behind it: \
                           `sh -c 'tail \"$1\"' sh \"$FILE\"`";

impl Flow<'_> {
    /// Reads the words of a command as the program that it starts would. It may read `input`, and certainly reads
    /// `direct`.
    pub(super) fn program(
        &mut self,
        command: &Command,
        input: Option<Taint>,
        direct: Option<Taint>,
    ) {
        let function = command.function.as_deref();
        let mut scope = Scope::default();
        let mut taints = Vec::new();
        let mut nodes = Vec::new();
        let mut templates = Vec::new();
        for word in &command.words {
            taints.push(self.taint(word, function));
            templates.push(self.template(word, function, &mut scope));
            nodes.push(Node {
                value: NodeValue::Null,
                span: word.range.clone(),
                style: Style::Explicit,
            });
        }
        let words: Vec<argv::Word<'_>> = templates
            .into_iter()
            .zip(&nodes)
            .map(|(template, node)| argv::Word { template, node })
            .collect();
        let read = known::read(&words, &scope);
        let mut found = Vec::new();
        interpreters::check_programs(&words, &read, &scope, &mut found);
        let reason = input
            .filter(|taint| !taint.is_fixed())
            .and_then(|taint| Some((input::runs_input(&words, &scope)?, taint)));
        self.unknown_reader(&words, &read, direct.filter(|_| reason.is_none()));
        let mut texts = Vec::new();
        self.awk_given(&words, &read);
        for (at, name) in &read.started {
            let after = &words[at + 1..];
            self.assigned_before(&command.words[..*at], &taints);
            if let Some((true, word)) = interpreters::text_run(name, after)
                && let Some(text) = word.literal()
            {
                let place = words.iter().position(|other| std::ptr::eq(other, word));
                let place = place.unwrap_or_default();
                let values = taints.get(place + 1..).unwrap_or_default();
                texts.push((text.to_owned(), word.node.span.clone(), numbered(values)));
            }
        }
        let any = taints.iter().flatten().copied().reduce(Taint::joined);
        let statements = Template { pieces: vec![Piece::Literal(self.source.to_owned())] };
        let unquoted = nodes
            .first()
            .and_then(|node| input::unquoted_variable(&statements, &read.assigned, node));
        found.extend(unquoted);
        let run = files_run(&words, &read);
        let named = read.run.clone();
        let programs: Vec<usize> = read.started.iter().map(|(at, _)| *at).collect();
        let runs_input = interpreters::read_stdin(&words, &read);
        self.unknown_files(command, &read.started, &run, runs_input);
        let evaluated: Vec<_> = interpreters::evaluated(&words, &read, &scope)
            .into_iter()
            .map(|found| (found.span, found.message, found.help.unwrap_or_default()))
            .collect();
        let options = options_from_values(&words, &read, &taints);
        if let Some(words) = known::given_by_xargs(&words, &scope) {
            let read = known::read(&words, &scope);
            interpreters::check_programs(&words, &read, &scope, &mut found);
            found.extend(read.unsafe_values);
        }
        let unsafe_values = read.unsafe_values.into_iter().chain(found);
        let unsafe_values: Vec<_> = unsafe_values
            .map(|found| {
                let word = command.words.iter().position(|word| word.range == found.span);
                let taint = word.and_then(|at| taints[at]).or(any);
                (found, taint)
            })
            .collect();
        for (found, taint) in unsafe_values {
            let Some(taint) = taint else { continue };
            let message = as_variables(&found.message);
            let help = as_variables(found.help.as_deref().unwrap_or_default());
            let help =
                if message.contains("is inside a program's text") { BEHIND_TEXT } else { &help };
            self.report(&found.span, found.code, message, help, taint);
        }
        if let Some(any) = any {
            // Whether code runs its arguments is only a guess.
            let guess = Taint { is_by_model: false, ..any };
            for (range, message, help) in evaluated {
                self.report(&range, "evaluated-variable", message, &help, guess);
            }
        }
        for at in run {
            self.run_file(&command.words[at], input);
        }
        self.run_written(command, &programs, &named);
        self.report_options(command, &options, &taints);
        if let Some((reason, taint)) = reason {
            let range = command.words.first().map(|word| word.range.clone()).unwrap_or_default();
            let message =
                format!("what stands on standard input here may be run as code: {reason}");
            let help = "pass the value to a program that treats its input as data, or as a variable \
                        between double quotes";
            self.report(&range, "spliced-script", message, help, taint);
        }
        for (text, place, parameters) in texts {
            self.text(&text, &place, Some(parameters), None);
        }
    }

    /// Sets what the words before a program set in its environment: `env A="$X" sh`.
    fn assigned_before(&mut self, words: &[Word], taints: &[Option<Taint>]) {
        for (word, taint) in words.iter().zip(taints) {
            let shown = shown(word);
            let name = shown.split_once('=').map(|(name, _)| split_name(name));
            if let Some((name, "")) = name
                && !name.is_empty()
                && taint.is_some()
            {
                self.set(name, *taint, None);
            }
        }
    }

    /// Reports programs in awk that run a variable of the environment, if a value may be in one.
    fn awk_given(&mut self, words: &[argv::Word<'_>], read: &known::Read<'_>) {
        let given = self.given_by_model();
        for (at, text) in &read.awk {
            if let Some(taint) = given.filter(|_| known::awk_runs(text, &["ENVIRON"], false)) {
                let message = "the program of awk may run a variable of the environment";
                let help = "write what is run as a literal in the program";
                let range = &words[*at].node.span;
                self.report(range, "spliced-script", message.to_owned(), help, taint);
            }
        }
    }

    /// A file that an interpreter runs, if the text has written a value to it.
    fn run_file(&mut self, file: &Word, input: Option<Taint>) {
        let written = self.held(&shown(file));
        let opened = input.filter(|_| is_descriptor(file));
        if let Some(taint) = written.or(opened).filter(|taint| !taint.is_fixed()) {
            let message = format!("`{}` holds a value, and is run as a program here", shown(file));
            let help = "write what is run as a literal, and pass the value as an argument";
            self.report(&file.range, "evaluated-variable", message, help, taint);
        }
    }

    fn report_options(
        &mut self,
        command: &Command,
        options: &[(usize, String)],
        taints: &[Option<Taint>],
    ) {
        for (at, program) in options {
            let word = &command.words[*at];
            if let Some(taint) = taints[*at] {
                let message = format!(
                    "`{program}` takes a value that begins with `-` for an option here, and some of its \
                     options run what they are given"
                );
                let help = "write `--` before it, or a folder: `./$X`; attach the value of a long option, \
                            `--option=\"$X\"`; or give the argument a pattern that begins otherwise";
                self.report(&word.range, OPTION, message, help, taint);
            }
        }
    }

    /// A word as a template: what the values of the text decide is a reference.
    fn template(&self, word: &Word, function: Option<&str>, scope: &mut Scope) -> Template {
        let mut pieces: Vec<Piece> = Vec::new();
        for part in &word.parts {
            let taint = self.taint_of(std::slice::from_ref(part), function);
            let name = match part {
                Part::Variable(variable) => variable.name.clone(),
                _ => "(".to_owned(),
            };
            let text = match (part, taint) {
                (Part::Text(text), _) => text.clone(),
                (_, Some(taint)) => {
                    scope.arguments.entry(name.clone()).or_insert_with(|| argument(taint));
                    pieces.push(Piece::Reference(Reference::Arg(name)));
                    continue;
                }
                (Part::Variable(variable), None) => self
                    .literals
                    .get(&variable.name)
                    .and_then(Clone::clone)
                    .unwrap_or_else(|| "\u{fffc}".to_owned()),
                _ => "\u{fffc}".to_owned(),
            };
            match pieces.last_mut() {
                Some(Piece::Literal(before)) => before.push_str(&text),
                _ => pieces.push(Piece::Literal(text)),
            }
        }
        pieces.retain(|piece| *piece != Piece::Literal(String::new()));
        Template { pieces }
    }
}

/// Values that a program with options that run something may take for an option, each with the program.
fn options_from_values(
    words: &[argv::Word<'_>],
    read: &known::Read<'_>,
    taints: &[Option<Taint>],
) -> Vec<(usize, String)> {
    let may_begin = |at: usize| {
        taints[at]
            .is_some_and(|taint| taint.shape == Shape::Free && taint.beginning == Beginning::Dash)
    };
    read.may_be_options
        .iter()
        .filter(|(at, program)| {
            known::begins(&words[*at]).is_empty()
                && may_begin(*at)
                && !interpreters::is_interpreter(program)
        })
        .map(|(at, program)| (*at, known::base_name(program).to_owned()))
        .collect()
}

/// The positions of the files that interpreters run.
fn files_run(words: &[argv::Word<'_>], read: &known::Read<'_>) -> Vec<usize> {
    let run = read.started.iter().filter_map(|(at, name)| {
        let file = interpreters::file_run(name, &words[at + 1..])?;
        words.iter().position(|other| std::ptr::eq(other, file))
    });
    run.collect()
}

fn argument(taint: Taint) -> Argument {
    Argument {
        span: 0..0,
        list: Some(false),
        shape: taint.shape,
        beginning: taint.beginning,
        listed: Vec::new(),
        has_host: false,
        optional: false,
    }
}

/// A message about references as one about variables of a shell.
fn as_variables(message: &str) -> String {
    let mut text = String::new();
    let mut rest = message;
    while let Some((before, after)) = rest.split_once("${args.") {
        let Some((name, behind)) = after.split_once('}') else { break };
        text.push_str(before);
        match name {
            "(" => text.push_str("$(…)"),
            "x" => text.push_str("$X"),
            name => {
                text.push('$');
                text.push_str(name);
            }
        }
        rest = behind;
    }
    text.push_str(rest);
    text
}
