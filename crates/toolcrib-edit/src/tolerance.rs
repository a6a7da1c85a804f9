//! The levels: which differences between source and file are ignored.

use std::fmt;

/// How a place equals the source. Each level is an equivalence, not a similarity: at a level, two texts are equal or
/// they are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// Byte by byte.
    Exact,
    /// Ignores the kind of line end: LF, CR LF or CR.
    Newlines,
    /// Also ignores blanks at the ends of lines. From here on whole lines are compared.
    TrailingBlanks,
    /// Also ignores blanks at the starts of lines, if the lines nest alike, and blank lines before and after.
    Indentation,
    /// Also ignores how characters are written: dashes, quotes, ellipses, unusual spaces, characters of no width,
    /// composed and decomposed letters, runs of blanks. Only in UTF-8 files. If no whole line is equal, a source without
    /// line ends may be a part of a line.
    Folded,
}

impl Level {
    /// All levels, the strictest first.
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

    /// What it ignores, for a sentence: `matched …`.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Exact => "exactly",
            Self::Newlines => "except for line endings",
            Self::TrailingBlanks => "except for blanks at line ends",
            Self::Indentation => "except for indentation",
            Self::Folded => "except for quotes, dashes, blanks and other spellings of a character",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
