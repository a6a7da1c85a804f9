//! What an edit does to a file.

use std::fmt;

use super::level::Level;
use super::lines::{LineCounter, Mark, eol_before};
use super::merge::Splice;
use super::refusal::Refusal;
use super::show;

/// Lines of a file, both ends included; the first line is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LineRange {
    /// The first of them.
    pub first: usize,
    /// The last of them.
    pub last: usize,
}

impl LineRange {
    /// The lines that bytes of a file stand in, which begin at a mark. A line's end is the end of
    /// its line, not the beginning of the next.
    pub(super) fn of(counter: &LineCounter<'_>, file: &[u8], start: Mark, end: usize) -> Self {
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

/// What is written where. It belongs to the bytes it was found in, and is only good for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    level: Level,
    splices: Vec<Splice>,
    lines: Vec<LineRange>,
}

impl Change {
    /// Refused if nothing would be different. Lines are counted from `before`, which is not after
    /// the first splice.
    pub(super) fn new(
        file: &[u8],
        level: Level,
        before: Mark,
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

    /// At which level the source was found.
    pub const fn level(&self) -> Level {
        self.level
    }

    /// What is written where, in the order of the file, apart from each other. One, unless all
    /// places were asked for.
    pub fn splices(&self) -> &[Splice] {
        &self.splices
    }

    /// The lines of each splice, as they are numbered before it.
    pub fn lines(&self) -> &[LineRange] {
        &self.lines
    }

    /// The file with the change, in one allocation of its size. `file` is what the change was found
    /// in.
    ///
    /// # Panics
    ///
    /// If `file` is another one, and shorter.
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

    /// The change for people and models: lines that go and come with a few around them, in the
    /// format of `diff -u` without file names. Long lines and many places are cut short, and it says
    /// so. `file` is what the change was found in.
    pub fn diff(&self, file: &[u8]) -> String {
        show::change(file, &self.splices, &self.lines)
    }
}
