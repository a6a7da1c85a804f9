//! The levels: which differences between source and file are looked through.

use std::fmt;

/// How a place equals the source. Each level is an equivalence, none a likeness: two texts are
/// equal at a level or they are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// Byte by byte.
    Exact,
    /// But for how lines end: LF, CR LF or CR.
    Newlines,
    /// But for blanks at the ends of lines as well. From here on whole lines are compared.
    TrailingBlanks,
    /// But for blanks at the starts of lines as well, and for blank lines before and after.
    Indentation,
    /// But for how characters are written as well: dashes, quotes, odd spaces, characters of no
    /// width, composed and decomposed letters, runs of blanks. Only in files that are UTF-8.
    Folded,
}

impl Level {
    /// All, the strictest first.
    pub const ALL: [Self; 5] =
        [Self::Exact, Self::Newlines, Self::TrailingBlanks, Self::Indentation, Self::Folded];

    /// Its name in data: `exact`, `newlines`, `trailing_blanks`, `indentation`, `folded`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Newlines => "newlines",
            Self::TrailingBlanks => "trailing_blanks",
            Self::Indentation => "indentation",
            Self::Folded => "folded",
        }
    }

    /// What it looks through, for a sentence: `matched …`.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Exact => "exactly",
            Self::Newlines => "but for line endings",
            Self::TrailingBlanks => "but for blanks at line ends",
            Self::Indentation => "but for indentation",
            Self::Folded => "but for quotes, dashes, blanks and other ways to write a character",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
