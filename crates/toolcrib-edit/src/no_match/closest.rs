//! Finds the part of a file that is most similar to a missing source: to explain a refusal, never to edit.
//!
//! One pass over the file counts in each block how many trigrams also occur in the source. The best blocks are then
//! compared line by line.

use std::fmt::Write as _;
use std::ops::Range;

use crate::change::LineRange;
use crate::character_folding;
use crate::diff::{Hunk, hunks};
use crate::lines::{LineCounter, LinePosition, line_end_within, line_start_within, pieces, trim};
use crate::show::{clip, visible};

/// Bytes per block: ten words, each starting six bytes after the previous one.
const BLOCK: usize = 60;

/// How many parts of the file are compared line by line.
const CANDIDATES: usize = 6;

/// If a source is longer than this, only its beginning is used.
const LARGE: usize = 16 * 1024;

/// The longest text that is offered for sending again, in bytes.
const RESENT: usize = 4_000;

/// The most lines of the comparison.
const MOST_ROWS: usize = 40;

/// How similar the lines must be to be shown, in thousandths.
const LIKE: usize = 450;

/// The part of the file that is most similar to the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closest {
    /// Its lines.
    pub lines: LineRange,
    /// Its exact text, for use as the source if it is what was meant; `None` if it is longer than 4,000 bytes or not
    /// UTF-8.
    pub text: Option<String>,
    /// A comparison with the source: the file's lines with their numbers, `-` before those that differ in the source,
    /// `+` before the source's. If only blanks differ they are made visible, `·` for a space and `→` for a tab.
    pub diff: String,
}

/// The position of that part.
pub(super) fn find(file: &[u8], source: &str) -> Option<Range<usize>> {
    let head = &source.as_bytes()[..source.len().min(LARGE)];
    let shape = Trigrams::of(head);
    let candidates = candidates(file, &shape, head.len());
    let wanted: Vec<&[u8]> = lines_of(head);
    candidates
        .into_iter()
        .filter_map(|range| best_lines(file, range, &wanted))
        .max_by_key(|(likeness, range)| (*likeness, std::cmp::Reverse(range.start)))
        .filter(|(likeness, _)| *likeness >= LIKE)
        .map(|(_, range)| range)
}

impl Closest {
    pub(super) fn new(file: &[u8], source: &str, range: &Range<usize>) -> Self {
        let counter = LineCounter::new(file);
        let start = counter.mark(LinePosition::START, range.start);
        let lines = LineRange::of(&counter, file, start, range.end);
        let window = &file[range.clone()];
        let text = (window.len() <= RESENT)
            .then(|| std::str::from_utf8(window).ok().map(str::to_owned))
            .flatten();
        Self { lines, text, diff: compared(window, source, lines.first) }
    }
}

/// The lines of the window beside those of the source.
fn compared(window: &[u8], source: &str, first: usize) -> String {
    let (old, new) = (lines_of(window), lines_of(source.as_bytes()));
    let (old, new) = (&old[..old.len().min(200)], &new[..new.len().min(200)]);
    let mut out = String::new();
    let mut left = MOST_ROWS;
    for Hunk { old: file, new: source, equal } in hunks(old, new) {
        // Lines that differ only in blanks show their blanks.
        let blanks = |lines: &[&[u8]]| -> Vec<String> {
            lines
                .iter()
                .map(|line| character_folding::fold(&String::from_utf8_lossy(line)))
                .collect()
        };
        let only_blanks = !equal && blanks(&old[file.clone()]) == blanks(&new[source.clone()]);
        let row = |line: &[u8]| {
            let line = clip(line);
            if only_blanks { visible(&line) } else { line.into_owned() }
        };
        let rows = file
            .clone()
            .map(|at| (if equal { ' ' } else { '-' }, Some(first + at), old[at]))
            .chain(source.filter(|_| !equal).map(|at| ('+', None, new[at])));
        for (sign, number, line) in rows {
            if left == 0 {
                out.push_str("…\n");
                return out;
            }
            left -= 1;
            let number = number.map_or(String::new(), |number| number.to_string());
            let _ = writeln!(out, "{sign}{number:>6}  {}", row(line));
        }
    }
    out
}

/// Lines without line ends, and without the empty piece after the last end.
fn lines_of(text: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = pieces(text).map(|piece| piece.text).collect();
    if lines.len() > 1 && lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines
}

/// The trigrams of a text, ignoring case.
struct Trigrams {
    known: Vec<u8>,
}

impl Trigrams {
    fn of(text: &[u8]) -> Self {
        let mut known = vec![0; 1 << 16];
        let padded = [text, b"\0\0"].concat();
        Self::slots(&padded).for_each(|slot| known[slot] = 1);
        // Blanks alone distinguish nothing.
        let blank = b"\t\t\t   \t  \n\n\n   \n  ";
        Self::slots(blank).for_each(|slot| known[slot] = 0);
        Self { known }
    }

    fn slots(text: &[u8]) -> impl Iterator<Item = usize> {
        let group = |bytes: &[u8]| [bytes[0], bytes[1], bytes[2], 0, 0, 0, 0, 0];
        text.windows(3).map(move |bytes| Self::slot(u64::from_le_bytes(group(bytes))))
    }

    /// The slot of the first three bytes of a word. Upper and lower case share a slot.
    fn slot(word: u64) -> usize {
        let group = (word | 0x0020_2020) & 0x00ff_ffff;
        let hash = (group.wrapping_mul(0x9e37_79b1) >> 16) & 0xffff;
        usize::try_from(hash).unwrap_or(0)
    }

    /// How many known trigrams begin in the block at `at`, checking every second one.
    fn count(&self, file: &[u8], at: usize) -> usize {
        let block = file[at..].first_chunk().copied().unwrap_or_else(|| {
            let mut padded = [0; BLOCK + 2];
            padded[..file.len() - at].copy_from_slice(&file[at..]);
            padded
        });
        self.count_in(&block)
    }

    fn count_in(&self, block: &[u8; BLOCK + 2]) -> usize {
        let known = |word: u64| usize::from(self.known[Self::slot(word)]);
        // A word of eight bytes contains three trigrams.
        let words = (0..BLOCK).step_by(6).filter_map(|at| block[at..].first_chunk());
        words
            .map(|word| u64::from_le_bytes(*word))
            .map(|word| known(word) + known(word >> 16) + known(word >> 32))
            .sum()
    }
}

/// The parts of the file, as long as the source, with most of its trigrams; without overlaps.
fn candidates(file: &[u8], shape: &Trigrams, len: usize) -> Vec<Range<usize>> {
    let width = len.div_ceil(BLOCK) + 1;
    let mut best: Vec<(usize, usize)> = Vec::with_capacity(CANDIDATES + 1);
    let mut counts = std::collections::VecDeque::with_capacity(width + 1);
    let mut sum = 0;
    for at in 0..file.len().div_ceil(BLOCK) {
        let count = shape.count(file, at * BLOCK);
        counts.push_back(count);
        sum += count;
        if counts.len() > width {
            sum -= counts.pop_front().unwrap_or(0);
        }
        let first = (at + 1).saturating_sub(width);
        if best.len() == CANDIDATES && best[CANDIDATES - 1].0 >= sum {
            continue;
        }
        // Of overlapping windows, keep the better one.
        match best.iter().position(|(_, other)| first - other < width) {
            Some(known) if best[known].0 >= sum => continue,
            Some(known) => best[known] = (sum, first),
            None => best.push((sum, first)),
        }
        best.sort_by_key(|(sum, first)| (std::cmp::Reverse(*sum), *first));
        best.truncate(CANDIDATES);
    }
    best.iter()
        .filter(|(sum, _)| *sum > 0)
        .map(|(_, first)| first * BLOCK..file.len().min((first + width) * BLOCK))
        .collect()
}

/// The lines in and around a part of the file that are most similar to the wanted ones, and their similarity.
fn best_lines(file: &[u8], part: Range<usize>, wanted: &[&[u8]]) -> Option<(usize, Range<usize>)> {
    let start = line_start_within(file, part.start, LARGE).unwrap_or(part.start);
    // Include two more lines on either side, because blocks do not end at line ends.
    let start = (0..2).fold(start, |start, _| {
        start.checked_sub(1).and_then(|end| line_start_within(file, end, 1_000)).unwrap_or(start)
    });
    let end = line_end_within(file, part.end, 1_000).unwrap_or(part.end);
    let mut at = start;
    let lines: Vec<Range<usize>> = pieces(&file[start..end])
        .map(|piece| {
            let line = at..at + piece.text.len();
            at = line.end + piece.eol.len();
            line
        })
        .collect();
    let wanted_bags: Vec<Bigrams> = wanted.iter().map(|line| Bigrams::of(line)).collect();
    let bags: Vec<Bigrams> = lines.iter().map(|line| Bigrams::of(&file[line.clone()])).collect();
    let weight: usize = wanted_bags.iter().map(Bigrams::len).sum::<usize>().max(1);
    // Align the texts at the line that matches the source's most distinctive line best.
    let telling = (0..wanted.len()).max_by_key(|at| wanted_bags[*at].len())?;
    let mut ranked: Vec<usize> = (0..lines.len()).collect();
    ranked.sort_by_key(|at| std::cmp::Reverse(bags[*at].likeness(&wanted_bags[telling])));
    ranked
        .into_iter()
        .take(4)
        .map(|anchor| {
            let first = anchor.saturating_sub(telling);
            let last = (first + wanted.len()).min(lines.len());
            let like: usize = wanted_bags
                .iter()
                .zip(&bags[first..last])
                .map(|(bag, line)| {
                    // A source of one line may be part of a line.
                    let part = if wanted.len() == 1 { bag.inside(line) * 3 / 5 } else { 0 };
                    bag.likeness(line).max(part) * bag.len()
                })
                .sum();
            // Inserted or omitted lines shift the others; equal lines find the shift.
            let key = |line: &[u8]| trim(line).to_vec();
            let old: Vec<Vec<u8>> =
                lines[first..last].iter().map(|line| key(&file[line.clone()])).collect();
            let new: Vec<Vec<u8>> = wanted.iter().map(|line| key(line)).collect();
            let equal: usize = hunks(&old, &new)
                .into_iter()
                .filter(|hunk| hunk.equal)
                .flat_map(|hunk| hunk.new)
                .map(|at| 1_000 * wanted_bags[at].len())
                .sum();
            (like.max(equal) / weight, lines[first].start..lines[last - 1].end)
        })
        .max_by_key(|(likeness, range)| (*likeness, std::cmp::Reverse(range.start)))
}

/// The bigrams of a line, sorted, without blanks.
struct Bigrams {
    pairs: Vec<[u8; 2]>,
}

impl Bigrams {
    fn of(line: &[u8]) -> Self {
        let line = &line[..line.len().min(1_000)];
        let shown: Vec<u8> = line
            .iter()
            .filter(|byte| !byte.is_ascii_whitespace())
            .map(u8::to_ascii_lowercase)
            .collect();
        let mut pairs: Vec<[u8; 2]> = shown.windows(2).map(|pair| [pair[0], pair[1]]).collect();
        if let [one] = shown[..] {
            pairs.push([one, 0]);
        }
        pairs.sort_unstable();
        Self { pairs }
    }

    fn len(&self) -> usize {
        self.pairs.len()
    }

    /// The share of common bigrams in both, in thousandths.
    fn likeness(&self, other: &Self) -> usize {
        2_000 * self.shared(other) / (self.len() + other.len()).max(1)
    }

    /// The share of these bigrams that the other has too, in thousandths.
    fn inside(&self, other: &Self) -> usize {
        1_000 * self.shared(other) / self.len().max(1)
    }

    fn shared(&self, other: &Self) -> usize {
        let (mut one, mut two, mut both) = (0, 0, 0);
        while one < self.pairs.len() && two < other.pairs.len() {
            match self.pairs[one].cmp(&other.pairs[two]) {
                std::cmp::Ordering::Less => one += 1,
                std::cmp::Ordering::Greater => two += 1,
                std::cmp::Ordering::Equal => {
                    both += 1;
                    one += 1;
                    two += 1;
                }
            }
        }
        both
    }
}
