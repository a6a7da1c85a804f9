#![doc = include_str!("docs/edit.md")]
#![forbid(unsafe_code)]

mod ambiguity;
mod change;
mod character_folding;
mod diff;
mod edits_of_one_file;
mod lines;
mod locate;
mod merge;
mod nesting;
mod no_match;
mod pattern;
mod refusal;
mod refusals_without_the_file;
mod reindentation;
mod show;
mod tolerance;

pub use ambiguity::{Ambiguity, Candidate};
pub use change::{Change, LineRange};
pub use edits_of_one_file::{AppliedEdits, EditEffect, RejectedEdit, apply};
pub use merge::Splice;
pub use no_match::NoMatch;
pub use no_match::cause::Cause;
pub use no_match::closest::Closest;
pub use refusal::Refusal;
pub use tolerance::Level;

use std::ops::Range;

use lines::LineCounter;
use locate::Found;
use pattern::Pattern;

/// The byte order mark; it is not part of the first line.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// How many places are stored for distinguishing them; more are only counted.
const KEPT: usize = 1_000;

/// A text and its replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edit<'a> {
    source: &'a str,
    target: &'a str,
    replace_all: bool,
    near_line: Option<usize>,
}

impl<'a> Edit<'a> {
    /// Replaces `source`, which must occur in the file exactly once, with `target`.
    pub const fn new(source: &'a str, target: &'a str) -> Self {
        Self { source, target, replace_all: false, near_line: None }
    }

    /// Replaces every occurrence at the strictest level that has one, from the first on and without overlaps. Default:
    /// one occurrence, and a refusal if there are more.
    #[must_use]
    pub const fn replace_all(mut self, replace_all: bool) -> Self {
        self.replace_all = replace_all;
        self
    }

    /// If there are several places, chooses the one nearest to this line (the first is 1). It resolves an ambiguity but
    /// never creates a match; two places at the same distance stay ambiguous.
    #[must_use]
    pub const fn near_line(mut self, line: usize) -> Self {
        self.near_line = Some(line);
        self
    }

    /// Computes what the edit changes in a file, without changing it. Nothing of the file is copied.
    ///
    /// # Errors
    ///
    /// A [`Refusal`], with which a model can correct its call.
    pub fn find(&self, file: &[u8]) -> Result<Change, Refusal> {
        refusals_without_the_file::check(self.source, self.target)?;
        let keep = if self.replace_all || self.near_line.is_some() { usize::MAX } else { KEPT };
        let source = self.source.as_bytes();
        let pattern =
            Pattern::new(source).filter(|_| !refusals_without_the_file::is_blank(self.source));
        let exact = locate::exact(file, source, keep);
        let Some(pattern) = pattern else {
            // Blanks alone are not enough to choose a place.
            return match exact {
                Some(found) if found.count == 1 => self.exact(file, &found),
                found => Err(Refusal::BlankSource { count: found.map_or(0, |found| found.count) }),
            };
        };
        if let Some(found) = exact {
            return self.exact(file, &found);
        }
        let marked = WithoutByteOrderMarks::new(file, source, self.target.as_bytes());
        let pattern = if marked.source.len() == source.len() {
            pattern
        } else {
            Pattern::new(marked.source).ok_or(Refusal::BlankSource { count: 0 })?
        };
        let found = locate::drifted(marked.body, &pattern, keep);
        let missing = || Refusal::Missing(Box::new(NoMatch::new(file, self.source, self.target)));
        let mut found = found.ok_or_else(missing)?;
        let lines = &pattern.pieces[found.pieces.clone()];
        let (level, within_lines) = (found.level, found.within_lines);
        let alike = |place: &Range<usize>| {
            level < Level::Indentation
                || within_lines
                || nesting::is_alike(lines, &marked.body[place.clone()], level)
        };
        let first = found.places[0].start + marked.offset..found.places[0].end + marked.offset;
        let nested = || {
            let no_match = NoMatch::nested(file, self.source, self.target, &first);
            Refusal::Missing(Box::new(no_match))
        };
        if found.count == found.places.len() && found.count <= KEPT {
            found.places.retain(&alike);
            found.count = found.places.len();
        }
        if found.places.is_empty() {
            return Err(nested());
        }
        let mut chosen = self.choose(marked.body, &found)?;
        chosen.retain(alike);
        if chosen.is_empty() {
            return Err(nested());
        }
        let mut splices: Vec<Splice> = Vec::with_capacity(chosen.len());
        for place in &chosen {
            if within_lines {
                splices.push(merge::within_line(marked.body, marked.source, marked.target, place));
                continue;
            }
            let floor = splices.last().map_or(0, |splice| splice.range.end);
            let (body, target) = (marked.body, marked.target);
            let splice = merge::drifted(body, &pattern, target, &found, place, floor);
            splices.push(splice.ok_or_else(missing)?);
        }
        for splice in &mut splices {
            splice.range.start += marked.offset;
            splice.range.end += marked.offset;
        }
        Change::new(file, found.level, found.before, splices)
    }

    fn exact(&self, file: &[u8], found: &Found) -> Result<Change, Refusal> {
        let (source, target) = (self.source.as_bytes(), self.target.as_bytes());
        let chosen = self.choose(file, found)?;
        let splices =
            chosen.iter().map(|place| merge::exact(file, source, target, place)).collect();
        Change::new(file, found.level, found.before, splices)
    }

    /// The places to replace.
    fn choose(&self, file: &[u8], found: &Found) -> Result<Vec<Range<usize>>, Refusal> {
        if found.count == 1 {
            return Ok(found.places.clone());
        }
        if self.replace_all {
            let mut end = 0;
            let apart = found.places.iter().filter(|place| {
                let apart = place.start >= end;
                end = if apart { place.end } else { end };
                apart
            });
            return Ok(apart.cloned().collect());
        }
        self.near_line
            .and_then(|line| nearest(file, found, line))
            .map(|place| vec![place])
            .ok_or_else(|| Refusal::Ambiguous(Box::new(Ambiguity::new(file, found))))
    }
}

/// The one place that is nearer to the line than all others.
fn nearest(file: &[u8], found: &Found, line: usize) -> Option<Range<usize>> {
    let counter = LineCounter::new(file);
    let mut mark = found.before;
    let mut best: Option<(usize, &Range<usize>)> = None;
    let mut tied = false;
    for place in &found.places {
        mark = counter.mark(mark, place.start);
        let last = counter.mark(mark, place.end).line;
        let distance = mark.line.saturating_sub(line).max(line.saturating_sub(last));
        match best {
            Some((nearest, _)) if distance > nearest => {}
            Some((nearest, _)) if distance == nearest => tied = true,
            _ => (best, tied) = (Some((distance, place)), false),
        }
    }
    best.filter(|_| !tied).map(|(_, place)| place.clone())
}

/// The texts without byte order marks, which are not edited.
struct WithoutByteOrderMarks<'a> {
    body: &'a [u8],
    source: &'a [u8],
    target: &'a [u8],
    /// Where the body begins in the file.
    offset: usize,
}

impl<'a> WithoutByteOrderMarks<'a> {
    fn new(file: &'a [u8], source: &'a [u8], target: &'a [u8]) -> Self {
        let plain = |text: &'a [u8]| text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let body = plain(file);
        let (source, target) = match source.strip_prefix(BYTE_ORDER_MARK) {
            Some(source) => (source, plain(target)),
            None => (source, target),
        };
        Self { body, source, target, offset: file.len() - body.len() }
    }
}
