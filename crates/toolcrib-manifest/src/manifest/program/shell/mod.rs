//! The text of a shell: where values that it is given are used, and where they would become code, a
//! program, or the name of a variable.

mod builtins;
pub(super) mod commands;
mod flow;
mod program;
mod reader;
mod sinks;
mod slips;
mod suspects;
mod syntax;
pub mod text_commands;
mod unknown;
mod words;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::manifest::schema::value_shape::{Beginning, Shape};
use crate::manifest::tool::references::Scope;
use crate::programs::name_without_version;
use crate::template::{Piece, Reference, Template};

/// How often a text is read before its findings are kept: a value may pass through so many functions,
/// loops and names against the order of the text.
const PASSES: usize = 4;

/// Shells that evaluate an expression wherever they take a number: `[ "$N" -eq 1 ]`, `exit "$N"`.
const EVALUATE_NUMBERS: [&str; 8] =
    ["ksh", "ksh93", "lksh", "mksh", "oksh", "pdksh", "rksh", "zsh"];

/// What is known of a value that a text is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::manifest) struct Taint {
    pub(in crate::manifest) shape: Shape,
    pub(in crate::manifest) beginning: Beginning,
    /// Whether an argument of a call decides it, rather than the server.
    pub(in crate::manifest) is_by_model: bool,
}

impl Taint {
    /// What is known of the value of a template; none if it is the same in every call.
    pub(in crate::manifest) fn of(template: &Template, scope: &Scope) -> Option<Self> {
        let single = template.pieces.len() == 1;
        let each = template.references().map(|reference| match reference {
            Reference::Arg(name) => {
                let known = scope.arguments.get(name);
                Self {
                    shape: known.map_or(Shape::Free, |known| known.shape),
                    beginning: known
                        .filter(|_| single)
                        .map_or(Beginning::Dash, |known| known.beginning),
                    is_by_model: true,
                }
            }
            _ => Self { shape: Shape::Free, beginning: Beginning::Dash, is_by_model: false },
        });
        let mut taint = each.reduce(Self::joined)?;
        // A literal beginning is the author's.
        if matches!(template.pieces.first(), Some(Piece::Literal(text)) if !text.is_empty()) {
            taint.beginning = Beginning::Plain;
        }
        Some(taint)
    }

    fn joined(self, other: Self) -> Self {
        Self {
            shape: self.shape.max(other.shape),
            beginning: if self.beginning == other.beginning {
                self.beginning
            } else {
                Beginning::Dash
            },
            is_by_model: self.is_by_model || other.is_by_model,
        }
    }

    /// A value made of this one and others.
    fn changed(self) -> Self {
        Self { beginning: Beginning::Dash, ..self }
    }

    /// Whether every value is listed in the manifest, or a number.
    fn is_fixed(self) -> bool {
        self.shape == Shape::Fixed
    }
}

/// One use of a variable that a text is given.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::manifest) struct Use {
    /// `$NAME`, `${NAME…}`, or the name alone in an expression.
    pub(in crate::manifest) range: Range<usize>,
    pub(in crate::manifest) name: String,
    /// Whether the shell splits the value at spaces, and expands `*` and `?` in it.
    pub(in crate::manifest) is_split: bool,
}

/// Something wrong in a text.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::manifest) struct ShellFinding {
    pub(in crate::manifest) range: Range<usize>,
    pub(in crate::manifest) code: &'static str,
    pub(in crate::manifest) message: String,
    pub(in crate::manifest) help: String,
    /// Whether a model's value becomes code or a program; otherwise it is a warning.
    pub(in crate::manifest) is_certain: bool,
    /// Whether nobody knows what becomes of the value: nothing says that it is run.
    pub(in crate::manifest) is_doubt: bool,
    /// Whether it is not even a warning.
    pub(in crate::manifest) is_hint: bool,
}

/// A mistake in a text that has nothing to do with values.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Slip {
    pub(crate) range: Range<usize>,
    pub(crate) message: String,
    pub(crate) help: String,
}

/// What was found out about a text.
#[derive(Debug, Default)]
pub(in crate::manifest) struct Analysis {
    pub(in crate::manifest) uses: Vec<Use>,
    pub(in crate::manifest) findings: Vec<ShellFinding>,
    /// Variables that the text uses, but neither sets nor is given.
    pub(in crate::manifest) unknown: BTreeSet<String>,
}

/// Reads a text of a shell that is given these variables, and these positional parameters from `$0` on. A variable
/// without a taint is only looked for.
pub(in crate::manifest) fn analyse(
    shell: &str,
    text: &str,
    variables: &BTreeMap<String, Option<Taint>>,
    parameters: &[Option<Taint>],
) -> Analysis {
    let commands = reader::read(text);
    let mut flow = flow::Flow::new(text, variables, parameters);
    flow.evaluates_numbers = EVALUATE_NUMBERS.contains(&name_without_version(shell));
    // What a function or a loop is given may be known only behind its body.
    for _ in 0..PASSES {
        flow.run(&commands);
    }
    flow.reports = true;
    flow.run(&commands);
    flow.into_analysis()
}

/// Where a text runs a file in the workspace whose name, or whose folder, only the shell knows. Nothing can keep other
/// tools from changing such a file.
pub(crate) fn unknown_files(text: &str) -> Vec<Slip> {
    let commands = reader::read(text);
    let variables = BTreeMap::new();
    let mut flow = flow::Flow::new(text, &variables, &[]);
    flow.file_names.looks_for_files = true;
    for pass in 0..PASSES {
        // A name may be set behind its use, in a loop; a folder may not.
        flow.file_names.is_lost = false;
        flow.reports = pass + 1 == PASSES;
        flow.run(&commands);
    }
    let found = flow.into_analysis().findings.into_iter();
    let found = found.filter(|found| found.code == unknown::LOADED_CODE);
    found
        .map(|found| Slip { range: found.range, message: found.message, help: found.help })
        .collect()
}

/// The mistakes in a text, other than those about values. A plain shell has no features of bash; a call may give the
/// text an input.
pub(crate) fn slips(text: &str, is_plain: bool, has_input: bool) -> Vec<Slip> {
    let (commands, unfinished) = reader::read_to_end(text);
    if let Some((at, missing)) = unfinished {
        // What follows would only be said of a text that the shell does not run.
        let end = text[at..].find(char::is_whitespace).map_or(text.len(), |end| at + end);
        return vec![Slip {
            range: at..end.max(at + 1).min(text.len()),
            message: format!("this has no {missing}, so the shell runs nothing of the text"),
            help: format!("write the {missing}"),
        }];
    }
    let mut found = slips::all(text, &commands, is_plain);
    if let Some(range) = slips::unfed_read(text, &commands).filter(|_| !has_input) {
        found.push(Slip {
            range,
            message: "`read` gets nothing: the text has no standard input".to_owned(),
            help: "give it some with `stdin`, or take a value as a variable: `vars: {NAME: \"${args.name}\"}`".to_owned(),
        });
    }
    found
}
