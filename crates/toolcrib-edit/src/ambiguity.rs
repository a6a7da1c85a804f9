//! Explains a source that occurs several times, with context that makes each place unique.

use std::fmt;
use std::ops::Range;

use super::change::LineRange;
use super::lines::{LineCounter, eol_at, eol_before, line_end_within, line_start_within, trim};
use super::locate::{self, Found};
use super::show::clip;
use super::tolerance::Level;

/// The most places that are shown.
const SHOWN: usize = 5;

/// How many lines before and after a place may be needed to make it unique.
const REACH: usize = 12;

/// How many blocks of lines are tried; in a file larger than this many bytes, only one.
const TRIES: usize = 6;
const LARGE_FILE: usize = 1024 * 1024;

/// How many bytes of a line before a place are shown.
const BEFORE: usize = 80;

/// The longest context that is shown, and the longest line that is considered for one, in bytes.
const LARGE: usize = 2_000;

/// The source occurs several times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ambiguity {
    /// The level at which it occurs.
    pub level: Level,
    /// How often it occurs, including overlapping places.
    pub count: usize,
    /// The first five places.
    pub places: Vec<Candidate>,
}

/// One of the places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its lines.
    pub lines: LineRange,
    /// The first of its lines, shortened if it is long.
    pub text: String,
    /// The smallest text of whole lines around it that occurs only once, for use as the source; `None` if twelve more
    /// lines on either side or 2,000 bytes do not suffice, or if there are very many places.
    pub context: Option<String>,
}

impl Ambiguity {
    /// `file` is the searched text; line numbers refer to it.
    pub(super) fn new(file: &[u8], found: &Found) -> Self {
        let counter = LineCounter::new(file);
        let surroundings: Vec<PlaceContext<'_>> =
            found.places.iter().map(|place| PlaceContext::new(file, place)).collect();
        let whole = found.places.len() == found.count;
        let mut mark = found.before;
        let places = found
            .places
            .iter()
            .zip(&surroundings)
            .take(SHOWN)
            .map(|(place, around)| {
                mark = counter.mark(mark, place.start);
                Candidate {
                    lines: LineRange::of(&counter, file, mark, place.end),
                    text: clip(&file[first_line(file, place)]).into_owned(),
                    context: whole.then(|| around.context(&surroundings)).flatten(),
                }
            })
            .collect();
        Self { level: found.level, count: found.count, places }
    }
}

impl fmt::Display for Ambiguity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, count, places } = self;
        write!(
            f,
            "The source text occurs {count} times (matched {}), so it is not clear which place \
             is meant. Add surrounding lines until it occurs once, or set `near_line`, or set \
             `replace_all` to change every place.",
            level.describe()
        )?;
        for place in places {
            write!(f, "\n\n{}: {}", place.lines, place.text)?;
            if let Some(context) = &place.context {
                write!(f, "\nonly there:\n{context}")?;
            }
        }
        if *count > places.len() {
            write!(f, "\n\nand {} more", count - places.len())?;
        }
        Ok(())
    }
}

/// The line in which a place begins; a long line is cut around the place.
fn first_line(file: &[u8], place: &Range<usize>) -> Range<usize> {
    let start = line_start_within(file, place.start, BEFORE);
    let start = start.unwrap_or_else(|| place.start.saturating_sub(BEFORE));
    start..line_end_within(file, start, LARGE).unwrap_or(file.len().min(start + LARGE))
}

/// A place and the lines around it.
struct PlaceContext<'a> {
    file: &'a [u8],
    /// The whole lines of the place; `None` if they are long.
    lines: Option<Range<usize>>,
}

impl<'a> PlaceContext<'a> {
    fn new(file: &'a [u8], place: &Range<usize>) -> Self {
        let end = place.end - eol_before(file, place.end).min(place.len());
        let lines = (place.len() <= LARGE)
            .then(|| {
                let start = line_start_within(file, place.start, LARGE)?;
                Some(start..line_end_within(file, end, LARGE)?)
            })
            .flatten();
        Self { file, lines }
    }

    fn before(&self) -> impl Iterator<Item = Range<usize>> + use<'a> {
        let file = self.file;
        let mut start = self.lines.as_ref().map_or(0, |lines| lines.start);
        let lines = std::iter::from_fn(move || {
            let eol = eol_before(file, start);
            let end = (eol > 0).then(|| start - eol)?;
            start = line_start_within(file, end, LARGE)?;
            Some(start..end)
        });
        lines.take(REACH)
    }

    fn after(&self) -> impl Iterator<Item = Range<usize>> + use<'a> {
        let file = self.file;
        let mut end = self.lines.as_ref().map_or(file.len(), |lines| lines.end);
        let lines = std::iter::from_fn(move || {
            let eol = eol_at(file, end);
            let start = (eol > 0 && end + eol < file.len()).then(|| end + eol)?;
            end = line_end_within(file, start, LARGE)?;
            Some(start..end)
        });
        lines.take(REACH)
    }

    /// The smallest block of whole lines that contains only this place.
    fn context(&self, all: &[Self]) -> Option<String> {
        let own = self.lines.as_ref()?;
        // For each other place, how many lines before and after are the same.
        let mut shared: Vec<(usize, usize)> = Vec::new();
        for other in all {
            let lines = other.lines.as_ref()?;
            if lines != own && self.same((own, lines)) {
                let before = self.before().zip(other.before());
                let after = self.after().zip(other.after());
                let same = |(one, other): &(Range<usize>, Range<usize>)| self.same((one, other));
                shared.push((before.take_while(same).count(), after.take_while(same).count()));
            }
        }
        let (lines_before, lines_after) =
            (self.before().collect::<Vec<_>>(), self.after().collect::<Vec<_>>());
        let mut blocks: Vec<(usize, usize)> = (0..=lines_before.len())
            .map(|before| {
                // Places with the same lines before must differ in the lines after.
                let after = shared.iter().filter(|(same, _)| *same >= before);
                (before, after.map(|(_, same)| same + 1).max().unwrap_or(0))
            })
            .filter(|(_, after)| *after <= lines_after.len())
            .collect();
        blocks.sort_by_key(|(before, after)| (before + after, *before));
        let tries = if self.file.len() > LARGE_FILE { 1 } else { TRIES };
        // Different lines may still share a beginning or an end, and a context could end there, so search for each
        // block before it counts.
        blocks.into_iter().take(tries).find_map(|(before, after)| {
            let start = before.checked_sub(1).map_or(own.start, |last| lines_before[last].start);
            let end = after.checked_sub(1).map_or(own.end, |last| lines_after[last].end);
            let context = &self.file[start..end];
            let alone = context.len() <= LARGE
                && !context.is_empty()
                && locate::exact(self.file, context, 0).is_some_and(|found| found.count == 1);
            std::str::from_utf8(context).ok().filter(|_| alone).map(str::to_owned)
        })
    }

    /// Ignore blanks at the edges, because a model may not copy them.
    fn same(&self, (one, other): (&Range<usize>, &Range<usize>)) -> bool {
        trim(&self.file[one.clone()]) == trim(&self.file[other.clone()])
    }
}
