//! Errors of parsing, and of reading a value into a type.

use std::fmt::{self, Display};

use serde::de::{self, Expected, Unexpected};

use crate::tape::Cursor;

/// Why a text is not valid, unambiguous JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// What is wrong, as a clause.
    pub problem: String,
    /// Where, as a byte offset into the text.
    pub offset: usize,
}

impl Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.problem, self.offset)
    }
}

impl std::error::Error for ParseError {}

/// Why a value cannot be read into a type, and which value.
///
/// ```
/// use serde::Deserialize;
///
/// let tape = toolcrib_json::parse("[[1], [2, true]]").unwrap();
/// let error = Vec::<Vec<u8>>::deserialize(tape.root()).unwrap_err();
/// assert_eq!(error.to_string(), "invalid type: boolean `true`, expected u8 at `/1/1`");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError(Box<ReadErrorParts>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct ReadErrorParts {
    message: String,
    /// Not known yet while serde makes the error.
    pointer: Option<String>,
}

impl ReadError {
    /// What is wrong, as a clause.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Where: a JSON pointer, empty for the outermost value.
    pub fn pointer(&self) -> &str {
        self.0.pointer.as_deref().unwrap_or_default()
    }

    /// Names the place, unless a place further in was named.
    #[cold]
    pub(crate) fn at(mut self, place: Cursor<'_>) -> Self {
        self.0.pointer.get_or_insert_with(|| place.pointer());
        self
    }
}

impl Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer() {
            "" => write!(f, "{} at the top level", self.message()),
            pointer => write!(f, "{} at `{pointer}`", self.message()),
        }
    }
}

impl std::error::Error for ReadError {}

impl de::Error for ReadError {
    #[cold]
    fn custom<T: Display>(message: T) -> Self {
        Self(Box::new(ReadErrorParts { message: message.to_string(), pointer: None }))
    }

    #[cold]
    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("invalid type: {}, expected {expected}", JsonType(unexpected)))
    }

    #[cold]
    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("invalid value: {}, expected {expected}", JsonType(unexpected)))
    }
}

/// In JSON's words: `null` and not `unit value`.
struct JsonType<'a>(Unexpected<'a>);

impl Display for JsonType<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unexpected::Unit => f.write_str("null"),
            other => Display::fmt(&other, f),
        }
    }
}
