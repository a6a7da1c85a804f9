//! How a program reads its arguments: which of them it runs, and which options take a value.

use std::collections::HashMap;

use serde::Deserialize;

use crate::manifest::schema::value_shape::Shape;
use crate::words::Words;

/// How a program reads its arguments.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key in the tables")]
pub(crate) struct Program {
    pub(super) names: Words,
    /// Options that a value of their own follows.
    pub(super) valued: Words,
    /// Options without a value, or `*` for every option that is written without one. If they are given,
    /// a value of an option that is in no list is refused.
    pub(super) flags: Option<Words>,
    /// Options whose value is a program, a text that is run, or a setting that names one of these.
    pub(super) code: Words,
    /// Options whose value sets a variable: `name=value`.
    pub(super) assigns: Words,
    /// Options whose value is a file, unless it begins in a way that means more: `engine:…`.
    pub(super) files: Words,
    /// Options that name the folder in which the program that follows runs.
    pub(super) folder: Words,
    /// Those among `code` whose value is harmless beside all of `settled_by`.
    pub(super) settled: Words,
    /// Settings without which a value in `settled` could name programs.
    pub(super) settled_by: Words,
    /// Settings in the values of `code` that name nothing which is run.
    pub(super) data: Words,
    /// Options with which it runs the programs that settings name for the files among its arguments.
    pub(super) evokes: Words,
    /// What its other arguments are.
    pub(super) rest: Rest,
    /// The names of its commands in the tables, if its first argument is one. A command without names is every
    /// command that no other names.
    pub(super) commands: Words,
    /// Whether `valued` and `code` name every option that takes a value.
    pub(super) complete: bool,
    /// Whether its first argument may be a cluster of options without a dash, whose values follow.
    pub(super) undashed: bool,
    /// Whether an option behind one dash is a whole word, never a cluster of letters.
    pub(super) whole_words: bool,
    /// Whether plain words are harmless wherever they stand in what is run.
    pub(super) harmless_words: bool,
    /// Whether it runs what it reads on standard input, unless an argument says what to run.
    pub(super) runs_stdin: bool,
    /// Where a value can stand instead.
    pub(super) instead: String,
}

impl Program {
    /// Puts shared lists in their places and fills in what to do about a value.
    pub(super) fn complete_with(&mut self, lists: &HashMap<String, Words>) {
        for words in [&mut self.valued, &mut self.code] {
            words.replace_names(lists);
        }
        if self.instead.is_empty() {
            let is_wrapper =
                matches!(self.rest, Rest::Program(_) | Rest::Place | Rest::Assignments);
            self.instead.push_str(if is_wrapper { WRAPPED } else { TEXT });
        }
    }

    /// Values that are harmless wherever they stand in what is run.
    pub(super) fn harmless(&self) -> Shape {
        if self.harmless_words { Shape::Word } else { Shape::Fixed }
    }
}

/// What the arguments of a program are that belong to no option.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Rest {
    /// Nothing that is run.
    #[default]
    Plain,
    /// The one at this position is a program, and the rest are that program's arguments.
    Program(usize),
    /// A place that holds programs, such as a toolchain, then a program and its arguments.
    Place,
    /// Settings `NAME=value`, then a program and its arguments.
    Assignments,
    /// From this position on they are one line for a shell.
    Shell(usize),
    /// The one at this position is a text that is run, unless an option gave one.
    Code(usize),
    /// Each may be a setting `NAME=value`, one of which names a program.
    Settings,
    /// Each is an operand `name=value`, whose name is the author's to say.
    Operands,
    /// From this position on each is run, or sets what names a program.
    Each(usize),
    /// A text that is run, unless an option gave one; then files, or settings `name=value` of
    /// variables that the text uses.
    Awk,
    /// The first is a file or a text that is run, unless an option gave one; the rest is handed to
    /// it.
    Script,
    /// Files, or what begins in another way and is run: `@options`, `|command`, `!command`.
    Bare,
    /// The same, except that all of them are files behind `--`.
    BareBeforeEnd,
    /// The expression of `find`.
    Expression,
    /// The first is one of the program's [commands](Program::commands).
    Commands,
}

/// What to do about a value that would be run or loaded.
const TEXT: &str = "write what is run, loaded or read for settings as a literal, or list what it may be in an `enum`";

/// What to do about a value that would choose the program that a wrapper starts.
const WRAPPED: &str =
    "write the program as a separate literal and give it the value as an argument";
