//! A part of one line at the fifth level: the line is folded, and every folded character knows its bytes.

use memchr::memmem;
use unicode_normalization::UnicodeNormalization;

use super::bytes::shorter_matches;
use super::{Found, LevelMatches};
use crate::character_folding::{FoldedChar, is_settled, shown};
use crate::lines::{indent, pieces, trim};
use crate::pattern::Pattern;
use crate::tolerance::Level;

/// A folded character and the bytes that it stands for. Several may stand for the same bytes.
struct Unit {
    char: char,
    start: usize,
    end: usize,
    /// Whether a place may begin with it, and end with it.
    first: bool,
    last: bool,
}

/// Every place of a source without line ends. It may have one blank at each edge, which stands for blanks within a line;
/// a source that is indented is a whole line.
pub(super) fn search(body: &str, pattern: &Pattern<'_>, keep: usize) -> Option<Found> {
    let source = std::str::from_utf8(pattern.text).ok().filter(|_| pattern.pieces.len() == 1)?;
    let is_indented = |edge: &[u8]| !matches!(edge, b"" | b" ");
    let (text, shown) = (pattern.text, trim(pattern.text));
    if is_indented(indent(text)) || is_indented(&text[indent(text).len() + shown.len()..]) {
        return None;
    }
    let key: Vec<char> = units(source).iter().map(|unit| unit.char).collect();
    let shorter = shorter_matches(&key);
    let folded: String = key.iter().collect();
    // A line in ASCII has each word of the source as it is.
    let word = folded.split(' ').filter(|word| word.is_ascii()).max_by_key(|word| word.len());
    let finder = word.filter(|_| folded.is_ascii()).map(memmem::Finder::new);
    let mut tally = LevelMatches::new(keep);
    let mut at = 0;
    for piece in pieces(body.as_bytes()) {
        let start = at;
        at += piece.text.len() + piece.eol.len();
        let line = &body[start..start + piece.text.len()];
        let is_possible = || finder.as_ref().is_some_and(|it| it.find(piece.text).is_some());
        if key.is_empty() || (line.is_ascii() && !is_possible()) {
            continue;
        }
        let units = units(line);
        let shown = units.iter().rposition(|unit| unit.char != ' ').map_or(0, |last| last + 1);
        let hidden = units.iter().take_while(|unit| unit.char == ' ').count();
        let mut matched = 0;
        for (number, unit) in units.iter().enumerate().take(shown).skip(hidden) {
            while matched > 0 && (matched == key.len() || key[matched] != unit.char) {
                matched = shorter[matched];
            }
            matched += usize::from(key[matched] == unit.char);
            let begin = &units[(number + 1).saturating_sub(key.len())];
            if matched == key.len() && begin.first && unit.last {
                tally.add(start + begin.start..start + unit.end);
            }
        }
    }
    let found = tally.at(Level::Folded, 0..1)?;
    Some(Found { within_lines: true, ..found })
}

/// The folded characters of a line. Blanks at its edges are characters, too.
fn units(line: &str) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::with_capacity(line.len());
    let mut rest = line.char_indices().peekable();
    while let Some((start, char)) = rest.next() {
        let end = start + char.len_utf8();
        match shown(char) {
            FoldedChar::Nothing => {}
            FoldedChar::Blank => match units.last_mut() {
                Some(blank) if blank.char == ' ' => blank.end = end,
                _ => units.push(Unit { char: ' ', start, end, first: true, last: true }),
            },
            FoldedChar::Ellipsis => units.extend((0..3).map(|point| Unit {
                char: '.',
                start,
                end,
                first: point == 0,
                last: point == 2,
            })),
            FoldedChar::As(_) => {
                // A character and those that are composed with it.
                let mut whole = String::from(char);
                let mut end = end;
                while let Some(&(at, next)) = rest.peek() {
                    let is_nothing = matches!(shown(next), FoldedChar::Nothing);
                    if !is_nothing && is_settled(next) {
                        break;
                    }
                    if !is_nothing {
                        whole.push(next);
                        end = at + next.len_utf8();
                    }
                    rest.next();
                }
                let from = units.len();
                units.extend(whole.nfc().map(|char| {
                    let char = if let FoldedChar::As(plain) = shown(char) { plain } else { char };
                    Unit { char, start, end, first: false, last: false }
                }));
                if let Some(first) = units.get_mut(from) {
                    first.first = true;
                }
                if let Some(last) = units.last_mut() {
                    last.last = true;
                }
            }
        }
    }
    units
}
