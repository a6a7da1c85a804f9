//! Finds the source in the file: the strictest level with a match decides.

mod bytes;
mod folded;
mod fragment;
mod seeds;
mod windows;

use std::ops::Range;

use super::lines::{LinePosition, pieces};
use super::pattern::Pattern;
use super::tolerance::Level;

/// Every place at the strictest level that has one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) level: Level,
    /// The pieces of the source that a place contains: all; from the third level on its lines; from the fourth on the
    /// lines between its blank edges.
    pub(super) pieces: Range<usize>,
    /// How many places there are, including overlapping ones.
    pub(super) count: usize,
    /// The first of them, as many as requested. From the third level on without the end of the last line.
    pub(super) places: Vec<Range<usize>>,
    /// The position from which lines are counted; not after the first place.
    pub(super) before: LinePosition,
    /// Whether the places are parts of lines at a level that compares whole ones.
    pub(super) within_lines: bool,
}

/// Places at one level; those beyond the limit are only counted.
#[derive(Debug)]
struct LevelMatches {
    keep: usize,
    count: usize,
    places: Vec<Range<usize>>,
    before: LinePosition,
}

impl LevelMatches {
    fn new(keep: usize) -> Self {
        Self { keep, count: 0, places: Vec::new(), before: LinePosition::START }
    }

    fn add(&mut self, place: Range<usize>) {
        self.count += 1;
        if self.places.len() < self.keep {
            self.places.push(place);
        }
    }

    fn at(self, level: Level, pieces: Range<usize>) -> Option<Found> {
        let Self { count, places, before, .. } = self;
        let within_lines = false;
        (count > 0).then_some(Found { level, pieces, count, places, before, within_lines })
    }
}

/// The places of the exact source.
pub(super) fn exact(file: &[u8], source: &[u8], keep: usize) -> Option<Found> {
    bytes::exact(file, source, keep).at(Level::Exact, 0..pieces(source).count())
}

/// The places of the source at the strictest level after the first. `body` is the file without its byte order mark.
pub(super) fn drifted(body: &[u8], pattern: &Pattern<'_>, keep: usize) -> Option<Found> {
    verbatim(body, pattern, keep).or_else(|| {
        let text = simdutf8::basic::from_utf8(body).ok()?;
        folded::search(text, pattern, keep).or_else(|| fragment::search(text, pattern, keep))
    })
}

/// The levels at which every line of the source occurs verbatim in the file, except at its edges.
pub(super) fn verbatim(body: &[u8], pattern: &Pattern<'_>, keep: usize) -> Option<Found> {
    seeds::search(body, pattern, keep).unwrap_or_else(|_| {
        let newlines = || {
            // A source of one line has no line end that could differ.
            let several = pattern.pieces.len() > 1;
            several.then(|| bytes::ignoring_newlines(body, pattern.text, keep))
        };
        let lines = |level: Level| {
            let pieces = pattern.compared(level);
            let wanted: Vec<&[u8]> =
                pattern.pieces[pieces.clone()].iter().map(|piece| piece.text).collect();
            windows::search(body, &wanted, level, keep).at(level, pieces)
        };
        newlines()
            .and_then(|tally| tally.at(Level::Newlines, pattern.compared(Level::Newlines)))
            .or_else(|| lines(Level::TrailingBlanks))
            .or_else(|| lines(Level::Indentation))
    })
}

#[cfg(test)]
mod tests;
