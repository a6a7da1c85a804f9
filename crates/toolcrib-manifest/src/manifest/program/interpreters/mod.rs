//! Programs that run a text as a program: no value is ever spliced into that text.

mod evaluated;
mod passed;

use std::fmt::Display;

use super::argv::Word;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::position::Span;
use crate::manifest::program::known;
use crate::manifest::program::known::Read;
use crate::manifest::tool::references::Scope;
use crate::programs::{is_any_shell, name_without_version};
use crate::template::{Piece, Reference};
pub(in crate::manifest) use evaluated::evaluated;

/// A program that runs a text as a program, and how its arguments are read.
struct Interpreter {
    names: &'static [&'static str],
    /// Letters of the options that a program's text follows.
    text: &'static [char],
    /// Options that a value of their own follows.
    valued: &'static [&'static str],
    /// Options whose value is run or loaded.
    loads: &'static [&'static str],
}

const INTERPRETERS: [Interpreter; 9] = [
    Interpreter {
        // Those of the table of programs.
        names: &[],
        text: &['c'],
        valued: &["-o", "+o", "-O", "+O", "--rcfile", "--init-file"],
        loads: &["--rcfile", "--init-file", "--init-command"],
    },
    Interpreter {
        names: &["su"],
        text: &['c'],
        valued: &["-s", "--shell", "-g", "--group"],
        loads: &["-s", "--shell"],
    },
    Interpreter {
        names: &["python", "pypy"],
        text: &['c'],
        valued: &["-W", "-X"],
        loads: &["-W", "-X"],
    },
    Interpreter {
        names: &["perl"],
        text: &['e', 'E'],
        valued: &["-I"],
        loads: &["-I", "-M", "-m", "-d"],
    },
    Interpreter {
        names: &["ruby"],
        text: &['e'],
        valued: &["-I", "-r", "-C", "-E"],
        loads: &["-I", "-r", "-C"],
    },
    Interpreter {
        names: &["node", "bun"],
        text: &['e', 'p'],
        valued: &["-r", "--require", "--import", "-C", "--loader", "--experimental-loader"],
        loads: &["-r", "--require", "--import", "--loader", "--experimental-loader", "--preload"],
    },
    Interpreter { names: &["php"], text: &['r'], valued: &["-d", "-c"], loads: &["-d", "-c"] },
    Interpreter { names: &["lua", "luajit"], text: &['e'], valued: &["-l"], loads: &["-l"] },
    Interpreter { names: &["osascript"], text: &['e'], valued: &["-l"], loads: &[] },
];

/// Checks every interpreter of an argument vector, wrapped ones included, and the texts that its shells
/// run. Returns whether one of them reads its program from standard input.
pub(in crate::manifest) fn check(
    words: &[Word<'_>],
    read: &Read<'_>,
    scope: &Scope,
    found: &mut Vec<Diagnostic>,
) -> bool {
    let from_stdin = check_programs(words, read, scope, found);
    for (at, program) in &read.started {
        found.extend(passed::parameters(program, &words[at + 1..], scope));
    }
    from_stdin
}

/// The same without the texts of shells.
pub(in crate::manifest) fn check_programs(
    words: &[Word<'_>],
    read: &Read<'_>,
    scope: &Scope,
    found: &mut Vec<Diagnostic>,
) -> bool {
    let mut from_stdin = false;
    let is_program = |at: usize| read.started.iter().any(|(program, _)| *program == at);
    // A program that starts no other has no interpreter among its arguments; of others nobody knows.
    let plain = words.first().and_then(Word::literal).is_some_and(known::starts_nothing);
    for (at, word) in words.iter().enumerate().filter(|(at, _)| !plain || is_program(*at)) {
        let Some((name, interpreter)) = word.literal().and_then(Interpreter::find) else {
            continue;
        };
        found.extend(passed::check(name, interpreter, &words[at + 1..], scope));
        match interpreter.program(name, &words[at + 1..]) {
            ProgramSource::Text(script) => {
                if let Some(reference) = script.template.references().next() {
                    found.push(spliced_into(name, reference, &script.node.span));
                }
            }
            ProgramSource::Stdin => from_stdin = true,
            ProgramSource::File(file) if is_program(at) => {
                let mut chosen = file.into_iter().flat_map(|word| word.template.references());
                if let (Some(file), Some(reference)) =
                    (file, chosen.find(|found| matches!(found, Reference::Arg(_))))
                {
                    let message = format!(
                        "{reference} would choose the file that `{name}` runs: a model must not \
                         choose it"
                    );
                    let help =
                        "name the file; for a choice among several, declare one tool for each";
                    found.push(
                        Diagnostic::error("model-chosen-program", &file.node.span, message)
                            .help(help),
                    );
                }
            }
            ProgramSource::File(_) => {}
        }
    }
    from_stdin
}

/// Whether an interpreter that is certainly started reads its program from standard input.
pub(in crate::manifest) fn read_stdin(words: &[Word<'_>], read: &Read<'_>) -> bool {
    read.started.iter().any(|(at, program)| {
        Interpreter::find(program).is_some_and(|(name, interpreter)| {
            matches!(interpreter.program(name, &words[at + 1..]), ProgramSource::Stdin)
        })
    })
}

/// Whether the text that a program runs is a shell's, which gets its arguments as positional
/// parameters. `name` has no folder and no version.
pub(crate) fn runs_shell_text(name: &str) -> bool {
    is_any_shell(name) || name == "su"
}

/// Whether a program runs texts or files as programs.
pub(in crate::manifest) fn is_interpreter(program: &str) -> bool {
    Interpreter::find(program).is_some()
}

/// The word that names the file which an interpreter runs.
pub(in crate::manifest) fn file_run<'w, 'n>(
    program: &str,
    words: &'w [Word<'n>],
) -> Option<&'w Word<'n>> {
    let (name, interpreter) = Interpreter::find(program)?;
    match interpreter.program(name, words) {
        ProgramSource::File(file) => file,
        ProgramSource::Text(_) | ProgramSource::Stdin => None,
    }
}

/// The word that holds the text which an interpreter runs, and whether a shell runs it.
pub(in crate::manifest) fn text_run<'w, 'n>(
    program: &str,
    words: &'w [Word<'n>],
) -> Option<(bool, &'w Word<'n>)> {
    let (name, interpreter) = Interpreter::find(program)?;
    match interpreter.program(name, words) {
        ProgramSource::Text(text) => Some((runs_shell_text(name), text)),
        ProgramSource::File(_) | ProgramSource::Stdin => None,
    }
}

/// The diagnostic for a value inside a program's text.
pub(in crate::manifest) fn spliced(reference: &impl Display, place: &Span) -> Diagnostic {
    let message = format!(
        "{reference} is inside a program's text: values are never inserted into the text of a \
         program"
    );
    Diagnostic::error("spliced-script", place, message).help(
        "pass it to the shell as a variable: `run: {shell: sh, text: 'tail \"$FILE\"', vars: \
         {FILE: \
         \"${args.path}\"}}`",
    )
}

/// The diagnostic for a value inside the text that an interpreter runs.
fn spliced_into(interpreter: &str, reference: &Reference, place: &Span) -> Diagnostic {
    let found = spliced(reference, place);
    match interpreter {
        "perl" => found.help(
            "pass it as an argument after the text and read it from `@ARGV`: argv: [perl, -e, \
             'print lc shift @ARGV', \"${args.text}\"]",
        ),
        "python" | "pypy" => found.help(
            "pass it as an argument after the text and read it from `sys.argv`: argv: [python3, \
             -c, \
             'import sys; print(sys.argv[1].lower())', \"${args.text}\"]",
        ),
        "node" | "bun" => found.help(
            "pass it as an argument after the text and read it from `process.argv`: argv: [node, \
             -e, \
             'console.log(process.argv[1])', \"--\", \"${args.text}\"]",
        ),
        "ruby" | "php" | "lua" | "luajit" | "osascript" => found.help(
            "pass it as an argument of its own after the text, and read it there from the list of \
             arguments",
        ),
        _ => found,
    }
}

/// Where an interpreter finds the program it runs.
enum ProgramSource<'w, 'n> {
    Text(&'w Word<'n>),
    /// In the file that a word names, if one does.
    File(Option<&'w Word<'n>>),
    Stdin,
}

impl Interpreter {
    /// The interpreter of that path or name, version numbers aside.
    fn find(program: &str) -> Option<(&str, &'static Self)> {
        let name = name_without_version(program);
        let is_shell = is_any_shell(name);
        let known = INTERPRETERS.iter().find(|known| {
            if known.names.is_empty() { is_shell } else { known.names.contains(&name) }
        })?;
        Some((name, known))
    }

    /// Reads the arguments as the interpreter would: options come first, some with a value.
    fn program<'w, 'n>(&self, name: &str, words: &'w [Word<'n>]) -> ProgramSource<'w, 'n> {
        let is_option = |text: &str| text.starts_with(['-', '+']) && text.len() > 1;
        // `su` takes the user's name, and `-`, before its options; it starts a shell without any.
        let su = name == "su";
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let Some(text) = word.literal() else {
                if self.text_attached(word) {
                    return ProgramSource::Text(word);
                }
                if su {
                    at += 1;
                    continue;
                }
                return ProgramSource::File(Some(word));
            };
            if !su && (text == "-" || text == "-s") {
                return ProgramSource::Stdin;
            } else if self.text_follows(text) {
                let mut rest = words[at + 1..].iter();
                let script = rest.find(|word| !word.literal().is_some_and(is_option));
                let is_powershell = matches!(name, "pwsh" | "powershell");
                return match script {
                    Some(word) if is_powershell && word.literal() == Some("-") => {
                        ProgramSource::Stdin
                    }
                    Some(word) => ProgramSource::Text(word),
                    None => ProgramSource::File(None),
                };
            } else if self.value_follows(text) {
                at += 2;
            } else if is_option(text) || su {
                at += 1;
            } else if known::is_input(text) {
                return ProgramSource::Stdin;
            } else {
                return ProgramSource::File(Some(word));
            }
        }
        ProgramSource::Stdin
    }

    /// Whether an option, alone or in a cluster such as `-ec`, says that a program's text follows.
    fn text_follows(&self, option: &str) -> bool {
        if let Some(long) = option.strip_prefix("--") {
            return matches!(long, "command" | "eval" | "print" | "execute" | "run");
        }
        let cluster = option.strip_prefix('-').unwrap_or_default();
        cluster.eq_ignore_ascii_case("command")
            || cluster.chars().all(|c| c.is_ascii_alphabetic()) && cluster.contains(self.text)
    }

    /// Whether an option takes a value, alone or, for a shell's `-euo`, at the end of a cluster.
    fn value_follows(&self, option: &str) -> bool {
        self.valued.iter().any(|valued| {
            let cluster = valued.len() == 2 && !option.starts_with("--") && option.len() > 2;
            option == *valued
                || cluster && option.starts_with(&valued[..1]) && option.ends_with(&valued[1..])
        })
    }

    /// Whether a word is an option with a program's text attached: `-cprint(…)`, `--eval=…`.
    fn text_attached(&self, word: &Word<'_>) -> bool {
        let Some(Piece::Literal(start)) = word.template.pieces.first() else { return false };
        match start.split_once('=') {
            Some((option, _)) if option.starts_with("--") => self.text_follows(option),
            _ => start.strip_prefix('-').is_some_and(|rest| rest.starts_with(self.text)),
        }
    }
}
