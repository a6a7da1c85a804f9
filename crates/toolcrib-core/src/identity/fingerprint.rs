//! Fingerprints of definitions and arguments, to which decisions on calls are bound.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use toolcrib_json::{Numbers, write_canonical};
use toolcrib_tool::{
    Arguments, ContextValues, Injection, ToolDefinition, ToolEntry, canonical_json,
};

/// 256 bits (BLAKE3) that stand for a definition or for arguments. Written as 64 hexadecimal
/// digits.
///
/// ```
/// use toolcrib_core::fingerprint::Fingerprint;
/// use toolcrib_tool::Arguments;
///
/// let of = |text: &str| Fingerprint::of_arguments(&Arguments::from_validated(text.to_owned()));
/// assert_eq!(of(r#"{"a":1,"b":2}"#), of(r#"{"b": 2.0, "a": 1}"#));
/// assert_ne!(of(r#"{"a":1}"#), of(r#"{"a":"1"}"#));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(blake3::Hash);

impl Fingerprint {
    /// How many hexadecimal digits a person is shown to accept a definition by, and the fewest that are taken from
    /// them: 128 bits.
    ///
    /// Another server writes both the definition that is shown and the one that it offers later, so it needs any two
    /// definitions whose digits are equal. With 128 bits that takes 2^64 attempts; with 48 bits it takes 2^24.
    pub const ACCEPTED_DIGITS: usize = 32;

    /// The first [`ACCEPTED_DIGITS`](Self::ACCEPTED_DIGITS) digits, by which a person can accept a definition.
    pub fn abbreviated(self) -> String {
        let mut digits = self.to_string();
        digits.truncate(Self::ACCEPTED_DIGITS);
        digits
    }

    /// Whether these digits stand for this fingerprint: they are its first ones, and at least
    /// [`ACCEPTED_DIGITS`](Self::ACCEPTED_DIGITS).
    ///
    /// ```
    /// use toolcrib_core::fingerprint::Fingerprint;
    ///
    /// let fingerprint = Fingerprint::of_json(&serde_json::json!({"name": "run"}));
    /// assert!(fingerprint.is_named_by(&fingerprint.to_string()));
    /// assert!(fingerprint.is_named_by(&fingerprint.abbreviated()));
    /// assert!(!fingerprint.is_named_by(&fingerprint.abbreviated()[..31]));
    /// ```
    pub fn is_named_by(self, digits: &str) -> bool {
        digits.len() >= Self::ACCEPTED_DIGITS && self.to_string().starts_with(digits)
    }

    /// The fingerprint of a tool: its whole definition, its source, and the digest of the rest of
    /// its declaration ([`ToolEntry::digest`]).
    ///
    /// It changes with everything that a model or an approver sees, with the injected values and
    /// the command, and with the source that declares it. Servers that name the same file differently, for example by
    /// a relative and an absolute path, have the same fingerprint.
    pub fn of_definition(entry: &ToolEntry) -> Self {
        let all = json!({
            "definition": entry.definition.to_full_value(),
            "digest": entry.digest,
            "layer": entry.source.layer.as_str(),
            "unit": entry.unit_everywhere.as_deref().unwrap_or(&entry.source.unit),
        });
        Self::of_json(&all)
    }

    /// The fingerprint of any JSON value, independent of the order of members.
    pub fn of_json(value: &serde_json::Value) -> Self {
        Self(blake3::hash(canonical_json(value).as_bytes()))
    }

    /// The fingerprint of the injected values of a call: those under the context keys that the
    /// definition declares.
    pub fn of_injected(definition: &ToolDefinition, values: &ContextValues) -> Self {
        let keys = definition.injections().iter().map(Injection::context_key);
        let pairs = keys.filter_map(|key| Some((key.to_owned(), values.get(key)?.clone())));
        Self::of_json(&serde_json::Value::Object(pairs.collect()))
    }

    /// The fingerprint of several byte strings.
    pub(crate) fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(part);
        }
        Self(hasher.finalize())
    }

    /// The fingerprint of bytes.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes))
    }

    /// The fingerprint of this one and more bytes.
    pub(crate) fn with(self, bytes: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.0.as_bytes()).update(bytes);
        Self(hasher.finalize())
    }

    /// Its first 64 bits: enough to distinguish editions of one tool, but not collision-resistant.
    pub(crate) fn short(self) -> u64 {
        self.0.as_bytes().iter().take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    }

    /// The fingerprint of arguments: equal exactly for equal values, independent of the order of
    /// members and the notation of numbers.
    pub fn of_arguments(arguments: &Arguments) -> Self {
        let text = arguments.as_str();
        match arguments.tape() {
            Ok(tape) => {
                let mut spelling = String::with_capacity(text.len());
                write_canonical(tape.root(), Numbers::ByValue, &mut spelling);
                Self(blake3::hash(spelling.as_bytes()))
            }
            // Tools never get invalid JSON; such text is hashed as bytes.
            Err(_) => Self(blake3::hash(text.as_bytes())),
        }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_hex())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        blake3::Hash::from_hex(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_tool::{Injection, Layer, Source, ToolDefinition};

    use super::*;

    fn entry(description: &str, injections: Vec<Injection>, unit: &str) -> ToolEntry {
        let definition = ToolDefinition::builder("t")
            .description(description)
            .injections(injections)
            .build()
            .expect("it is right");
        ToolEntry::client(definition, Source::new(Layer::Manifest, unit))
    }

    #[test]
    fn whatever_changes_in_a_tool_changes_its_fingerprint() {
        let first = Fingerprint::of_definition(&entry("A.", vec![], "a"));
        assert_eq!(first, Fingerprint::of_definition(&entry("A.", vec![], "a")));
        for other in [
            entry("B.", vec![], "a"),
            entry("A.", vec![Injection::new("x", "y")], "a"),
            entry("A.", vec![], "b"),
            entry("A.", vec![], "a").with_digest("another command"),
        ] {
            assert_ne!(first, Fingerprint::of_definition(&other));
        }
    }

    #[test]
    fn integers_beyond_a_double_stay_apart() {
        let of = |text: &str| Fingerprint::of_arguments(&Arguments::from_validated(text.into()));
        assert_ne!(of(r#"{"n":123456789012345678901}"#), of(r#"{"n":123456789012345678902}"#));
    }

    #[test]
    fn a_fingerprint_is_written_and_read() {
        let one = Fingerprint::of_definition(&entry("A.", vec![], "a"));
        let text = serde_json::to_string(&one).expect("it is text");
        assert_eq!(text.len(), 66);
        assert_eq!(serde_json::from_str::<Fingerprint>(&text).expect("it is one"), one);
        assert!(serde_json::from_str::<Fingerprint>("\"abc\"").is_err());
    }
}
