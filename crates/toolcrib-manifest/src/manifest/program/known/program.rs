//! How a program reads its arguments: which of them it runs, and which options take a value.

use crate::manifest::schema::value_shape::Shape;

/// How a program reads its arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    pub(super) names: &'static [&'static str],
    /// Options that a value of their own follows.
    pub(super) valued: &'static [&'static str],
    /// Options without a value, or `*` for every option that is written without one. If they are given,
    /// a value of an option that is in no list is refused.
    pub(super) flags: Option<&'static [&'static str]>,
    /// Options whose value is a program, a text that is run, or a setting that names one of these.
    pub(super) code: &'static [&'static str],
    /// Options whose value sets a variable: `name=value`.
    pub(super) assigns: &'static [&'static str],
    /// Options whose value is a file, unless it begins in a way that means more: `engine:…`.
    pub(super) files: &'static [&'static str],
    /// Options that name the folder in which the program that follows runs.
    pub(super) folder: &'static [&'static str],
    /// Those among `code` whose value is harmless beside all of `settled_by`.
    pub(super) settled: &'static [&'static str],
    /// Settings without which a value in `settled` could name programs.
    pub(super) settled_by: &'static [&'static str],
    /// Settings in the values of `code` that name nothing which is run.
    pub(super) data: &'static [&'static str],
    /// Options with which it runs the programs that settings name for the files among its arguments.
    pub(super) evokes: &'static [&'static str],
    /// What its other arguments are.
    pub(super) rest: Rest,
    /// Whether `valued` and `code` name every option that takes a value.
    pub(super) complete: bool,
    /// Whether its first argument may be a cluster of options without a dash, whose values follow.
    pub(super) undashed: bool,
    /// What the letters behind one dash are.
    pub(super) dash: Dash,
    /// Values that are harmless wherever they stand in what is run.
    pub(super) harmless: Shape,
    /// Whether it runs what it reads on standard input, unless an argument says what to run.
    pub(super) runs_stdin: bool,
    /// Where a value can stand instead.
    pub(super) instead: &'static str,
}

/// What the letters behind one dash are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dash {
    /// An option each, until one takes the rest for its value.
    Cluster,
    /// One option.
    Word,
}

impl Program {
    /// Whether an option behind one dash is a whole word, never a cluster of letters.
    pub(super) fn is_whole(&self) -> bool {
        self.dash == Dash::Word
    }
}

/// What the arguments of a program are that belong to no option.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rest {
    /// Nothing that is run.
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
    /// The first chooses what is done, and may have a grammar of its own. A grammar without a name
    /// is that of every command that has none.
    Commands(&'static [Program]),
}

/// A program without anything to say about it, for updates of single fields.
pub(super) const NONE: Program = Program {
    names: &[],
    valued: &[],
    flags: None,
    code: &[],
    assigns: &[],
    files: &[],
    folder: &[],
    settled: &[],
    settled_by: &[],
    data: &[],
    evokes: &[],
    rest: Rest::Plain,
    complete: false,
    undashed: false,
    dash: Dash::Cluster,
    harmless: Shape::Fixed,
    runs_stdin: false,
    instead: "",
};

/// What to do about a value that would choose the program that a wrapper starts.
pub(super) const WRAPPED: &str =
    "write the program as a separate literal and give it the value as an argument";

/// A program that starts the one at position `at` among its arguments.
pub(super) const fn wrapper(
    names: &'static [&'static str],
    at: usize,
    valued: &'static [&'static str],
) -> Program {
    Program { names, valued, rest: Rest::Program(at), instead: WRAPPED, ..NONE }
}

/// A program that starts no other, with every option that takes a value.
pub(super) const fn known(
    names: &'static [&'static str],
    valued: &'static [&'static str],
) -> Program {
    Program { names, valued, complete: true, ..NONE }
}
