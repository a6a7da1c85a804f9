//! What the text of a shell is made of: commands with their words, assignments and redirections.

use std::ops::Range;

/// One command of a text, in the order of the text. Commands of a substitution are in its part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) kind: Kind,
    pub(super) words: Vec<Word>,
    pub(super) assignments: Vec<Assignment>,
    pub(super) redirections: Vec<Redirection>,
    /// Whether it reads what the command before it writes.
    pub(super) is_piped: bool,
    /// Whether `coproc` stands before it: any later command may write to it.
    pub(super) is_coproc: bool,
    /// The function to whose body it belongs.
    pub(super) function: Option<String>,
}

/// What a command is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A program, a builtin or a function with arguments, or assignments alone.
    #[default]
    Simple,
    /// `[[ … ]]`, with the words between the brackets.
    Test,
    /// `(( … ))`, or the head of `for (( … ))`, with one word that holds the expression.
    Expression,
    /// The head of `for` or `select`: the variable, and then the words of its list.
    Loop,
    /// The word of `case`.
    Case,
    /// The pattern of a branch of `case`.
    Pattern,
    /// The end of a compound command, with its redirections: `done`, `fi`, `}`, `)` or `esac`.
    End,
}

/// A word, as the shell reads it before it expands anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) range: Range<usize>,
    pub(super) parts: Vec<Part>,
}

/// `name=value`, `name+=value`, `name[index]=value` or `name=(values)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) index: Vec<Part>,
    pub(super) values: Vec<Word>,
}

/// A redirection with its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redirection {
    pub(super) way: Way,
    pub(super) target: Word,
}

/// The way in which a redirection uses its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Output,
    Input,
    /// A here-document or a here-string: the target is the text.
    Text,
    /// `<&3`.
    Descriptor,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    Variable(Variable),
    /// `$(…)` or backticks.
    Substitution {
        range: Range<usize>,
        commands: Vec<Command>,
    },
    /// `<(…)` or `>(…)`.
    Process {
        range: Range<usize>,
        commands: Vec<Command>,
        /// Whether it is `>(…)`, whose commands read what others write.
        is_written: bool,
    },
    /// `$((…))` or `$[…]`.
    Expression(Vec<Part>),
}

/// A use of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) name: String,
    /// `$NAME`, `${NAME…}`, or the name alone in an expression.
    pub(super) range: Range<usize>,
    pub(super) is_quoted: bool,
    pub(super) form: Form,
    /// The expressions in it: an index, an offset, a length.
    pub(super) expressions: Vec<Part>,
    /// The words behind an operator: `${NAME:-…}`.
    pub(super) operands: Vec<Part>,
    /// Whether the operands become its value: `${NAME:=…}`.
    pub(super) is_assigned: bool,
}

/// What becomes of the value of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    /// `${#NAME}`: a number.
    Length,
    /// `${!NAME}`: the variable that the value names.
    Indirect,
    /// `${NAME@P}`: expanded once more.
    Expanded,
    /// `${!NAME[@]}`: the indexes of an array.
    Keys,
    /// `${!NAME*}`: the names of variables that begin so.
    Names,
    /// Of another shell, or of nobody: `${(e)NAME}`, `${ NAME; }`.
    Unknown,
}

impl Word {
    /// The text, if the shell puts nothing in.
    pub(super) fn literal(&self) -> Option<String> {
        let mut text = String::new();
        for part in &self.parts {
            let Part::Text(piece) = part else { return None };
            text.push_str(piece);
        }
        Some(text)
    }

    /// The text that it begins with.
    pub(super) fn begins(&self) -> &str {
        match self.parts.first() {
            Some(Part::Text(text)) => text,
            _ => "",
        }
    }
}

/// The beginning of a text that is a variable's name, and the rest.
pub(super) fn split_name(text: &str) -> (&str, &str) {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return ("", text);
    }
    let end = text.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    text.split_at(end)
}
