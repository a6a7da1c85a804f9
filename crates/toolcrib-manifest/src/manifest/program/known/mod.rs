//! Programs that run one of their arguments: wrappers, interpreters, and clients with commands of
//! their own. A value of a model has no place where it would choose a program, be run, or become a
//! setting that names a program.

mod awk;
mod behind;
mod given;
mod input_readers;
mod modules;
mod program;
mod reader;
mod tables;

use super::argv::Word;
use crate::diagnostic::Diagnostic;
use crate::manifest::schema::value_shape::Shape;
use crate::manifest::tool::references::Scope;
use crate::programs::name_without_version;
use crate::template::{Piece, Reference};

pub(in crate::manifest) use awk::runs as awk_runs;
pub(super) use input_readers::{UnknownReader, unknown_reader};
pub(super) use modules::given_by_xargs;
pub(super) use program::Program;
use program::Rest;
use reader::VectorReader;
use tables::TABLES;

/// What was found out about the programs of an argument vector.
#[derive(Debug, Default)]
pub(in crate::manifest) struct Read<'n> {
    /// Values that would choose a program or be run.
    pub(in crate::manifest) unsafe_values: Vec<Diagnostic>,
    /// Whether one of the programs runs what it reads on standard input.
    pub(in crate::manifest) runs_stdin: bool,
    /// Variables of a client of a database that values set.
    pub(in crate::manifest) assigned: Vec<String>,
    /// The programs in awk, each with the position of its word.
    pub(in crate::manifest) awk: Vec<(usize, &'n str)>,
    /// Each program that is started, by the position of the word that names it.
    pub(in crate::manifest) started: Vec<(usize, &'n str)>,
    /// The words that a program runs, or that name what it runs.
    pub(in crate::manifest) run: Vec<usize>,
    /// The words with which a line of text begins that a shell runs on another machine, with the standard input.
    pub(in crate::manifest) remote: Vec<usize>,
    /// The words that a program with options that run something takes for options if they begin with `-`,
    /// each with the program.
    pub(in crate::manifest) may_be_options: Vec<(usize, &'n str)>,
}

/// Reads an argument vector as its programs would, the first word being a program.
pub(in crate::manifest) fn read<'n>(words: &'n [Word<'_>], scope: &'n Scope) -> Read<'n> {
    let mut reader = VectorReader { words, scope, read: Read::default(), has_code_before: false };
    reader.program(0, "");
    reader.read
}

/// The name under which the tables know a program.
pub(crate) fn base_name(program: &str) -> &str {
    name_without_version(program)
}

/// What is known of a program, if anything.
pub(in crate::manifest) fn find(program: &str) -> Option<&'static Program> {
    let name = base_name(program);
    // Some have digits or dots in their names that say no version: `ld-linux.so`, `pip3`.
    let whole = program.rsplit('/').next().unwrap_or(program);
    TABLES.find(&[name, whole])
}

/// Whether an option of a program takes a value of its own; `None` if nobody knows.
pub(in crate::manifest) fn takes_value(program: &str, option: &str) -> Option<bool> {
    let known = find(program)?;
    let lists = [&known.valued, &known.code, &known.assigns, &known.files, &known.folder];
    if lists.iter().any(|options| options.contains(option)) {
        return Some(true);
    }
    known.complete.then_some(false)
}

/// Whether a program is known to start no other.
pub(in crate::manifest) fn starts_nothing(program: &str) -> bool {
    find(program).is_some_and(|known| {
        known.complete && known.code.is_empty() && matches!(known.rest, Rest::Plain)
    })
}

/// Whether a program has options whose value is run.
pub(in crate::manifest) fn has_options_that_run(program: &str) -> bool {
    find(program).is_some_and(|known| !known.code.is_empty())
}

/// Whether a path is another name of a program's standard input.
pub(in crate::manifest) fn is_input(path: &str) -> bool {
    let parts: Vec<&str> =
        path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    path.starts_with('/')
        && match parts.as_slice() {
            ["dev", "stdin"] | ["dev", "fd", "0"] => true,
            ["proc", _, rest @ ..] => rest.ends_with(&["fd", "0"]),
            _ => false,
        }
}

/// Whether a program is known to take `--` for the end of its options.
pub(in crate::manifest) fn ends_options(program: &str) -> bool {
    TABLES.end_options.contains(base_name(program))
}

/// The text that a word begins with, up to its first reference.
pub(in crate::manifest) fn begins<'a>(word: &'a Word<'_>) -> &'a str {
    match word.template.pieces.first() {
        Some(Piece::Literal(text)) => text,
        _ => "",
    }
}

/// Whether a value of an argument in a word can be more than `tame`.
pub(in crate::manifest) fn tainted(word: &Word<'_>, scope: &Scope, tame: Shape) -> bool {
    word.template.references().any(|reference| match reference {
        Reference::Arg(name) => scope.arguments.get(name).is_none_or(|known| known.shape > tame),
        _ => false,
    })
}
