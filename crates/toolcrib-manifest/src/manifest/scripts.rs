//! Programs that run a text as a program: no value is ever spliced into that text.

use super::argv::Word;
use crate::diagnostic::{Diagnostic, Findings};
use crate::source::Span;
use crate::template::{Piece, Reference};

/// A program that runs a text as a program, and how its arguments are read.
struct Interpreter {
    names: &'static [&'static str],
    /// Letters of the options that a program's text follows.
    text: &'static [char],
    /// Options that a value of their own follows.
    valued: &'static [&'static str],
}

const INTERPRETERS: [Interpreter; 9] = [
    Interpreter {
        names: &["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "pwsh"],
        text: &['c'],
        valued: &["-o", "+o", "-O", "+O", "--rcfile", "--init-file"],
    },
    Interpreter { names: &["su"], text: &['c'], valued: &["-s", "--shell", "-g", "--group"] },
    Interpreter { names: &["python", "pypy"], text: &['c'], valued: &["-W", "-X"] },
    Interpreter { names: &["perl"], text: &['e', 'E'], valued: &["-I"] },
    Interpreter { names: &["ruby"], text: &['e'], valued: &["-I", "-r", "-C", "-E"] },
    Interpreter {
        names: &["node", "bun"],
        text: &['e', 'p'],
        valued: &["-r", "--require", "--import", "-C"],
    },
    Interpreter { names: &["php"], text: &['r'], valued: &["-d", "-c"] },
    Interpreter { names: &["lua", "luajit"], text: &['e'], valued: &["-l"] },
    Interpreter { names: &["osascript"], text: &['e'], valued: &["-l"] },
];

/// Checks every interpreter of an argument vector, wrapped ones included. Returns whether one of
/// them reads its program from standard input.
pub(super) fn check(words: &[Word<'_>], findings: &mut Findings<'_>) -> bool {
    let mut from_stdin = false;
    for (at, word) in words.iter().enumerate() {
        let Some((name, interpreter)) = word.literal().and_then(Interpreter::find) else {
            continue;
        };
        match interpreter.program(name, &words[at + 1..]) {
            Program::Text(script) => {
                if let Some(reference) = script.template.references().next() {
                    findings.add(spliced(reference, &script.node.span));
                }
            }
            Program::Stdin => from_stdin = true,
            Program::File => {}
        }
    }
    from_stdin
}

/// The diagnostic for a value inside a program's text.
pub(super) fn spliced(reference: &Reference, place: &Span) -> Diagnostic {
    let message = format!(
        "{reference} stands inside a program's text: no value is ever spliced into shell text"
    );
    Diagnostic::error("spliced-script", place, message).help(
        "pass it as an argument of its own after the text: \
         argv: [sh, -c, 'tail \"$1\"', sh, \"${args.path}\"]",
    )
}

/// Where an interpreter finds the program it runs.
enum Program<'w, 'n> {
    Text(&'w Word<'n>),
    /// In a file.
    File,
    Stdin,
}

impl Interpreter {
    /// The interpreter of that path or name, version numbers aside.
    fn find(program: &str) -> Option<(&str, &'static Self)> {
        let name = program.rsplit('/').next().unwrap_or(program);
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let known = INTERPRETERS.iter().find(|interpreter| interpreter.names.contains(&name))?;
        Some((name, known))
    }

    /// Reads the arguments as the interpreter would: options come first, some with a value.
    fn program<'w, 'n>(&self, name: &str, words: &'w [Word<'n>]) -> Program<'w, 'n> {
        let is_option = |text: &str| text.starts_with(['-', '+']) && text.len() > 1;
        // `su` takes the user's name, and `-`, before its options; it starts a shell without any.
        let su = name == "su";
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let Some(text) = word.literal() else {
                if self.text_attached(word) {
                    return Program::Text(word);
                }
                if su {
                    at += 1;
                    continue;
                }
                return Program::File;
            };
            if !su && (text == "-" || text == "-s") {
                return Program::Stdin;
            } else if self.text_follows(text) {
                let mut rest = words[at + 1..].iter();
                let script = rest.find(|word| !word.literal().is_some_and(is_option));
                return script.map_or(Program::File, Program::Text);
            } else if self.value_follows(text) {
                at += 2;
            } else if is_option(text) || su {
                at += 1;
            } else {
                return Program::File;
            }
        }
        Program::Stdin
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
