//! Templates: strings with `${…}` references, parsed once at load and never again.

use std::fmt;

/// A string node of a manifest, taken apart into literals and references.
///
/// A value that replaces a reference is never looked at again: what looks like a reference inside
/// a value stays text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template {
    /// Literals and references, in order; neighbouring literals are one.
    pub pieces: Vec<Piece>,
}

/// One piece of a [`Template`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text as written, with `$${` already turned into `${`.
    Literal(String),
    /// A value to put in at call time.
    Reference(Reference),
}

/// What a reference names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reference {
    /// `${args.x}`: an argument of the call.
    Arg(String),
    /// `${ctx.x}`: a value of the host's context.
    Ctx(String),
    /// `${env.X}`: a variable of the server's own environment.
    Env(String),
    /// `${secret.x}`: a configured secret.
    Secret(String),
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arg(name) => write!(f, "${{args.{name}}}"),
            Self::Ctx(name) => write!(f, "${{ctx.{name}}}"),
            Self::Env(name) => write!(f, "${{env.{name}}}"),
            Self::Secret(name) => write!(f, "${{secret.{name}}}"),
        }
    }
}

impl Template {
    /// The reference, if the template is exactly one: such a template keeps the value's JSON type.
    pub fn as_single_reference(&self) -> Option<&Reference> {
        match self.pieces.as_slice() {
            [Piece::Reference(reference)] => Some(reference),
            _ => None,
        }
    }

    /// All references, in order.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Reference(reference) => Some(reference),
            Piece::Literal(_) => None,
        })
    }
}
