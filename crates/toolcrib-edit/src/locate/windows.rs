//! The third and later levels for very repetitive files: one hash per line, and an automaton that reads each line once.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::fast::FixedState;

use super::LevelMatches;
use super::bytes::shorter_matches;
use crate::character_folding::fold_hash;
use crate::lines::{pieces, trim, trim_end};
use crate::tolerance::Level;

/// Every place of the lines at one level, the third or a later one.
///
/// Lines are compared by their hashes. A collision could only add a place, which leads to a refusal: a place is
/// compared again before it is replaced.
pub(super) fn search(body: &[u8], wanted: &[&[u8]], level: Level, keep: usize) -> LevelMatches {
    let hashing = FixedState::default();
    let key = |text: &[u8]| match level {
        Level::Exact | Level::Newlines => hashing.hash_one(text),
        Level::TrailingBlanks => hashing.hash_one(trim_end(text)),
        Level::Indentation => hashing.hash_one(trim(text)),
        // Used only for UTF-8 files; other text equals nothing.
        Level::Folded => std::str::from_utf8(text)
            .map_or_else(|_| hashing.hash_one(text), |text| fold_hash(text, &hashing)),
    };
    let wanted: Vec<u64> = wanted.iter().map(|text| key(text)).collect();
    let shorter = shorter_matches(&wanted);
    let mut tally = LevelMatches::new(keep);
    let mut starts: VecDeque<usize> = VecDeque::with_capacity(wanted.len() + 1);
    let (mut at, mut matched) = (0, 0);
    for line in pieces(body) {
        let text: Range<usize> = at..at + line.text.len();
        at = text.end + line.eol.len();
        // After the last line end there is no further line.
        if line.eol.is_empty() && line.text.is_empty() {
            break;
        }
        starts.push_back(text.start);
        if starts.len() > wanted.len() {
            starts.pop_front();
        }
        let hash = key(line.text);
        while matched > 0 && (matched == wanted.len() || wanted[matched] != hash) {
            matched = shorter[matched];
        }
        matched += usize::from(wanted[matched] == hash);
        if matched == wanted.len() {
            tally.add(starts[0]..text.end);
        }
    }
    tally
}
