//! Arguments before and after validation.

use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::Value;
use toolcrib_json::{ParseError, Tape, parse_owned};

use crate::{Data, ToolError};

/// JSON text as it came from a model: untrusted. If the code that read the surrounding message has already parsed it,
/// it is not parsed again.
#[derive(Debug, Clone)]
pub struct RawArguments(RawText);

#[derive(Debug, Clone)]
enum RawText {
    Text(String),
    Parsed(Tape<'static>),
}

impl RawArguments {
    /// The text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            RawText::Text(text) => text,
            RawText::Parsed(tape) => tape.text(),
        }
    }

    /// The text as an owned string.
    pub fn into_string(self) -> String {
        match self.0 {
            RawText::Text(text) => text,
            RawText::Parsed(tape) => tape.into_text(),
        }
    }

    /// The same arguments, parsed if they are JSON.
    #[must_use]
    pub fn parsed(self) -> Self {
        match self.into_tape() {
            Ok(tape) => tape.into(),
            Err((_, text)) => text.into(),
        }
    }

    /// The parsed text. If it is not JSON, the text is returned with the error.
    pub fn into_tape(self) -> Result<Tape<'static>, (ParseError, String)> {
        match self.0 {
            RawText::Text(text) => parse_owned(text),
            RawText::Parsed(tape) => Ok(tape),
        }
    }
}

/// Compares the texts.
impl PartialEq for RawArguments {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for RawArguments {}

impl Default for RawArguments {
    /// An empty text.
    fn default() -> Self {
        Self::from(String::new())
    }
}

impl From<String> for RawArguments {
    fn from(text: String) -> Self {
        Self(RawText::Text(text))
    }
}

impl From<&str> for RawArguments {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<Tape<'static>> for RawArguments {
    fn from(tape: Tape<'static>) -> Self {
        Self(RawText::Parsed(tape))
    }
}

impl From<&Value> for RawArguments {
    fn from(value: &Value) -> Self {
        Self::from(value.to_string())
    }
}

impl From<Value> for RawArguments {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

/// Arguments that a tool may rely on: validated against its schema, with defaults filled in and without anything that a
/// model must not set.
///
/// They are parsed once. [`parse`](Self::parse) and [`value`](Self::value) read exactly what the validator has checked,
/// so a tool and its schema cannot see two different values. Clones are cheap and share the text.
///
/// ```
/// use serde::Deserialize;
/// use toolcrib_tool::Arguments;
///
/// #[derive(Deserialize)]
/// struct Args<'a> {
///     path: &'a str,
/// }
///
/// let arguments = Arguments::from_validated(r#"{"path":"a.txt"}"#.to_owned());
/// let args: Args<'_> = arguments.parse()?;
/// assert_eq!(args.path, "a.txt");
/// assert_eq!(arguments.value()["path"], "a.txt");
/// # Ok::<(), toolcrib_tool::ToolError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Arguments(Arc<Parsed>);

#[derive(Debug)]
struct Parsed {
    /// The parsed text, or the text with the reason why it is not JSON.
    tape: Result<Tape<'static>, (ParseError, String)>,
    value: OnceLock<Value>,
}

impl Arguments {
    /// Parses JSON text that is known to fit the tool's schema: in a test of a single tool, for
    /// example.
    ///
    /// Text that is not JSON makes [`parse`](Self::parse) fail and [`value`](Self::value) read as
    /// `null`.
    pub fn from_validated(json: String) -> Self {
        Self(Arc::new(Parsed { tape: parse_owned(json), value: OnceLock::new() }))
    }

    /// The text as it was parsed for validation, which it has passed. For the executor.
    pub fn from_tape(tape: Tape<'static>) -> Self {
        Self(Arc::new(Parsed { tape: Ok(tape), value: OnceLock::new() }))
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        match &self.0.tape {
            Ok(tape) => tape.text(),
            Err((_, text)) => text,
        }
    }

    /// The parsed text, for reading in place.
    ///
    /// Fails with kind `internal` if [`from_validated`](Self::from_validated) was given text that
    /// is not JSON.
    pub fn tape(&self) -> Result<&Tape<'static>, ToolError> {
        self.0.tape.as_ref().map_err(|(error, _)| {
            ToolError::internal(format!("arguments marked as valid are not JSON: {error}"))
        })
    }

    /// Reads the arguments into a type; borrowed fields borrow from the text.
    ///
    /// Fails with kind `internal` if the type requires more than the tool's schema guarantees: the schema and the type
    /// differ, which is the tool's fault and not the model's. The message contains the position as a JSON pointer.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ToolError> {
        T::deserialize(self.tape()?.root()).map_err(|error| {
            ToolError::internal(format!(
                "the tool's schema allows values that its code cannot parse: {error}"
            ))
        })
    }

    /// The arguments as data that keeps every number as written.
    pub fn exact(&self) -> Data {
        Data::from_json(self.as_str()).unwrap_or_else(|_| Value::Null.into())
    }

    /// The arguments as a [`Value`], built at the first use. Integers beyond 64 bits and decimals beyond double
    /// precision become the nearest doubles ([`exact`](Self::exact)).
    pub fn value(&self) -> &Value {
        self.0.value.get_or_init(|| self.parse().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_type_that_requires_more_than_the_schema_gets_the_position() {
        let arguments = Arguments::from_validated(r#"{"at":[1,"two"]}"#.to_owned());
        let read = arguments.parse::<std::collections::BTreeMap<String, Vec<u8>>>();
        let error = read.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert_eq!(
            error.message(),
            "the tool's schema allows values that its code cannot parse: invalid type: string \
             \"two\", \
             expected u8 at `/at/1`"
        );
    }

    #[test]
    fn arguments_are_the_same_parsed_or_not() {
        let text = RawArguments::from(r#"{"a": 1}"#);
        let parsed = RawArguments::from(parse_owned(r#"{"a": 1}"#.to_owned()).unwrap());
        assert_eq!(text, parsed);
        assert_eq!(parsed.clone().into_string(), r#"{"a": 1}"#);
        let read = |raw: RawArguments| Arguments::from_tape(raw.into_tape().unwrap());
        assert_eq!(read(text).value(), read(parsed).value());
        let (_, text) = RawArguments::from("{").into_tape().unwrap_err();
        assert_eq!(text, "{");
    }

    #[test]
    fn text_that_is_not_json_is_kept_and_cannot_be_read() {
        let arguments = Arguments::from_validated("[1".to_owned());
        assert_eq!((arguments.as_str(), arguments.value()), ("[1", &Value::Null));
        assert_eq!(arguments.parse::<Value>().unwrap_err().kind(), ErrorKind::Internal);
    }

    #[test]
    fn the_deepest_arguments_that_are_accepted_can_be_read() {
        let levels = toolcrib_json::MAX_DEPTH;
        let text = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(Arguments::from_validated(text.clone()).value().to_string(), text);
    }
}
