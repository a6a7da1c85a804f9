//! Why an edit is not made, for a model that is to mend its call.

use std::{error, fmt};

use super::ambiguity::Ambiguity;
use super::miss::Miss;

/// Why an edit is not made. Its text says what to do instead; its fields say the same as data.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no source.
    EmptySource,
    /// The file would not be different.
    NoChange,
    /// The source shows nothing, and does not stand at exactly one place byte by byte.
    BlankSource {
        /// At how many places it does.
        count: usize,
    },
    /// The target leaves lines out and says so, as in `// ... existing code ...`.
    Omission {
        /// The line of the target that says so; the first is 1.
        line: usize,
        /// That line.
        text: String,
    },
    /// The source stands at several places.
    Ambiguous(Box<Ambiguity>),
    /// The source stands nowhere.
    Missing(Box<Miss>),
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
                "The source text is empty. Give the text that is to be replaced; to insert, give a \
                 line and the same line with what is new.",
            ),
            Self::NoChange => f.write_str(
                "Nothing would change: the file reads as the target text says already, or source \
                 and target are the same.",
            ),
            Self::BlankSource { count: 0 } => f.write_str(
                "The source text is blank and does not stand in the file so. Give text that shows \
                 something, from the lines around it.",
            ),
            Self::BlankSource { count } => write!(
                f,
                "The source text is blank and stands in the file {count} times. Give text that \
                 shows something, from the lines around the place.",
            ),
            Self::Omission { line, text } => write!(
                f,
                "Line {line} of the target text stands for lines it leaves out: `{text}`. It would \
                 be written as it is. Write these lines out, or edit only those that change.",
            ),
            Self::Ambiguous(ambiguity) => ambiguity.fmt(f),
            Self::Missing(miss) => miss.fmt(f),
        }
    }
}

impl error::Error for Refusal {}
