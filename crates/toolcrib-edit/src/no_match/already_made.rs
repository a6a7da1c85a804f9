//! Detects an edit that was already made: its source is missing and its target is there.

use crate::change::LineRange;
use crate::lines::LineCounter;
use crate::locate;
use crate::pattern::Pattern;

/// The fewest letters and digits with which a target is specific enough.
const TELLING: usize = 6;

/// Where the target occurs in the file, if it occurs exactly once.
pub(super) fn find(file: &[u8], source: &str, target: &str) -> Option<LineRange> {
    let telling = target.chars().filter(|char| char.is_alphanumeric()).take(TELLING).count();
    // If the edit only removes parts of the source, the rest may have been there all along.
    if telling < TELLING || source.contains(target.trim()) {
        return None;
    }
    let pattern = Pattern::new(target.as_bytes())?;
    let found = locate::exact(file, target.as_bytes(), 1)
        .or_else(|| locate::verbatim(file, &pattern, 1))
        .filter(|found| found.count == 1)?;
    let (counter, place) = (LineCounter::new(file), &found.places[0]);
    let start = counter.mark(found.before, place.start);
    Some(LineRange::of(&counter, file, start, place.end))
}
