//! Why a definition is invalid.

use std::fmt;

use crate::InvalidToolName;

/// Why a definition is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DefinitionError {
    /// The name is invalid.
    Name(InvalidToolName),
    /// Another field is invalid.
    Field {
        /// The tool's name.
        name: String,
        /// The problem, as a clause.
        problem: &'static str,
    },
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::Field { name, problem } => write!(f, "tool {name:?} is refused: {problem}"),
        }
    }
}

impl std::error::Error for DefinitionError {}
