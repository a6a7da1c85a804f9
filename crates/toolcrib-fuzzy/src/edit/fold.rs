//! The fifth level's eyes: one way to write what can be written in several.
//!
//! Dashes become `-`, quotes `'` and `"`, spaces of every kind one blank, runs of blanks one blank,
//! characters of no width nothing, decomposed letters their composed form. Letters that only look
//! alike stay apart, and so do upper and lower case.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// The line as the fifth level reads it, without blanks at its edges.
pub(super) fn fold(line: &str) -> String {
    if line.chars().all(is_settled) {
        return Folded::new(line.chars()).collect();
    }
    let mapped: String = line.chars().filter(|char| !is_widthless(*char)).collect();
    Folded::new(mapped.nfc()).collect()
}

/// Whether the line folds to `key`. Most lines are told apart by their first characters.
pub(super) fn folds_to(line: &str, key: &str) -> bool {
    let mut folded = Folded::new(line.chars());
    let mut wanted = key.chars();
    loop {
        match (folded.next(), wanted.next()) {
            (None, None) => return true,
            (one, other) if one == other => {}
            _ => break,
        }
    }
    // Only what is not yet composed can differ now and be equal composed, and an ASCII character
    // that none but another follows is composed.
    let read = line.len() - folded.chars.as_str().len();
    let is_settled_so_far = line.as_bytes()[..line.len().min(read + 1)].is_ascii();
    !is_settled_so_far && !line.chars().all(is_settled) && fold(line) == key
}

/// A hash of what the line folds to.
pub(super) fn fold_hash(line: &str, hashing: &FixedState) -> u64 {
    let mut hasher = hashing.build_hasher();
    if line.is_ascii() {
        Folded::new(line.chars()).for_each(|char| hasher.write_u32(u32::from(char)));
    } else {
        fold(line).chars().for_each(|char| hasher.write_u32(u32::from(char)));
    }
    hasher.finish()
}

/// Whether the line folds to nothing.
pub(super) fn is_blank(line: &str) -> bool {
    Folded::new(line.chars()).next().is_none()
}

/// How many bytes of the line are blank at its start, characters of no width included.
pub(super) fn indent_len(line: &str) -> usize {
    line.find(|char| !(is_space(char) || is_widthless(char))).unwrap_or(line.len())
}

/// Characters mapped one by one, runs of blanks joined, edges trimmed.
struct Folded<I> {
    chars: I,
    /// A blank was seen since the last character that was handed out.
    blank: bool,
    /// Something was handed out.
    begun: bool,
    held: Option<char>,
}

impl<I: Iterator<Item = char>> Folded<I> {
    fn new(chars: I) -> Self {
        Self { chars, blank: false, begun: false, held: None }
    }
}

impl<I: Iterator<Item = char>> Iterator for Folded<I> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        loop {
            let char = self.chars.next()?;
            if is_widthless(char) {
                continue;
            }
            if is_space(char) {
                self.blank = true;
                continue;
            }
            let char = plain(char);
            if std::mem::take(&mut self.blank) && self.begun {
                self.held = Some(char);
                return Some(' ');
            }
            self.begun = true;
            return Some(char);
        }
    }
}

/// Blanks of every kind, line separators of Unicode included: within a line they are spaces.
fn is_space(char: char) -> bool {
    match char {
        ' ' | '\t' | '\u{b}' | '\u{c}' => true,
        _ if char.is_ascii() => false,
        _ => matches!(
            char,
            '\u{85}' | '\u{a0}' | '\u{1680}' | '\u{2000}'
                ..='\u{200a}'
                    | '\u{2028}'
                    | '\u{2029}'
                    | '\u{202f}'
                    | '\u{205f}'
                    | '\u{2800}'
                    | '\u{3000}'
        ),
    }
}

/// Characters that show nothing: joiners, marks of direction, soft hyphens, stray byte order marks.
pub(super) fn is_widthless(char: char) -> bool {
    matches!(
        char,
        '\u{ad}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2064}'
            | '\u{2066}'..='\u{2069}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
    )
}

fn plain(char: char) -> char {
    match char {
        _ if char.is_ascii() => char,
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}' => '-',
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{ff07}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ff02}' => '"',
        _ => char,
    }
}

/// Characters that composing neither changes nor joins with what comes before: a quick answer for
/// the commonest, a sure one for the others.
fn is_settled(char: char) -> bool {
    match char {
        '\0'..='\u{2ff}'
        | '\u{400}'..='\u{482}'
        | '\u{2010}'..='\u{2027}'
        | '\u{3400}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' => true,
        _ => {
            unicode_normalization::char::canonical_combining_class(char) == 0
                && is_nfc_quick(std::iter::once(char)) == IsNormalized::Yes
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_write_the_same_fold_to_one() {
        for (line, folded) in [
            ("  a \t b  ", "a b"),
            ("\u{201c}a\u{201d} \u{2018}b\u{2019}", "\"a\" 'b'"),
            ("a\u{2013}b\u{2014}c\u{2212}d", "a-b-c-d"),
            ("a\u{a0}b\u{3000}c\u{2028}d", "a b c d"),
            ("a\u{200b}b\u{feff}c\u{ad}d", "abcd"),
            ("e\u{301}", "\u{e9}"),
            ("e\u{200b}\u{301}", "\u{e9}"),
            ("\u{1112}\u{1161}\u{11ab}", "\u{d55c}"),
            ("\u{212b}", "\u{c5}"),
            ("\u{200b} ", ""),
        ] {
            assert_eq!(fold(line), folded, "{line:?}");
            assert!(folds_to(line, folded), "{line:?}");
            assert_eq!(is_blank(line), folded.is_empty());
        }
    }

    #[test]
    fn what_only_looks_alike_stays_apart() {
        for (one, other) in [("a", "\u{430}"), ("A", "a"), ("...", "\u{2026}"), ("`", "'")] {
            assert_ne!(fold(one), fold(other));
        }
    }

    #[test]
    fn every_character_called_settled_is() {
        // A character that composing changes, or joins with the one before it.
        for char in '\0'..=char::MAX {
            if is_settled(char) {
                assert!(std::iter::once(char).nfc().eq(std::iter::once(char)), "{char:?}");
                let pair = ['e', char];
                assert!(pair.into_iter().nfc().eq(pair), "{char:?}");
            }
        }
    }
}
