//! The search for secrets in a text and in what it says without escapes.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::MaskError;
use super::unescape::Readings;

/// How many bytes of values are searched for with the fast, large automaton.
const FAST_BYTES: usize = 16 * 1024;

/// Everything that is masked.
pub(super) struct Patterns {
    /// Says whether there is a value, several times as fast as the other says which.
    any: AhoCorasick,
    /// Finds all values, also those that overlap.
    every: AhoCorasick,
    /// The values, sorted.
    values: Vec<Box<str>>,
    /// Whether one of them could occur in a JSON number.
    numeric: bool,
    /// The first bytes of the values.
    first_bytes: [bool; 256],
}

impl Patterns {
    /// There must be at least one value, and none may be empty.
    pub(super) fn new(mut values: Vec<Box<str>>) -> Result<Self, MaskError> {
        values.sort_unstable();
        values.dedup();
        let bytes: usize = values.iter().map(|value| value.len()).sum();
        // The faster kind takes half a KiB for each byte. By default, only the number of values decides.
        let kind = (bytes > FAST_BYTES).then_some(AhoCorasickKind::ContiguousNFA);
        let automaton = |matches| {
            let mut builder = AhoCorasick::builder();
            let builder = builder.match_kind(matches).kind(kind);
            let built = builder.build(values.iter().map(|value| value.as_bytes()));
            built.map_err(|error| MaskError(error.to_string()))
        };
        // The standard kind is the only one that reports overlapping matches, and the other the only one that
        // compares many bytes at once.
        let any = automaton(MatchKind::LeftmostFirst)?;
        let every = automaton(MatchKind::Standard)?;
        let numeric =
            values.iter().any(|text| text.bytes().all(|byte| b"0123456789+-.eE".contains(&byte)));
        let mut first_bytes = [false; 256];
        for first in values.iter().filter_map(|value| value.as_bytes().first()) {
            first_bytes[usize::from(*first)] = true;
        }
        Ok(Self { any, every, values, numeric, first_bytes })
    }

    /// The values, sorted.
    pub(super) fn values(&self) -> &[Box<str>] {
        &self.values
    }

    /// Whether one of the values could occur in a JSON number.
    pub(super) fn is_numeric(&self) -> bool {
        self.numeric
    }

    /// Whether a secret occurs in the text.
    pub(super) fn occurs(&self, text: &str) -> bool {
        self.any.is_match(text) || self.occurs_in(&Readings::of(text.as_bytes(), true))
    }

    /// The same for a text that was read.
    pub(super) fn occurs_in(&self, readings: &Readings<'_>) -> bool {
        readings.all().any(|(_, text)| self.any.is_match(text))
    }

    /// All occurrences of all secrets, ordered by their start.
    pub(super) fn every(&self, readings: &Readings<'_>) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        for (depth, text) in readings.all().filter(|(_, text)| self.any.is_match(*text)) {
            let secrets = self.every.find_overlapping_iter(text);
            found.extend(secrets.map(|secret| readings.range_in_text(depth, &secret.range())));
        }
        found.sort_unstable_by_key(|secret: &Range<usize>| secret.start);
        found
    }

    /// The ranges of secrets in order, with overlapping ones merged.
    pub(super) fn merged(&self, text: &str) -> Vec<Range<usize>> {
        let mut merged: Vec<Range<usize>> = Vec::new();
        for secret in self.every(&Readings::of(text.as_bytes(), true)) {
            match merged.last_mut() {
                Some(last) if secret.start < last.end => last.end = last.end.max(secret.end),
                _ => merged.push(secret),
            }
        }
        merged
    }

    /// Where the longest suffix begins that could be the beginning of a secret or of an escape; the text's length if
    /// there is none. No escape is cut there.
    pub(super) fn open_end(&self, readings: &Readings<'_>) -> usize {
        let ends = readings
            .all()
            .map(|(depth, text)| readings.position_in_text(depth, self.open_end_of(text)));
        readings.boundary(ends.min().unwrap_or_default())
    }

    /// The same in one reading.
    fn open_end_of(&self, text: &[u8]) -> usize {
        let first = text.len().saturating_sub(self.every.max_pattern_len() - 1);
        (first..text.len())
            .find(|&start| {
                self.first_bytes[usize::from(text[start])] && self.may_go_on(&text[start..])
            })
            .unwrap_or(text.len())
    }

    /// Whether this text is a proper prefix of a secret.
    fn may_go_on(&self, text: &[u8]) -> bool {
        let after = self.values.partition_point(|value| value.as_bytes() <= text);
        self.values.get(after).is_some_and(|value| value.as_bytes().starts_with(text))
    }
}
