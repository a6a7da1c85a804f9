//! Masking: the literal values of configured secrets never appear in what a call returns.
//!
//! A [`Mask`] is built once from all secrets and applied to everything that a call returns:
//! results, errors, status, logs, and streams, where a [`MaskStream`] also finds a secret that
//! arrives in pieces. The output of programs is masked while it is read, by a [`ByteStream`].
//! Masking comes before output is cut or stored, because half a secret cannot be found.
//!
//! It finds a value as it is, and as JSON spells it with any escapes, also inside strings of JSON that contain JSON. Of a
//! value of several lines it finds the whole with any line ends, and each line by itself if the line is long enough. Of a
//! URL it also finds the confidential parts. It cannot find a value that was encoded, compressed or otherwise changed.

mod bytes;
mod live;
mod outcome;
mod patterns;
mod searched;
mod stream;
mod unescape;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use patterns::Patterns;
use searched::searched_values;

pub use bytes::ByteStream;
pub use live::LiveMask;
pub use stream::MaskStream;

pub use toolcrib_tool::MASKED;

/// The minimum length of a masked value, in bytes: masking every `ab` in every text would destroy
/// outputs and, by the positions, reveal the value.
pub const SHORTEST_SECRET: usize = 4;

/// Masks secrets. Cloning it is cheap; an empty mask costs nothing.
///
/// ```
/// use toolcrib_core::masking::Mask;
///
/// let mask = Mask::new(["hunter22".to_owned(), "abc".to_owned()])?;
/// assert_eq!(mask.text("the password is hunter22!"), "the password is [masked]!");
///
/// // Too short to be masked: said, not hidden.
/// assert_eq!(mask.ignored()[0].to_string(), "secret number 2 has 3 bytes; only values of 4 and \
///     more are masked, since shorter ones occur everywhere");
/// # Ok::<(), toolcrib_core::masking::MaskError>(())
/// ```
#[derive(Clone, Default)]
pub struct Mask {
    patterns: Option<Arc<Patterns>>,
    ignored: Arc<[IgnoredSecret]>,
}

impl Mask {
    /// A mask over these values; white space around them is not part of them. Values too short to
    /// be masked are left out and listed by [`ignored`](Self::ignored).
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Result<Self, MaskError> {
        let (values, ignored) = searched_values(secrets);
        Self::over(values, ignored)
    }

    /// A mask for the values of this one and these, so that old values stay masked when secrets are
    /// renewed. Only values too short among these are [`ignored`](Self::ignored).
    pub fn extended(&self, secrets: impl IntoIterator<Item = String>) -> Result<Self, MaskError> {
        let (mut values, ignored) = searched_values(secrets);
        let known = self.patterns.as_ref().map_or(&[] as &[Box<str>], |known| known.values());
        let is_new = values.iter().any(|value| known.binary_search(value).is_err());
        if !is_new {
            return Ok(Self { patterns: self.patterns.clone(), ignored: ignored.into() });
        }
        values.extend_from_slice(known);
        Self::over(values, ignored)
    }

    fn over(values: Vec<Box<str>>, ignored: Vec<IgnoredSecret>) -> Result<Self, MaskError> {
        let patterns =
            if values.is_empty() { None } else { Some(Arc::new(Patterns::new(values)?)) };
        Ok(Self { patterns, ignored: ignored.into() })
    }

    /// Whether there are no secrets.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_none()
    }

    /// The values that are not masked, and why.
    pub fn ignored(&self) -> &[IgnoredSecret] {
        &self.ignored
    }

    /// Masks every secret in the text. Overlapping secrets are replaced by one mark.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(patterns) = &self.patterns else { return Cow::Borrowed(text) };
        let found = patterns.merged(text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut masked = String::with_capacity(text.len());
        let mut shown = 0;
        for secret in found {
            masked.push_str(&text[shown..secret.start]);
            masked.push_str(MASKED);
            shown = secret.end;
        }
        masked.push_str(&text[shown..]);
        Cow::Owned(masked)
    }

    /// Masks the strings and keys of a JSON value, and numbers that spell a secret, which become
    /// strings.
    pub fn value(&self, value: Value) -> Value {
        if !self.finds_in(&value) {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.owned(text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => Value::Object(self.object(members)),
            number @ Value::Number(_) => Value::String(self.owned(number.to_string())),
            other => other,
        }
    }

    /// Masks a stream of text.
    pub fn stream(&self) -> MaskStream {
        MaskStream::new(self.clone())
    }

    /// Masks a stream of bytes.
    pub fn bytes(&self) -> ByteStream {
        ByteStream::new(self.clone())
    }

    pub(crate) fn owned(&self, text: String) -> String {
        match self.text(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(masked) => masked,
        }
    }

    pub(crate) fn object(&self, members: Map<String, Value>) -> Map<String, Value> {
        let mut masked = Map::new();
        for (key, member) in members {
            let mut key = self.owned(key);
            // Two keys that differ only in secrets remain two members.
            while masked.contains_key(&key) {
                key.push('*');
            }
            masked.insert(key, self.value(member));
        }
        masked
    }

    pub(crate) fn finds(&self, text: &str) -> bool {
        self.patterns.as_ref().is_some_and(|patterns| patterns.occurs(text))
    }

    pub(crate) fn finds_in(&self, value: &Value) -> bool {
        let Some(patterns) = &self.patterns else { return false };
        match value {
            Value::String(text) => self.finds(text),
            Value::Array(items) => items.iter().any(|item| self.finds_in(item)),
            Value::Object(members) => {
                members.iter().any(|(key, member)| self.finds(key) || self.finds_in(member))
            }
            Value::Number(number) => patterns.is_numeric() && self.finds(&number.to_string()),
            Value::Bool(_) | Value::Null => false,
        }
    }
}

impl fmt::Debug for Mask {
    /// Shows the number of secrets, not their values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self.patterns.as_ref().map_or(0, |patterns| patterns.values().len());
        f.debug_struct("Mask").field("values", &values).finish_non_exhaustive()
    }
}

/// A secret that is not masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct IgnoredSecret {
    /// Its number in the list, from 1.
    pub number: usize,
    /// Its length in bytes, without surrounding white space.
    pub bytes: usize,
}

impl fmt::Display for IgnoredSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "secret number {} has {} bytes; only values of {SHORTEST_SECRET} and more are masked, \
             since shorter ones occur everywhere",
            self.number, self.bytes
        )
    }
}

/// The secrets are too many or too long to search for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskError(String);

impl fmt::Display for MaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the secrets cannot be masked: {}; configure fewer or shorter ones", self.0)
    }
}

impl std::error::Error for MaskError {}

#[cfg(test)]
mod tests;
