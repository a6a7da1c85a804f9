//! Argument vectors: their entries, and the checks of values in them.

use super::options::{self, Sure};
use crate::declaration::ArgvEntry;
use crate::diagnostic::fix::Fix;
use crate::diagnostic::position::Span;
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::{Node, NodeValue};
use crate::fields::{Fields, wrong_type};
use crate::manifest::program::input;
use crate::manifest::program::interpreters;
use crate::manifest::program::known;
use crate::manifest::program::known::Read;
use crate::manifest::program::targets;
use crate::manifest::tool::references::Scope;
use crate::manifest::{keys, variants};
use crate::template::{Piece, Reference, Template};

/// An argument as far as it is known at load time, with its node.
pub(in crate::manifest) struct Word<'n> {
    pub(crate) template: Template,
    pub(crate) node: &'n Node,
}

impl Word<'_> {
    /// The text, if it contains no references.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self.template.pieces.as_slice() {
            [] => Some(""),
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }
}

/// A parsed argument vector.
#[derive(Debug)]
pub(in crate::manifest) struct Argv {
    /// Its entries, if all of them are valid.
    pub(in crate::manifest) entries: Option<Vec<ArgvEntry>>,
    /// Whether standard input is run as a program.
    pub(in crate::manifest) program_from_stdin: bool,
    /// What may run values from standard input.
    pub(in crate::manifest) input_run: Option<String>,
    /// The program that reads standard input, if nobody knows what it does with it.
    pub(in crate::manifest) unknown_reader: Option<known::UnknownReader>,
    /// Whether a value chooses freely what a program reaches or does.
    pub(in crate::manifest) chooses_target: bool,
    /// Variables of a client of a database that values set.
    pub(in crate::manifest) assigned: Vec<String>,
    /// Errors about values that would choose a program, be run, or name an option, which
    /// `unsafe_argv` allows.
    pub(in crate::manifest) unsafe_values: Vec<Diagnostic>,
}

/// Reads and checks an argument vector.
pub(in crate::manifest) fn read(
    list: &Node,
    place: &Span,
    scope: &mut Scope,
    findings: &mut Findings<'_>,
) -> Argv {
    let mut words = Vec::new();
    let entries = entries(list, scope, &mut words, findings);
    check_program(list, place, &words, findings);
    let read = known::read(&words, scope);
    let mut unsafe_values = Vec::new();
    let mut program_from_stdin =
        interpreters::check(&words, &read, scope, &mut unsafe_values) || read.runs_stdin;
    for (sure, found) in options::dangling(list, &words, &read, scope) {
        if sure == Sure::Yes {
            findings.add(found);
        }
    }
    let unknown_reader = known::unknown_reader(&words, &read);
    let chooses_target = !targets::chosen(&words, &read, scope).is_empty();
    let assigned = read.assigned;
    unsafe_values.extend(read.unsafe_values);
    if let Some(words) = known::given_by_xargs(&words, scope).filter(|_| unsafe_values.is_empty()) {
        let read = known::read(&words, scope);
        interpreters::check(&words, &read, scope, &mut unsafe_values);
        unsafe_values.extend(read.unsafe_values);
    }
    let shown = variants::check(list, &words, scope, &unsafe_values);
    program_from_stdin |= shown.program_from_stdin;
    unsafe_values.extend(shown.unsafe_values);
    unsafe_values.extend(options::names_from_values(&words, scope));
    unsafe_values.extend(input::runs_written_file_in(&words, scope));
    let input_run = input::runs_input(&words, scope).or(shown.input_run);
    Argv {
        entries,
        program_from_stdin,
        input_run,
        unknown_reader,
        chooses_target,
        assigned,
        unsafe_values,
    }
}

/// Adds warnings and hints about an argument vector, which only lints report.
pub(crate) fn look(tool: &Node, findings: &mut Findings<'_>) {
    let Some(run) = tool.entry("run").map(|run| &run.node) else { return };
    let mut scope = Scope::default();
    if let Some(input) = tool.entry("input") {
        scope.declare(&input.node);
    }
    look_at_insisted(run, &mut scope, findings);
    let Some(list) = run.entry("argv").map(|entry| &entry.node) else { return };
    // Errors of the entries have been reported.
    let mut said = Findings::new(findings.text);
    let mut words = Vec::new();
    entries(list, &mut scope, &mut words, &mut said);
    let read = known::read(&words, &scope);
    let dangling = options::dangling(list, &words, &read, &scope).into_iter();
    findings.add_all(dangling.filter(|(sure, _)| *sure == Sure::No).map(|(_, found)| found));
    findings.add_all(options::unended(list, &words, &read, &scope));
    findings.add_all(options::unended_input(run, &words, &read, &scope));
    findings.add_all(interpreters::evaluated(&words, &read, &scope));
    // A reason says that any target is meant; `list` and the lock show it.
    if run.entry("unsafe_argv").is_none() {
        findings.add_all(targets::chosen(&words, &read, &scope));
    }
}

/// Adds a hint for each value that only `unsafe_argv` allows.
fn look_at_insisted(run: &Node, scope: &mut Scope, findings: &mut Findings<'_>) {
    let reason = run.entry("unsafe_argv").and_then(|entry| entry.node.as_str());
    let Some(reason) = reason.filter(|reason| !reason.trim().is_empty()) else { return };
    let mut said = Findings::new(findings.text);
    let argv = match (run.entry("argv"), run.entry("args")) {
        (Some(argv), _) => read(&argv.node, &argv.key_span, scope, &mut said),
        (None, Some(args)) => arguments(&args.node, scope, &mut said),
        (None, None) => return,
    };
    findings.add_all(argv.unsafe_values.into_iter().map(|found| {
        let message = format!("only `unsafe_argv` allows this: {}", found.message);
        Diagnostic::hint("insisted-value", &found.span, message)
            .help(format!("the reason given is: {}", reason.trim()))
    }));
}

/// Reads the arguments of a program that another key names.
pub(in crate::manifest) fn arguments(
    list: &Node,
    scope: &mut Scope,
    findings: &mut Findings<'_>,
) -> Argv {
    let mut words = Vec::new();
    let entries = entries(list, scope, &mut words, findings);
    let mut unsafe_values = Vec::new();
    interpreters::check(&words, &Read::default(), scope, &mut unsafe_values);
    unsafe_values.extend(options::names_from_values(&words, scope));
    for (sure, found) in options::dangling(list, &words, &Read::default(), scope) {
        if sure == Sure::Yes {
            findings.add(found);
        }
    }
    Argv {
        entries,
        program_from_stdin: false,
        input_run: None,
        unknown_reader: None,
        chooses_target: false,
        assigned: Vec::new(),
        unsafe_values,
    }
}

/// Reads entries, and every argument in them as a word.
pub(super) fn entries<'n>(
    list: &'n Node,
    scope: &mut Scope,
    words: &mut Vec<Word<'n>>,
    findings: &mut Findings<'_>,
) -> Option<Vec<ArgvEntry>> {
    let mut argv = Vec::new();
    for node in list.items() {
        match &node.value {
            NodeValue::String(_) => {
                let template = word(node, scope, words, findings);
                argv.push(template.map(ArgvEntry::One));
            }
            NodeValue::Mapping(_) => argv.push(conditional(node, scope, words, findings)),
            _ => {
                let raw = findings.text.get(node.span.clone()).unwrap_or_default();
                let help = if raw.is_empty() || raw.starts_with('[') {
                    "one entry is one argument: a text, {if: …, then: […]} or {each: …}".to_owned()
                } else {
                    format!("quote it: \"{raw}\"")
                };
                let list = matches!(node.value, NodeValue::Sequence(_));
                let fix = if list { None } else { Fix::quote(&node.span, raw) };
                findings.add(wrong_type(node, None, "`argv` expects texts").help(help).fix(fix));
                argv.push(None);
            }
        }
    }
    argv.into_iter().collect()
}

/// Reads one argument.
fn word<'n>(
    node: &'n Node,
    scope: &mut Scope,
    words: &mut Vec<Word<'n>>,
    findings: &mut Findings<'_>,
) -> Option<Template> {
    let template = scope.template(node, findings)?;
    for reference in template.references() {
        match reference {
            Reference::Secret(name) => findings.add(
                Diagnostic::error(
                    "secret-in-argv",
                    &node.span,
                    format!("the secret `{name}` would be visible in process lists"),
                )
                .help(format!("pass it in `env: {{NAME: \"${{secret.{name}}}\"}}` or `stdin`")),
            ),
            Reference::Arg(name)
                if scope.arguments.get(name).is_some_and(|known| known.list == Some(true)) =>
            {
                findings.add(
                    Diagnostic::error(
                        "list-as-argument",
                        &node.span,
                        format!("`{name}` is a list, but one entry is one argument"),
                    )
                    .help(format!("write {{each: {name}}} for one argument per item")),
                );
            }
            _ => {}
        }
    }
    words.push(Word { template: template.clone(), node });
    Some(template)
}

/// Reads `{if: x, then: […]}` or `{each: x}`.
fn conditional<'n>(
    node: &'n Node,
    scope: &mut Scope,
    words: &mut Vec<Word<'n>>,
    findings: &mut Findings<'_>,
) -> Option<ArgvEntry> {
    let Some(fields) = Fields::read(node, &keys::ARGV_ENTRY, findings) else {
        scope.unclear = true;
        return None;
    };
    match (fields.node("if"), fields.node("then"), fields.node("each")) {
        (Some(condition), Some(then), None) => {
            let condition = argument(condition, scope, findings)?;
            let then: Vec<Option<Template>> =
                then.items().iter().map(|item| word(item, scope, words, findings)).collect();
            Some(ArgvEntry::If { condition, then: then.into_iter().collect::<Option<_>>()? })
        }
        (None, None, Some(each)) => {
            let argument = argument(each, scope, findings)?;
            if scope.arguments.get(&argument).is_some_and(|known| known.list == Some(false)) {
                findings.add(
                    Diagnostic::error(
                        "each-of-one",
                        &each.span,
                        format!("`each` needs a list, but `{argument}` is not a list"),
                    )
                    .help(format!("write \"${{args.{argument}}}\", or give it `type: array`")),
                );
            }
            let reference = Piece::Reference(Reference::Arg(argument.clone()));
            words.push(Word { template: Template { pieces: vec![reference] }, node });
            Some(ArgvEntry::Each { argument })
        }
        _ => {
            scope.unclear = true;
            let whole = !["if", "then", "each"]
                .iter()
                .any(|key| fields.has(key) && fields.node(key).is_none());
            if whole {
                findings.add(
                    Diagnostic::error(
                        "bad-argv",
                        &node.span,
                        "this entry is neither a condition nor a list",
                    )
                    .help("write {if: name, then: [\"--flag\"]} or {each: name}"),
                );
            }
            None
        }
    }
}

/// A plain argument name.
fn argument(node: &Node, scope: &mut Scope, findings: &mut Findings<'_>) -> Option<String> {
    let written = node.as_str()?;
    if let Some(name) = written.strip_prefix("${args.").and_then(|rest| rest.strip_suffix('}')) {
        scope.used.insert(name.to_owned());
        findings.add(
            Diagnostic::error(
                "bad-reference",
                &node.span,
                "a name is expected here, not a \
             reference",
            )
            .help(format!("write the name alone: {name}"))
            .fix(Fix::replace(
                &node.span,
                name,
                format!("write the name `{name}` alone"),
            )),
        );
        return None;
    }
    scope.refer_argument(written, &node.span, findings);
    Some(written.to_owned())
}

/// Checks the first entry: the program is always present and never chosen by a model.
fn check_program(list: &Node, place: &Span, words: &[Word<'_>], findings: &mut Findings<'_>) {
    let Some(first) = list.items().first() else {
        findings.add(
            Diagnostic::error("empty-argv", place, "`argv` is empty, so there is nothing to run")
                .help("write the program and its arguments: argv: [df, -h]"),
        );
        return;
    };
    if !matches!(first.value, NodeValue::String(_)) {
        if matches!(first.value, NodeValue::Mapping(_)) {
            let message = "the program must be present in every call";
            findings.add(
                Diagnostic::error("model-chosen-program", &first.span, message)
                    .help("make the first entry a literal"),
            );
        }
        return;
    }
    let Some(program) = words.first().filter(|word| std::ptr::eq(word.node, first)) else { return };
    if program.literal().is_some_and(|name| name.trim().is_empty()) {
        findings.add(Diagnostic::error("empty-argv", &first.span, "the program's name is empty"));
    }
    if program.template.references().any(|reference| matches!(reference, Reference::Arg(_))) {
        let is_line = matches!(program.template.pieces.first(), Some(Piece::Literal(text)) if text.contains(' '));
        let help = if is_line {
            line_in_entries(&program.template)
        } else {
            "name the program; for a choice among several, declare one tool for each".to_owned()
        };
        let message = "a model must not choose the program";
        findings.add(Diagnostic::error("model-chosen-program", &first.span, message).help(help));
    }
}

/// A suggestion for a command line in a single entry: several entries.
fn line_in_entries(line: &Template) -> String {
    let line = line.to_string();
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_shells = |word: &&str| ["|", "||", "&&", ";", ">", ">>", "<", "&"].contains(word);
    if words.iter().any(is_shells) || line.contains(['"', '\'', '`']) {
        return "write one entry for each argument, the program first; a line that needs a shell is \
                written `run: {shell: sh, text: …, vars: {…}}`"
            .to_owned();
    }
    let entries: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    format!("write one entry for each argument: [{}]", entries.join(", "))
}
