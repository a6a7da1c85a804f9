//! Why an edit is refused, in words with which a model can correct its call.

use std::{error, fmt};

use super::ambiguity::Ambiguity;
use super::no_match::NoMatch;

/// Why an edit is refused. Its text says what to do instead; its fields contain the same as data.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The source is empty.
    EmptySource,
    /// The file would not change.
    NoChange,
    /// The source is blank and does not occur exactly once byte by byte.
    BlankSource {
        /// How often it occurs.
        count: usize,
    },
    /// The target omits lines and says so, as in `// ... existing code ...`.
    Omission {
        /// The number of that line in the target, from 1.
        line: usize,
        /// That line.
        text: String,
    },
    /// The source occurs several times.
    Ambiguous(Box<Ambiguity>),
    /// The source does not occur.
    Missing(Box<NoMatch>),
}

impl Refusal {
    /// Its name in data: `empty_source`, `no_change`, `blank_source`, `omission`, `ambiguous`,
    /// `missing`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::EmptySource => "empty_source",
            Self::NoChange => "no_change",
            Self::BlankSource { .. } => "blank_source",
            Self::Omission { .. } => "omission",
            Self::Ambiguous(_) => "ambiguous",
            Self::Missing(_) => "missing",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptySource => f.write_str(
                "The source text is empty. Give the text that is to be replaced; to insert, give \
                 a line and the same line with the new text.",
            ),
            Self::NoChange => f.write_str(
                "Nothing would change: the file already contains the target text, or source and \
                 target are the same.",
            ),
            Self::BlankSource { count: 0 } => f.write_str(
                "The source text is blank and does not occur in the file. Give visible text from \
                 the surrounding lines.",
            ),
            Self::BlankSource { count } => write!(
                f,
                "The source text is blank and occurs {count} times in the file. Give visible \
                 text from the lines around the place.",
            ),
            Self::Omission { line, text } => write!(
                f,
                "Line {line} of the target text stands for omitted lines: `{text}`. It would be \
                 written literally. Write these lines out, or edit only those that change.",
            ),
            Self::Ambiguous(ambiguity) => ambiguity.fmt(f),
            Self::Missing(no_match) => no_match.fmt(f),
        }
    }
}

impl error::Error for Refusal {}
