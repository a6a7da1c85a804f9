//! Values that an interpreter is given beside its program, and that are run all the same.

use super::super::argv::Word;
use super::super::plain_text;
use super::{Interpreter, ProgramSource, runs_shell_text};
use crate::diagnostic::Diagnostic;
use crate::manifest::program::known::{begins, tainted};
use crate::manifest::schema::value_shape::Shape;
use crate::manifest::tool::references::Scope;

/// Modules of Python that run what they are given.
const RUNNING_MODULES: [&str; 16] = [
    "timeit", "trace", "cProfile", "profile", "pdb", "runpy", "bdb", "code", "coverage", "doctest",
    "pickle", "pydoc", "unittest", "IPython", "idlelib", "zipapp",
];

/// Checks the arguments of an interpreter.
pub(super) fn check(
    name: &str,
    interpreter: &Interpreter,
    words: &[Word<'_>],
    scope: &Scope,
) -> Vec<Diagnostic> {
    let free = |word: &&Word<'_>| tainted(word, scope, Shape::Word);
    let mut found = loaded(name, interpreter, words, scope);
    match interpreter.program(name, words) {
        ProgramSource::Text(script) => {
            let at = words.iter().position(|word| std::ptr::eq(word, script));
            let after = at.map_or(words, |at| &words[at + 1..]);
            let text = script.literal().unwrap_or_default();
            // A plain word is harmless unless it stands where a program is named.
            let is_shell = runs_shell_text(name);
            if is_shell
                && plain_text::may_name_a_program(text)
                && let Some(value) = after.iter().find(|word| tainted(word, scope, Shape::Fixed))
            {
                let message = format!("the text of `{name}` may start the program that this names");
                found.push(run(value, &message).help(
                    "write the name of the program into the text, and declare one tool for each \
                     choice",
                ));
                return found;
            }
            let Some(value) = after.iter().find(free) else { return found };
            if runs_shell_text(name) && !plain_text::is_plain(text) {
                let message = format!(
                    "the text of `{name}` may run this value: it does more than hand `\"$1\"` to a \
                     program that is known to run nothing"
                );
                found.push(run(value, &message).help(
                    "write the text as `run: {shell: sh, text: …, vars: {NAME: \"${args.x}\"}}`, \
                     which \
                     hands values over as variables; `\"$NAME\"` stands in the text as an argument of \
                     a program",
                ));
            } else if name == "perl" && opens_files(words, text) {
                found.push(run(value, "perl runs a file's name that ends with `|` as a \
                 command").help(
                    "hand the text over with `stdin`, or open the file in the program with three \
                     arguments: `open my $f, '<', shift`",
                ));
            }
        }
        ProgramSource::File(Some(module)) if name.starts_with("py") => {
            let at = words.iter().position(|word| std::ptr::eq(word, module)).unwrap_or_default();
            let option = at.checked_sub(1).and_then(|before| words[before].literal());
            let is_module = option.is_some_and(|text| text.starts_with('-') && text.ends_with('m'));
            let named = module.literal().unwrap_or_default();
            if is_module && RUNNING_MODULES.contains(&named) {
                let values = words[at + 1..].iter().find(free);
                found.extend(values.map(|value| {
                    run(value, &format!("the module `{named}` runs what it is given")).help(
                        "write what is run as a literal, or into a script beside the \
                         manifest",
                    )
                }));
            }
        }
        _ => {}
    }
    found
}

/// Values of options that name what an interpreter loads.
fn loaded(
    name: &str,
    interpreter: &Interpreter,
    words: &[Word<'_>],
    scope: &Scope,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut before = None;
    for word in words {
        let text = begins(word);
        let short = |option: &&str| option.len() == 2 && text.starts_with(*option);
        let attached = match text.split_once('=') {
            Some((option, _)) if option.starts_with("--") => interpreter.loads.contains(&option),
            _ => interpreter.loads.iter().any(short),
        };
        let follows = before.is_some_and(|option: &str| interpreter.loads.contains(&option));
        if (attached || follows) && tainted(word, scope, Shape::Fixed) {
            let message = format!("a value of this option of `{name}` names what is loaded or run");
            found.push(run(word, &message).help("write the value of the option as a literal"));
        }
        // What follows the program's text or file belongs to the program.
        let value = before.is_some_and(|option| interpreter.valued.contains(&option));
        if text == "--" || !value && !text.starts_with(['-', '+']) {
            break;
        }
        before = word.literal();
        if before.is_some_and(|option| interpreter.text_follows(option)) {
            break;
        }
    }
    found
}

/// Whether perl opens the files among its arguments by itself, in the way that also runs commands.
fn opens_files(words: &[Word<'_>], text: &str) -> bool {
    let options = words.iter().map_while(Word::literal).take_while(|text| text.starts_with('-'));
    let mut clusters = options.filter(|option| !option.starts_with("--"));
    let reads = clusters.any(|option| option.contains(['n', 'p']) && !option.starts_with("-M"));
    reads || text.replace("<<>>", "").contains("<>") || text.contains("ARGV>")
}

fn run(word: &Word<'_>, message: &str) -> Diagnostic {
    Diagnostic::error("spliced-script", &word.node.span, message)
}
