//! The change that an edit makes to a file.

use std::fmt;

use super::lines::{LineCounter, LinePosition, eol_before};
use super::merge::Splice;
use super::refusal::Refusal;
use super::show;
use super::tolerance::Level;

/// Lines of a file, both ends included; the first line is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LineRange {
    /// The first of them.
    pub first: usize,
    /// The last of them.
    pub last: usize,
}

impl LineRange {
    /// The lines of a byte range that begins at a mark. A line end belongs to the line that it ends.
    pub(super) fn of(
        counter: &LineCounter<'_>,
        file: &[u8],
        start: LinePosition,
        end: usize,
    ) -> Self {
        let end = end - eol_before(file, end).min(end - start.at);
        Self { first: start.line, last: counter.mark(start, end).line }
    }
}

impl fmt::Display for LineRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "line {}", self.first)
        } else {
            write!(f, "lines {}-{}", self.first, self.last)
        }
    }
}

/// The replacements of an edit. It is valid only for the bytes in which it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    level: Level,
    splices: Vec<Splice>,
    lines: Vec<LineRange>,
}

impl Change {
    /// Refused if nothing would change. Lines are counted from `before`, which must not be after the first splice.
    pub(super) fn new(
        file: &[u8],
        level: Level,
        before: LinePosition,
        mut splices: Vec<Splice>,
    ) -> Result<Self, Refusal> {
        splices.retain(|splice| splice.text != file[splice.range.clone()]);
        if splices.is_empty() {
            return Err(Refusal::NoChange);
        }
        let counter = LineCounter::new(file);
        let mut lines = Vec::with_capacity(splices.len());
        let mut mark = before;
        for Splice { range, .. } in &splices {
            mark = counter.mark(mark, range.start);
            lines.push(LineRange::of(&counter, file, mark, range.end));
        }
        Ok(Self { level, splices, lines })
    }

    /// The level at which the source was found.
    pub const fn level(&self) -> Level {
        self.level
    }

    /// The replacements, in the order of the file and without overlaps. There is one, unless all places were requested.
    pub fn splices(&self) -> &[Splice] {
        &self.splices
    }

    /// The lines of each splice, numbered before it is applied.
    pub fn lines(&self) -> &[LineRange] {
        &self.lines
    }

    /// The changed file, in one allocation of its size. `file` must be the file in which the change was found.
    ///
    /// # Panics
    ///
    /// If `file` is a different, shorter file.
    pub fn apply(&self, file: &[u8]) -> Vec<u8> {
        let (gone, come) = self.splices.iter().fold((0, 0), |(gone, come), splice| {
            (gone + splice.range.len(), come + splice.text.len())
        });
        let mut out = Vec::with_capacity(file.len() - gone + come);
        let mut at = 0;
        for Splice { range, text } in &self.splices {
            out.extend_from_slice(&file[at..range.start]);
            out.extend_from_slice(text);
            at = range.end;
        }
        out.extend_from_slice(&file[at..]);
        out
    }

    /// The change for people and models: removed and added lines with some context, in the format of `diff -u` without
    /// file names. Long lines and many places are shortened, with a note. `file` must be the file in which the change
    /// was found.
    pub fn diff(&self, file: &[u8]) -> String {
        show::change(file, &self.splices, &self.lines)
    }
}
