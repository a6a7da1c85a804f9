//! The fifth level: lines are folded while they are compared, and the first few characters usually decide.

use std::ops::Range;

use super::{Found, LevelMatches, windows};
use crate::character_folding::{fold, folds_to, is_blank};
use crate::lines::{eol_at, eol_before, line_end, line_start, pieces};
use crate::pattern::Pattern;
use crate::tolerance::Level;

/// How many hits are examined; if there are more, each line is hashed once instead.
const HITS: usize = 10_000;

/// How many bytes are compared at least, however small the file is.
const LEAST_WORK: usize = 1 << 16;

/// Every place of the folded source; `None` if the source has no visible line or is not UTF-8.
pub(super) fn search(body: &str, pattern: &Pattern<'_>, keep: usize) -> Option<Found> {
    let texts: Vec<&str> = pattern.pieces[..pattern.lines]
        .iter()
        .map(|piece| std::str::from_utf8(piece.text))
        .collect::<Result<_, _>>()
        .ok()?;
    let first = texts.iter().position(|text| !is_blank(text))?;
    let last = texts.iter().rposition(|text| !is_blank(text))?;
    let keys: Vec<String> = texts[first..=last].iter().map(|text| fold(text)).collect();
    let seed = (0..keys.len()).rev().max_by_key(|at| keys[*at].len())?;
    let mut window =
        Window { body, keys: &keys, work: body.len() + pattern.text.len() + LEAST_WORK };
    let mut tally = LevelMatches::new(keep);
    let (mut at, mut hits) = (0, 0);
    for line in pieces(body.as_bytes()) {
        let text = at..at + line.text.len();
        at = text.end + line.eol.len();
        if !folds_to(&body[text.clone()], &keys[seed]) {
            continue;
        }
        hits += 1;
        if let Some(place) = window.around(text, seed) {
            tally.add(place);
        }
        if hits == HITS || window.work == 0 {
            let texts: Vec<&[u8]> =
                texts[first..=last].iter().map(|text| text.as_bytes()).collect();
            tally = windows::search(body.as_bytes(), &texts, Level::Folded, keep);
            break;
        }
    }
    tally.at(Level::Folded, first..last + 1)
}

struct Window<'a> {
    body: &'a str,
    keys: &'a [String],
    /// How many bytes may still be compared.
    work: usize,
}

impl Window<'_> {
    /// The place if its line `seed` is the given one.
    fn around(&mut self, line: Range<usize>, seed: usize) -> Option<Range<usize>> {
        let bytes = self.body.as_bytes();
        let (mut start, mut end) = (line.start, line.end);
        for key in (0..seed).rev() {
            let eol = eol_before(bytes, start);
            if eol == 0 {
                return None;
            }
            let line_end = start - eol;
            start = line_start(bytes, line_end);
            self.folds_to(start..line_end, key)?;
        }
        for key in seed + 1..self.keys.len() {
            let eol = eol_at(bytes, end);
            if eol == 0 {
                return None;
            }
            let line_start = end + eol;
            end = line_end(bytes, line_start);
            self.folds_to(line_start..end, key)?;
        }
        Some(start..end)
    }

    fn folds_to(&mut self, line: Range<usize>, key: usize) -> Option<()> {
        self.work = self.work.saturating_sub(line.len() + 1);
        (self.work > 0 && folds_to(&self.body[line], &self.keys[key])).then_some(())
    }
}
