//! A source text, parsed once for all levels.

use std::ops::Range;

use super::lines::{Piece, pieces, trim};
use super::tolerance::Level;

/// The lines of the source.
pub(super) struct Pattern<'a> {
    pub(super) text: &'a [u8],
    /// The result of [`pieces`].
    pub(super) pieces: Vec<Piece<'a>>,
    /// How many pieces are lines: all except the empty one after the last line end.
    pub(super) lines: usize,
    /// The lines without blank ones at the edges.
    pub(super) core: Range<usize>,
    /// The line for which the file is searched.
    pub(super) seed: usize,
}

impl<'a> Pattern<'a> {
    /// `None` if every line is blank.
    pub(super) fn new(text: &'a [u8]) -> Option<Self> {
        let pieces: Vec<_> = pieces(text).collect();
        let is_blank = |piece: &Piece<'_>| trim(piece.text).is_empty();
        let first = pieces.iter().position(|piece| !is_blank(piece))?;
        let last = pieces.iter().rposition(|piece| !is_blank(piece))?;
        let terminated = pieces.len() > 1 && pieces[pieces.len() - 1].text.is_empty();
        let lines = pieces.len() - usize::from(terminated);
        // The longest line: it is probably the rarest, and is searched fastest.
        let seed = (first..=last).rev().max_by_key(|at| trim(pieces[*at].text).len())?;
        Some(Self { text, pieces, lines, core: first..last + 1, seed })
    }

    /// Whether the source's last line has a line end.
    pub(super) fn is_terminated(&self) -> bool {
        self.lines < self.pieces.len()
    }

    /// The pieces that are compared at a level up to the fourth.
    pub(super) fn compared(&self, level: Level) -> Range<usize> {
        match level {
            Level::Exact | Level::Newlines => 0..self.pieces.len(),
            Level::TrailingBlanks => 0..self.lines,
            Level::Indentation | Level::Folded => self.core.clone(),
        }
    }

    /// The searched text: the seed without surrounding blanks. Every level up to the fourth finds it verbatim.
    pub(super) fn needle(&self) -> &'a [u8] {
        trim(self.pieces[self.seed].text)
    }
}
