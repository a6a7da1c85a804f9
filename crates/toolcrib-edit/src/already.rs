//! Whether an edit that finds no source was made before.

use super::change::LineRange;
use super::lines::LineCounter;
use super::locate;
use super::pattern::Pattern;

/// Letters and digits a target must have to say that it was this edit that wrote it.
const TELLING: usize = 6;

/// Where the target stands in the file, if that is one place.
pub(super) fn find(file: &[u8], source: &str, target: &str) -> Option<LineRange> {
    let telling = target.chars().filter(|char| char.is_alphanumeric()).take(TELLING).count();
    // What takes parts of the source away leaves what may have been there all along.
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
