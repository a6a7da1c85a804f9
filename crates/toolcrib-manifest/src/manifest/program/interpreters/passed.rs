//! Values that an interpreter is given beside its program, and that are run all the same.

use std::collections::BTreeMap;

use super::super::argv::Word;
use super::{Interpreter, ProgramSource, text_run};
use crate::diagnostic::Diagnostic;
use crate::manifest::program::known::{self, begins, tainted};
use crate::manifest::program::shell::{self, Taint};
use crate::manifest::schema::value_shape::Shape;
use crate::manifest::tool::references::Scope;
use crate::words::Words;

/// Modules of Python that run what they are given.
static RUNNING_MODULES: Words = Words::of(
    "IPython accelerate asyncio bdb bpython build cProfile code coverage debugpy doctest fabric \
     idlelib inspect invoke ipykernel jupyter kernprof line_profiler memory_profiler nose \
     notebook pdb pickle profile ptpython pydoc pyinstrument runpy scalene smtpd test timeit \
     torch trace turtledemo unittest viztracer xmlrpc zipapp",
);

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
            let Some(value) = after.iter().find(free) else { return found };
            if name == "perl" && opens_files(words, text) {
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
            // `unittest.__main__` is the same program.
            let package = named.split('.').next().unwrap_or_default();
            if is_module && RUNNING_MODULES.contains(package) {
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

/// What the text of a shell does with the values behind it, its positional parameters.
pub(super) fn parameters(program: &str, words: &[Word<'_>], scope: &Scope) -> Option<Diagnostic> {
    let (true, text) = text_run(program, words)? else { return None };
    let at = words.iter().position(|word| std::ptr::eq(word, text))?;
    let given = words.get(at + 1..).unwrap_or_default();
    let mut parameters = Vec::new();
    for word in given {
        let taint = Taint::of(&word.template, scope);
        // A list may stand for any number of parameters.
        let many = if word.node.entry("each").is_some() { 9 } else { 1 };
        parameters.extend(std::iter::repeat_n(taint, many));
    }
    let analysis = shell::analyse(program, text.literal()?, &BTreeMap::new(), &parameters);
    let mut findings = analysis.findings.iter().filter(|found| !found.is_doubt);
    let message = if let Some(found) = findings.next() {
        found.message.clone()
    } else {
        let split = analysis.uses.iter().find(|found| found.is_split)?;
        format!("`${}` is not quoted, so the shell splits it", split.name)
    };
    let value = given.iter().find(|word| tainted(word, scope, Shape::Fixed))?;
    let name = known::base_name(program);
    let message = format!("the text of `{name}` may run this value: {message}");
    Some(run(value, &message).help(
        "hand the value to a program, between double quotes: `sh -c 'tail \"$1\"' sh \"${args.x}\"`; \
         or write `run: {shell: sh, text: …, vars: {NAME: \"${args.x}\"}}`",
    ))
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
