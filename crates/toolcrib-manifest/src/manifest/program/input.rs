//! What programs run of what they did not get as arguments: values that they read on standard input,
//! and files that the same text has written.

use std::fmt::Display;

use super::argv::Word;
use super::known::UnknownReader;
use super::shell::commands::{ShellCommand, commands, is_process, literal};
use super::{interpreters, known};
use crate::diagnostic::Diagnostic;
use crate::document::Node;
use crate::manifest::tool::references::Scope;
use crate::template::{Piece, Reference, Template};

/// Texts of shells within texts of shells that are read.
const DEPTH_MAX: usize = 4;

/// Builtins of a shell that put what they read into a variable.
const READERS: [&str; 4] = ["read", "mapfile", "readarray", "select"];

/// Programs that write the file which follows their `-o`.
const WRITE_O: [&str; 11] =
    ["sort", "shuf", "cc", "gcc", "g++", "c++", "clang", "clang++", "ld", "rustc", "curl"];

/// What runs values that stand on the standard input of an argument vector, as one clause; none if
/// nothing is known to.
pub(in crate::manifest) fn runs_input(words: &[Word<'_>], scope: &Scope) -> Option<String> {
    runs(words, scope, 0)
}

/// The same for the text of a shell.
pub(in crate::manifest) fn text_runs_input(
    text: &str,
    node: &Node,
    scope: &Scope,
) -> Option<String> {
    text_runs(text, node, scope, 0)
}

/// The error about a value on standard input that is run.
pub(in crate::manifest) fn run_from_input(
    reason: &str,
    reference: &impl Display,
    node: &Node,
) -> Diagnostic {
    let message = format!("{reference} stands on standard input, and may be run as code: {reason}");
    Diagnostic::error("spliced-script", &node.span, message).help(
        "pass the value to a program that treats its input as data, such as `cat` or `jq`, or \
         pass it as a variable between double quotes: `run: {shell: sh, text: 'wc -w \"$FILE\"', \
         vars: {FILE: \"${args.path}\"}}`",
    )
}

/// The warning about a value on the standard input of a program of which nobody knows what it does with it; a hint if
/// nothing is known of the program.
pub(in crate::manifest) fn not_known_as_data(reader: &UnknownReader, node: &Node) -> Diagnostic {
    let (message, help) = reader.said();
    let build = if reader.runs_things { Diagnostic::warning } else { Diagnostic::hint };
    build("not-understood", &node.span, message).help(help)
}

/// The error about statements that put a variable in as it is: `:name`, where `:'name'` and `:"name"`
/// quote it.
pub(in crate::manifest) fn unquoted_variable(
    statements: &Template,
    variables: &[String],
    node: &Node,
) -> Option<Diagnostic> {
    let texts = statements.pieces.iter().filter_map(|piece| match piece {
        Piece::Literal(text) => Some(text),
        Piece::Reference(_) => None,
    });
    for (text, name) in texts.flat_map(|text| variables.iter().map(move |name| (text, name))) {
        if text.contains("\\gexec") && text.contains(&format!(":'{name}'")) {
            let message = format!(
                "`\\gexec` runs what the query returns, and `:'{name}'` is a part of the query"
            );
            return Some(
                Diagnostic::error("spliced-script", &node.span, message)
                    .help("write the statement itself, with the value as `:'NAME'` in it"),
            );
        }
        let sign = format!(":{name}");
        let is_raw = text.match_indices(&sign).any(|(at, _)| {
            let after = text[at + sign.len()..].chars().next();
            !text[..at].ends_with(':')
                && !after.is_some_and(|after| after == '_' || after.is_ascii_alphanumeric())
        });
        if is_raw {
            let message = format!(
                "`{sign}` puts the value into the statements as it is, with any commands in it"
            );
            return Some(
                Diagnostic::error("spliced-script", &node.span, message)
                    .help(format!("write `:'{name}'` for a text, or `:\"{name}\"` for a name")),
            );
        }
    }
    None
}

fn runs(words: &[Word<'_>], scope: &Scope, depth: usize) -> Option<String> {
    let read = known::read(words, scope);
    if read.runs_stdin || interpreters::read_stdin(words, &read) {
        let name = words.first().and_then(Word::literal).unwrap_or_default();
        return Some(format!("`{}` runs what it reads there", known::base_name(name)));
    }
    for at in read.remote.iter().filter(|_| depth < DEPTH_MAX) {
        let line: Vec<&str> =
            words[*at..].iter().map(|word| word.literal().unwrap_or("\u{fffc}")).collect();
        if let Some(reason) = text_runs(&line.join(" "), words[*at].node, scope, depth + 1) {
            return Some(reason);
        }
    }
    for (nth, (at, name)) in read.started.iter().enumerate() {
        let after = words.get(at + 1..).unwrap_or_default();
        if known::base_name(name) == "xargs" {
            let program = read.started.get(nth + 1).map(|(at, _)| *at);
            if let Some(reason) = program.and_then(|program| handed_on(words, *at, program, scope))
            {
                return Some(reason);
            }
        }
        let Some((is_shell, word)) = interpreters::text_run(name, after) else { continue };
        let Some(text) = word.literal() else { continue };
        if is_shell && depth < DEPTH_MAX {
            if let Some(reason) = text_runs(text, word.node, scope, depth + 1) {
                return Some(reason);
            }
        } else if !is_shell
            && ["exec(", "eval(", "exec ", "eval "].iter().any(|it| text.contains(it))
        {
            let name = known::base_name(name);
            return Some(format!("the text of `{name}` evaluates what it may have read"));
        }
    }
    None
}

/// Whether the program that `xargs` starts would run words of its standard input.
fn handed_on(words: &[Word<'_>], xargs: usize, program: usize, scope: &Scope) -> Option<String> {
    let given = || Piece::Reference(Reference::Arg("$input".to_owned()));
    let started = words.get(program..).unwrap_or_default();
    let name = started.first().and_then(Word::literal).unwrap_or_default();
    let options = words.get(xargs + 1..program).unwrap_or_default();
    let mut all: Vec<Word<'_>> = Vec::new();
    let replaced = replacement(options);
    for word in started {
        let mut template = word.template.clone();
        if let (Some(sign), Some(text)) = (&replaced, word.literal())
            && !sign.is_empty()
            && text.contains(sign.as_str())
        {
            template = Template { pieces: Vec::new() };
            for (nth, part) in text.split(sign.as_str()).enumerate() {
                if nth > 0 {
                    template.pieces.push(given());
                }
                if !part.is_empty() {
                    template.pieces.push(Piece::Literal(part.to_owned()));
                }
            }
        }
        all.push(Word { template, node: word.node });
    }
    let last = words.last()?.node;
    if replaced.is_none() {
        // Programs have up to two words of their own before what they run.
        all.extend(
            (0..3).map(|_| Word { template: Template { pieces: vec![given()] }, node: last }),
        );
    }
    let read = known::read(&all, scope);
    let mut found = Vec::new();
    interpreters::check(&all, &read, scope, &mut found);
    let name = known::base_name(name);
    let is_unsafe = all.first().is_some_and(|word| word.literal().is_none())
        || !found.is_empty()
        || !read.unsafe_values.is_empty();
    if is_unsafe {
        return Some(format!("`xargs` passes it to `{name}`, which runs its arguments"));
    }
    // A word of the input may be an option, unless `--` ends them.
    let is_ended = started.iter().any(|word| word.literal() == Some("--"));
    (replaced.is_none() && !is_ended && known::has_options_that_run(name)).then(|| {
        format!(
            "`xargs` passes it to `{name}`, which has options that start programs; write `--` as \
             the \
             last argument"
        )
    })
}

/// The text for which `xargs` puts in a line of its input, if its options name one.
fn replacement(options: &[Word<'_>]) -> Option<String> {
    let mut options = options.iter().filter_map(Word::literal);
    while let Some(option) = options.next() {
        if option == "-I" {
            return options.next().map(str::to_owned);
        }
        let attached = [("-I", ""), ("-i", "{}"), ("--replace=", ""), ("--replace", "{}")];
        for (name, default) in attached {
            if let Some(sign) = option.strip_prefix(name) {
                return Some(if sign.is_empty() { default } else { sign }.to_owned());
            }
        }
    }
    None
}

fn text_runs(text: &str, node: &Node, scope: &Scope, depth: usize) -> Option<String> {
    let commands = commands(text);
    let program = |command: &ShellCommand| {
        command.words.first().and_then(literal).map(known::base_name).map(str::to_owned)
    };
    let reads = |command: &ShellCommand| {
        program(command).is_some_and(|name| READERS.contains(&name.as_str()))
    };
    let is_variable = text.contains("$(") || text.contains('`') || commands.iter().any(reads);
    let files = written(&commands);
    for command in &commands {
        if command.words.iter().filter_map(literal).any(|word| matches!(word, "eval" | "source"))
            || command.words.first().and_then(literal) == Some(".")
        {
            return Some(
                "the text evaluates what it may have read, with `eval`, `source` or `.`".to_owned(),
            );
        }
        let run = run(command, node);
        if run.iter().any(is_process) {
            return Some("the text runs what commands in `<(…)` write".to_owned());
        }
        if let Some(file) = run.iter().find(|file| files.contains(file)) {
            let file = literal(file).unwrap_or("a file");
            return Some(format!("the text writes `{file}` and runs it"));
        }
        let words = command.words.iter().map(|template| Word {
            template: if is_variable { template.clone() } else { filled(template) },
            node,
        });
        let words: Vec<Word<'_>> = words.collect();
        let Some(first) = words.first() else { continue };
        if first.literal().is_none() {
            return Some("the text starts a program that a variable names".to_owned());
        }
        let is_input =
            command.input.as_ref().is_none_or(|file| literal(file).is_some_and(known::is_input));
        if is_input && let Some(reason) = runs(&words, scope, depth) {
            return Some(reason);
        }
        let read = known::read(&words, scope);
        let mut found = read.unsafe_values.len();
        let mut texts = Vec::new();
        interpreters::check(&words, &read, scope, &mut texts);
        found += texts.len();
        if found > 0 {
            let name = known::base_name(first.literal().unwrap_or_default());
            return Some(format!(
                "the text passes what it may have read to `{name}`, which runs \
             it"
            ));
        }
    }
    None
}

/// A word with some text in the place of what the shell puts in.
fn filled(template: &Template) -> Template {
    let text: String = template
        .pieces
        .iter()
        .map(|piece| if let Piece::Literal(text) = piece { text } else { "\u{fffc}" })
        .collect();
    Template { pieces: vec![Piece::Literal(text)] }
}

/// The error about a text that writes a file in the workspace and runs it.
pub(in crate::manifest) fn runs_written_file(text: &str, node: &Node) -> Option<Diagnostic> {
    let commands = commands(text);
    // In another folder a name without one names another file.
    let elsewhere = commands.iter().any(|command| {
        matches!(command.words.first().and_then(literal), Some("cd" | "pushd"))
            && command
                .words
                .get(1)
                .is_none_or(|to| literal(to).is_none_or(|to| to.starts_with(['/', '~'])))
    });
    if elsewhere {
        return None;
    }
    let files = written(&commands);
    let mut run = commands.iter().flat_map(|command| run(command, node));
    let file = run.find_map(|file| {
        let name = literal(&file)?;
        let is_below = !name.starts_with(['/', '~']) && !name.is_empty();
        (is_below && files.contains(&file)).then(|| name.to_owned())
    })?;
    let message = format!(
        "the text writes `{file}` in the workspace and runs it: anybody who can write files there \
         decides what runs"
    );
    Some(Diagnostic::error("runs-written-file", &node.span, message).help(format!(
        "write it to the private folder of the call, `\"$TMPDIR/{file}\"`, with no value of the call in it: \
         what is run takes values as arguments; or pipe a literal text to `sh -s`"
    )))
}

/// The error about the text of a shell in an argument vector.
pub(in crate::manifest) fn runs_written_file_in(
    words: &[Word<'_>],
    scope: &Scope,
) -> Option<Diagnostic> {
    known::read(words, scope).started.iter().find_map(|(at, name)| {
        let after = words.get(at + 1..).unwrap_or_default();
        let (is_shell, word) = interpreters::text_run(name, after)?;
        word.literal().filter(|_| is_shell).and_then(|text| runs_written_file(text, word.node))
    })
}

/// The words of a command that name files which it writes, each with the length of what stands before the name.
pub(in crate::manifest::program) fn written_words(words: &[&str]) -> Vec<(usize, usize)> {
    let named = |names: &[&str]| words.iter().any(|word| names.contains(&known::base_name(word)));
    let mut files = Vec::new();
    if named(&["tee"]) {
        files.extend((1..words.len()).map(|at| (at, 0)));
    }
    if named(&["cp", "mv", "install", "ln"]) && words.len() > 1 {
        files.push((words.len() - 1, 0));
    }
    for (at, text) in words.iter().enumerate() {
        if (*text == "--output" || *text == "-o" && named(&WRITE_O)) && at + 1 < words.len() {
            files.push((at + 1, 0));
        }
        let option = ["--output=", "of="].into_iter().find(|option| text.starts_with(option));
        files.extend(option.map(|option| (at, option.len())));
    }
    files
}

/// The files that commands write.
fn written(commands: &[ShellCommand]) -> Vec<Template> {
    let mut files = Vec::new();
    for ShellCommand { words, outputs, .. } in commands {
        files.extend(outputs.iter().map(plain));
        let texts: Vec<&str> = words.iter().map(|word| literal(word).unwrap_or_default()).collect();
        for (at, before) in written_words(&texts) {
            let name =
                if before == 0 { plain(&words[at]) } else { plain(&of(&texts[at][before..])) };
            files.push(name);
        }
    }
    files
}

/// The files that a command runs.
fn run(command: &ShellCommand, node: &Node) -> Vec<Template> {
    let ShellCommand { words, input, .. } = command;
    let as_words = words.iter().map(|template| Word { template: template.clone(), node });
    let all: Vec<Word<'_>> = as_words.collect();
    let scope = Scope::default();
    let read = known::read(&all, &scope);
    let mut files = Vec::new();
    let mut started: Vec<(usize, &str)> = read.started.clone();
    if let Some(Word { template, .. }) = all.first().filter(|word| word.literal().is_none()) {
        files.push(plain(template));
    }
    if matches!(words.first().and_then(literal), Some("." | "source")) {
        files.extend(words.get(1).map(plain));
        started.clear();
    }
    for (at, name) in started {
        if name.contains('/') {
            files.push(plain(&of(name)));
        }
        let after = all.get(at + 1..).unwrap_or_default();
        files.extend(interpreters::file_run(name, after).map(|word| plain(&word.template)));
    }
    let named = read.run.iter().filter_map(|at| literal(&words[*at]));
    files.extend(named.map(|text| plain(&of(text.trim_start_matches("-f")))));
    if interpreters::read_stdin(&all, &read) {
        files.extend(input.as_ref().map(plain));
    }
    files
}

fn of(text: &str) -> Template {
    Template { pieces: vec![Piece::Literal(text.to_owned())] }
}

/// The name of a file without `./` before it.
fn plain(file: &Template) -> Template {
    match literal(file) {
        Some(text) => of(text.trim_start_matches("./")),
        None => file.clone(),
    }
}
