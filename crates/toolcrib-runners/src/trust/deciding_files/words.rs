//! Argument vectors as far as they are known before a call.

use toolcrib_manifest::declaration::ArgvEntry;
use toolcrib_manifest::template::{Piece, Reference, Template};

use super::programs::is_shell;

/// An entry of an argument vector.
pub(super) enum ArgumentText {
    /// Known before a call, and as the manifest writes it.
    Whole { text: String, written: String },
    /// Its known beginning; the rest is a value of a call.
    Begins(String),
}

impl ArgumentText {
    pub(super) fn literal(text: &str) -> Self {
        Self::Whole { text: text.to_owned(), written: text.to_owned() }
    }

    /// The text, if it is known before a call.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Whole { text, .. } => Some(text),
            Self::Begins(_) => None,
        }
    }

    pub(super) fn is_shell(&self) -> bool {
        match self {
            Self::Whole { text, .. } => is_shell(text),
            Self::Begins(_) => false,
        }
    }
}

pub(super) fn words_of(entry: &ArgvEntry) -> Vec<ArgumentText> {
    match entry {
        ArgvEntry::One(template) => vec![argument_text(template)],
        ArgvEntry::If { then, .. } => then.iter().map(argument_text).collect(),
        ArgvEntry::Each { .. } => Vec::new(),
    }
}

/// The part of a template that is known before a call.
pub(super) fn argument_text(template: &Template) -> ArgumentText {
    let mut text = String::new();
    for piece in &template.pieces {
        match piece {
            Piece::Literal(literal) => text.push_str(literal),
            Piece::Reference(Reference::Env(name)) => {
                text.push_str(&std::env::var(name).unwrap_or_default());
            }
            Piece::Reference(_) => return ArgumentText::Begins(text),
        }
    }
    ArgumentText::Whole { text, written: written(template) }
}

/// A template as its manifest writes it, but with `${` for the escape `$${`.
pub(super) fn written(template: &Template) -> String {
    let pieces = template.pieces.iter().map(|piece| match piece {
        Piece::Literal(text) => text.clone(),
        Piece::Reference(reference) => reference.to_string(),
    });
    pieces.collect()
}
