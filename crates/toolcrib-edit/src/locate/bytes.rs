//! The first two levels, which compare bytes.

use memchr::memmem;

use super::LevelMatches;
use crate::lines::{LineCounter, LinePosition, splits_eol};

/// After this many overlapping hits, each byte is read once more by a slower automaton that never goes back.
const OVERLAPS: usize = 256;

/// The block size for searching and then counting: it fits into a fast cache, so the file is read from memory only
/// once.
pub(super) const BLOCK: usize = 1 << 15;

/// Every place of `source`, including overlapping ones. A place never begins or ends between a CR and its LF.
pub(super) fn exact(file: &[u8], source: &[u8], keep: usize) -> LevelMatches {
    let mut tally = LevelMatches::new(keep);
    let finder = memmem::Finder::new(source);
    let Some(before) = block_of_first(file, &finder) else { return tally };
    tally.before = before;
    let (mut from, mut end_before, mut overlaps) = (before.at, 0, 0);
    while let Some(at) = finder.find(&file[from..]) {
        let place = from + at..from + at + source.len();
        overlaps += usize::from(place.start < end_before);
        if overlaps > OVERLAPS {
            return Automaton::new(source, ByteComparison::Bytes).run(file, keep);
        }
        (from, end_before) = (place.start + 1, place.end);
        if !splits_eol(file, place.start) && !splits_eol(file, place.end) {
            tally.add(place);
        }
    }
    tally
}

/// The beginning of the block in which the first hit begins.
fn block_of_first(file: &[u8], finder: &memmem::Finder<'_>) -> Option<LinePosition> {
    let counter = LineCounter::new(file);
    let len = finder.needle().len();
    let mut mark = LinePosition::START;
    loop {
        let end = file.len().min(mark.at + BLOCK.max(len));
        let reach = file.len().min(end + len - 1);
        if finder.find(&file[mark.at..reach]).is_some() {
            return Some(mark);
        }
        if end == file.len() {
            return None;
        }
        mark = counter.mark(mark, end);
    }
}

/// Every place of `source` if each CR LF and each CR is read as LF.
pub(super) fn ignoring_newlines(file: &[u8], source: &[u8], keep: usize) -> LevelMatches {
    Automaton::new(source, ByteComparison::Newlines).run(file, keep)
}

/// How bytes are compared.
#[derive(Clone, Copy, PartialEq)]
enum ByteComparison {
    Bytes,
    Newlines,
}

impl ByteComparison {
    /// The byte at `at`, and how many bytes of the file it represents.
    fn byte(self, file: &[u8], at: usize) -> (u8, usize) {
        match file[at] {
            b'\r' if self == Self::Newlines => {
                (b'\n', 1 + usize::from(file.get(at + 1) == Some(&b'\n')))
            }
            byte => (byte, 1),
        }
    }
}

/// The Knuth-Morris-Pratt automaton: linear time whatever repeats.
struct Automaton {
    reading: ByteComparison,
    pattern: Vec<u8>,
    /// For each length of a match, the next shorter match.
    shorter: Vec<usize>,
}

impl Automaton {
    fn new(source: &[u8], reading: ByteComparison) -> Self {
        let mut pattern = Vec::with_capacity(source.len());
        let mut at = 0;
        while at < source.len() {
            let (byte, len) = reading.byte(source, at);
            pattern.push(byte);
            at += len;
        }
        let shorter = shorter_matches(&pattern);
        Self { reading, pattern, shorter }
    }

    fn run(&self, file: &[u8], keep: usize) -> LevelMatches {
        let mut tally = LevelMatches::new(keep);
        let Self { reading, pattern, shorter } = self;
        // `start` is the length of a whole match before `at`.
        let (mut at, mut start, mut read, mut matched) = (0, 0, 0, 0);
        while at < file.len() {
            let (byte, len) = reading.byte(file, at);
            at += len;
            if read < pattern.len() {
                read += 1;
            } else {
                start += reading.byte(file, start).1;
            }
            while matched > 0 && (matched == pattern.len() || pattern[matched] != byte) {
                matched = shorter[matched];
            }
            matched += usize::from(pattern[matched] == byte);
            if matched == pattern.len() && !splits_eol(file, start) && !splits_eol(file, at) {
                tally.add(start..at);
            }
        }
        tally
    }
}

/// For each length of a prefix, the length of its longest proper border.
pub(super) fn shorter_matches<T: PartialEq>(pattern: &[T]) -> Vec<usize> {
    let mut shorter = vec![0; pattern.len() + 1];
    let mut matched = 0;
    for at in 1..pattern.len() {
        while matched > 0 && pattern[matched] != pattern[at] {
            matched = shorter[matched];
        }
        matched += usize::from(pattern[matched] == pattern[at]);
        shorter[at + 1] = matched;
    }
    shorter
}
