//! Levels two to four in one pass: searches for one line of the source verbatim, and compares outwards from each hit.
//!
//! A line that is equal at any of these levels contains the source's line verbatim, without surrounding blanks. So a
//! substring search finds the candidates, and other lines are compared only around them.

use std::ops::Range;

use memchr::memmem;

use super::{Found, LevelMatches};
use crate::lines::{eol_at, eol_before, is_blank, trim, trim_end};
use crate::pattern::Pattern;
use crate::tolerance::Level;

/// How many hits are examined. A line that occurs more often is not a useful start.
const HITS: usize = 10_000;

/// How many bytes are compared at least, however small the file is.
const LEAST_WORK: usize = 1 << 16;

/// The seed, or the text around it, repeats so often that comparing outwards might not be linear.
pub(super) struct TooManyHits;

/// The places at the strictest of the three levels that has any.
pub(super) fn search(
    body: &[u8],
    pattern: &Pattern<'_>,
    keep: usize,
) -> Result<Option<Found>, TooManyHits> {
    let needle = pattern.needle();
    let finder = memmem::Finder::new(needle);
    let mut tallies = LEVELS.map(|_| LevelMatches::new(keep));
    // A source of one line has no line end that could differ.
    let strictest = usize::from(pattern.pieces.len() == 1);
    let mut wanted = strictest..LEVELS.len();
    let mut work = body.len() + pattern.text.len() + LEAST_WORK;
    let (mut from, mut hits) = (0, 0);
    while let Some(at) = finder.find(&body[from..]) {
        let hit = from + at;
        from = hit + 1;
        hits += 1;
        for level in wanted.clone() {
            let mut window = Window { body, pattern, level: LEVELS[level], work: &mut work };
            if let Some(place) = window.around(hit) {
                tallies[level].add(place);
                wanted.end = level + 1;
                break;
            }
        }
        if hits == HITS || work == 0 {
            return Err(TooManyHits);
        }
    }
    let [newlines, trailing, indentation] = tallies;
    let at = |tally: LevelMatches, level| tally.at(level, pattern.compared(level));
    Ok(at(newlines, Level::Newlines)
        .or_else(|| at(trailing, Level::TrailingBlanks))
        .or_else(|| at(indentation, Level::Indentation)))
}

const LEVELS: [Level; 3] = [Level::Newlines, Level::TrailingBlanks, Level::Indentation];

/// Compares the lines around a hit at one level.
struct Window<'a> {
    body: &'a [u8],
    pattern: &'a Pattern<'a>,
    level: Level,
    /// How many bytes may still be compared.
    work: &'a mut usize,
}

impl Window<'_> {
    /// The place whose seed is at `hit`.
    fn around(&mut self, hit: usize) -> Option<Range<usize>> {
        let (pattern, pieces) = (self.pattern, self.pattern.compared(self.level));
        let text = pattern.pieces[pattern.seed].text;
        // The start of the seed's line, then its end, both searched from the hit.
        let mut start = if self.level == Level::Indentation {
            skip_blanks_back(self.body, hit)
        } else {
            hit.checked_sub(crate::lines::indent(text).len())?
        };
        let mut end = self.line_from(start, pattern.seed)?;
        if !self.is_open_start(pattern.seed) && !is_line_start(self.body, start) {
            return None;
        }
        for piece in (pieces.start..pattern.seed).rev() {
            let eol = eol_before(self.body, start);
            if eol == 0 {
                return None;
            }
            start = self.line_back(start - eol, piece)?;
        }
        for piece in pattern.seed + 1..pieces.end {
            let eol = eol_at(self.body, end);
            let next = end + eol;
            // After the last line end there is no further line, if lines are compared.
            if eol == 0 || (self.level != Level::Newlines && next == self.body.len()) {
                return None;
            }
            end = self.line_from(next, piece)?;
        }
        Some(start..end)
    }

    /// Whether a piece may begin within a line: the first one, if text rather than lines is compared.
    fn is_open_start(&self, piece: usize) -> bool {
        self.level == Level::Newlines && piece == 0
    }

    fn is_open_end(&self, piece: usize) -> bool {
        self.level == Level::Newlines && piece + 1 == self.pattern.pieces.len()
    }

    /// The end of the line that begins at `start`, if it equals the piece.
    fn line_from(&mut self, start: usize, piece: usize) -> Option<usize> {
        let text = self.pattern.pieces[piece].text;
        self.spend(text)?;
        let rest = &self.body[start..];
        let end = match self.level {
            Level::Exact | Level::Newlines => {
                start + rest.starts_with(text).then_some(text.len())?
            }
            Level::TrailingBlanks => {
                let text = trim_end(text);
                let end = start + rest.starts_with(text).then_some(text.len())?;
                self.skip_blanks(end)
            }
            Level::Indentation | Level::Folded => {
                let text = trim(text);
                let begin = self.skip_blanks(start);
                let end = begin + self.body[begin..].starts_with(text).then_some(text.len())?;
                self.skip_blanks(end)
            }
        };
        (self.is_open_end(piece) || end == self.body.len() || eol_at(self.body, end) > 0)
            .then_some(end)
    }

    /// The start of the line that ends at `end`, if it equals the piece.
    fn line_back(&mut self, end: usize, piece: usize) -> Option<usize> {
        let text = self.pattern.pieces[piece].text;
        self.spend(text)?;
        let before = &self.body[..end];
        let start = match self.level {
            Level::Exact | Level::Newlines => end - before.ends_with(text).then_some(text.len())?,
            Level::TrailingBlanks => {
                let text = trim_end(text);
                let before = trim_end(before);
                if text.is_empty() {
                    before.len()
                } else {
                    before.len() - before.ends_with(text).then_some(text.len())?
                }
            }
            Level::Indentation | Level::Folded => {
                let text = trim(text);
                let before = trim_end(before);
                let start = before.len() - before.ends_with(text).then_some(text.len())?;
                skip_blanks_back(self.body, start)
            }
        };
        (self.is_open_start(piece) || is_line_start(self.body, start)).then_some(start)
    }

    fn skip_blanks(&self, from: usize) -> usize {
        from + self.body[from..].iter().take_while(|byte| is_blank(**byte)).count()
    }

    fn spend(&mut self, text: &[u8]) -> Option<()> {
        *self.work = self.work.saturating_sub(text.len() + 1);
        (*self.work > 0).then_some(())
    }
}

fn skip_blanks_back(body: &[u8], from: usize) -> usize {
    trim_end(&body[..from]).len()
}

fn is_line_start(body: &[u8], at: usize) -> bool {
    at == 0 || eol_before(body, at) > 0
}
