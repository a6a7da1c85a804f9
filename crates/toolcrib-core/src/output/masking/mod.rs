//! Masking: the literal values of configured secrets never appear in what a call returns.
//!
//! A [`Mask`] is built once from all secrets and applied to everything that a call returns:
//! results, errors, status, logs, and streams, where a [`MaskStream`] also finds a secret that
//! arrives in pieces. The output of programs is masked while it is read, by a [`ByteStream`].
//! Masking comes before output is cut or stored, because half a secret cannot be found.
//!
//! What it finds is the value as it is and as it is spelt inside JSON text, a value of several lines also
//! with other line ends, and the confidential parts of a URL. It cannot find a value that was encoded, compressed or otherwise changed.

mod bytes;
mod live;
mod outcome;
mod stream;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde_json::{Map, Value};

pub use bytes::ByteStream;
pub use live::LiveMask;
pub use stream::MaskStream;

pub use toolcrib_tool::MASKED;

/// The minimum length of a masked value, in bytes: masking every `ab` in every text would destroy
/// outputs and, by the positions, reveal the value.
pub const SHORTEST_SECRET: usize = 4;

/// How many bytes of spellings are searched for with the fast, large automaton.
const FAST_BYTES: usize = 32 * 1024;

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

struct Patterns {
    automaton: AhoCorasick,
    /// All masked spellings, sorted.
    spellings: Vec<Box<str>>,
    /// Whether one of them could occur in a JSON number.
    numeric: bool,
    /// The first bytes of the spellings.
    first_bytes: [bool; 256],
}

impl Mask {
    /// A mask over these values; white space around them is not part of them. Values too short to
    /// be masked are left out and listed by [`ignored`](Self::ignored).
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Result<Self, MaskError> {
        let (spellings, ignored) = spellings(secrets);
        Self::over(spellings, ignored)
    }

    /// A mask for the values of this one and these, so that old values stay masked when secrets are
    /// renewed. Only values too short among these are [`ignored`](Self::ignored).
    pub fn extended(&self, secrets: impl IntoIterator<Item = String>) -> Result<Self, MaskError> {
        let (mut spellings, ignored) = spellings(secrets);
        let known = self.patterns.as_ref().map_or(&[] as &[Box<str>], |known| &known.spellings);
        let news = spellings.iter().any(|spelling| known.binary_search(spelling).is_err());
        if !news {
            return Ok(Self { patterns: self.patterns.clone(), ignored: ignored.into() });
        }
        spellings.extend_from_slice(known);
        Self::over(spellings, ignored)
    }

    fn over(mut spellings: Vec<Box<str>>, ignored: Vec<IgnoredSecret>) -> Result<Self, MaskError> {
        spellings.sort_unstable();
        spellings.dedup();
        let patterns = if spellings.is_empty() {
            None
        } else {
            let bytes: usize = spellings.iter().map(|spelling| spelling.len()).sum();
            let automaton = AhoCorasick::builder()
                // The only kind that reports overlapping matches.
                .match_kind(MatchKind::Standard)
                // The faster kind takes half a KiB for each byte. By default, only the number of values decides.
                .kind((bytes > FAST_BYTES).then_some(AhoCorasickKind::ContiguousNFA))
                .build(spellings.iter().map(|spelling| spelling.as_bytes()))
                .map_err(|error| MaskError(error.to_string()))?;
            let numeric = spellings
                .iter()
                .any(|text| text.bytes().all(|byte| b"0123456789+-.eE".contains(&byte)));
            let mut first_bytes = [false; 256];
            for first in spellings.iter().filter_map(|spelling| spelling.as_bytes().first()) {
                first_bytes[usize::from(*first)] = true;
            }
            Some(Arc::new(Patterns { automaton, spellings, numeric, first_bytes }))
        };
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
        self.patterns.as_ref().is_some_and(|patterns| patterns.automaton.is_match(text))
    }

    pub(crate) fn finds_in(&self, value: &Value) -> bool {
        let Some(patterns) = &self.patterns else { return false };
        match value {
            Value::String(text) => self.finds(text),
            Value::Array(items) => items.iter().any(|item| self.finds_in(item)),
            Value::Object(members) => {
                members.iter().any(|(key, member)| self.finds(key) || self.finds_in(member))
            }
            Value::Number(number) => patterns.numeric && self.finds(&number.to_string()),
            Value::Bool(_) | Value::Null => false,
        }
    }
}

impl Patterns {
    /// All occurrences of all secrets, ordered by their start.
    fn every(&self, text: &[u8]) -> Vec<Range<usize>> {
        if !self.automaton.is_match(text) {
            return Vec::new();
        }
        let mut found: Vec<Range<usize>> =
            self.automaton.find_overlapping_iter(text).map(|secret| secret.range()).collect();
        found.sort_unstable_by_key(|secret| secret.start);
        found
    }

    /// The ranges of secrets in order, with overlapping ones merged.
    fn merged(&self, text: &str) -> Vec<Range<usize>> {
        let mut merged: Vec<Range<usize>> = Vec::new();
        for secret in self.every(text.as_bytes()) {
            match merged.last_mut() {
                Some(last) if secret.start < last.end => last.end = last.end.max(secret.end),
                _ => merged.push(secret),
            }
        }
        merged
    }

    /// Where the longest suffix begins that could be the beginning of a secret; the text's length
    /// if there is none.
    fn open_end(&self, text: &[u8]) -> usize {
        let first = text.len().saturating_sub(self.longest() - 1);
        (first..text.len())
            .find(|&start| {
                self.first_bytes[usize::from(text[start])] && self.may_go_on(&text[start..])
            })
            .unwrap_or(text.len())
    }

    /// Whether this text is a proper prefix of a secret.
    fn may_go_on(&self, text: &[u8]) -> bool {
        let after = self.spellings.partition_point(|spelling| spelling.as_bytes() <= text);
        self.spellings.get(after).is_some_and(|spelling| spelling.as_bytes().starts_with(text))
    }

    fn longest(&self) -> usize {
        self.automaton.max_pattern_len()
    }
}

/// All spellings of the values, and the values that are too short to be masked.
fn spellings(secrets: impl IntoIterator<Item = String>) -> (Vec<Box<str>>, Vec<IgnoredSecret>) {
    let mut ignored = Vec::new();
    let mut spellings = Vec::new();
    for (index, secret) in secrets.into_iter().enumerate() {
        let secret = secret.trim();
        if secret.len() < SHORTEST_SECRET {
            ignored.push(IgnoredSecret { number: index + 1, bytes: secret.len() });
            continue;
        }
        for secret in std::iter::once(secret).chain(url_parts(secret)) {
            for secret in line_end_spellings(secret) {
                spellings.extend(json_spellings(&secret));
                spellings.push(secret.into());
            }
        }
    }
    (spellings, ignored)
}

/// The minimum length, in bytes, of what follows the host of a URL for it to be masked alone.
const SHORTEST_URL_REST: usize = 8;
/// The minimum length, in bytes, of one segment or value of a URL for it to be masked alone: shorter
/// ones are words such as `services`.
const SHORTEST_URL_SEGMENT: usize = 16;

/// The parts of a URL that servers and programs print without the rest of it: the password before the
/// host, what follows the host, and its long segments and values. Nothing for other secrets.
fn url_parts(secret: &str) -> Vec<&str> {
    let Some((scheme, rest)) = secret.split_once("://") else { return Vec::new() };
    let is_scheme = |letter: u8| letter.is_ascii_alphanumeric() || b"+-.".contains(&letter);
    if scheme.is_empty() || !scheme.bytes().all(is_scheme) || rest.contains(char::is_whitespace) {
        return Vec::new();
    }
    let (authority, after) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let password = authority.rsplit_once('@').and_then(|(user, _)| Some(user.split_once(':')?.1));
    let after = after.trim_matches(['/', '?', '#']);
    let segments = after.split(['/', '?', '&', '=', '#']);
    let is_long = |part: &&str, bytes: usize| part.len() >= bytes;
    (password.into_iter().filter(|part| is_long(part, SHORTEST_SECRET)))
        .chain(std::iter::once(after).filter(|part| is_long(part, SHORTEST_URL_REST)))
        .chain(segments.filter(|part| is_long(part, SHORTEST_URL_SEGMENT)))
        .collect()
}

/// What programs and terminals end lines with: LF, CR LF, CR, the CR CR LF of a terminal that is sent CR LF, and the
/// line ends of Unicode. A longer one comes before those that it contains.
const LINE_ENDS: [&str; 9] =
    ["\r\r\n", "\r\n", "\r", "\n", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}"];

/// The value as it is and, if it has several lines, with each of the [`LINE_ENDS`].
fn line_end_spellings(secret: &str) -> Vec<Cow<'_, str>> {
    let mut spellings = vec![Cow::Borrowed(secret)];
    let lines = LINE_ENDS.iter().fold(secret.to_owned(), |text, end| text.replace(end, "\n"));
    if lines.contains('\n') {
        spellings.extend(LINE_ENDS.iter().map(|end| Cow::Owned(lines.replace('\n', end))));
    }
    spellings
}

/// The value's spellings inside JSON text that differ from it: with the required escapes, with
/// escaped slashes, and with all non-ASCII characters escaped.
fn json_spellings(secret: &str) -> Vec<Box<str>> {
    let quoted = Value::from(secret).to_string();
    let escaped = &quoted[1..quoted.len() - 1];
    let slashes = escaped.replace('/', "\\/");
    let ascii = |hexadecimal: fn(u16) -> String| -> String {
        let mut spelt = String::new();
        for letter in escaped.chars() {
            if letter.is_ascii() {
                spelt.push(letter);
            } else {
                letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                    spelt.push_str(&hexadecimal(*unit));
                });
            }
        }
        spelt
    };
    [
        escaped.to_owned(),
        slashes,
        ascii(|unit| format!("\\u{unit:04x}")),
        ascii(|unit| format!("\\u{unit:04X}")),
    ]
    .into_iter()
    .filter(|spelling| spelling != secret)
    .map(String::into_boxed_str)
    .collect()
}

impl fmt::Debug for Mask {
    /// Shows the number of secrets, not their values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spellings = self.patterns.as_ref().map_or(0, |patterns| patterns.spellings.len());
        f.debug_struct("Mask").field("spellings", &spellings).finish_non_exhaustive()
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
