//! Folding for the fifth level: gives different spellings of the same text one form.
//!
//! Dashes become `-`, quotes `'` and `"`, an ellipsis three points, all kinds of spaces one blank, runs of blanks one
//! blank. Characters of no width are removed, and decomposed letters are composed. Lookalike letters stay different, and so do upper and lower
//! case.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::lines;

/// The folded line, without blanks at its edges.
pub(super) fn fold(line: &str) -> String {
    let mut folded = String::with_capacity(line.len());
    if is_all_settled(line) {
        folded.extend(Folded::new(line.chars()));
    } else {
        let mapped: String = line.chars().filter(|char| !is_widthless(*char)).collect();
        folded.extend(Folded::new(mapped.nfc()));
    }
    folded
}

fn is_all_settled(line: &str) -> bool {
    line.is_ascii() || line.chars().all(is_settled)
}

/// Whether the line folds to `key`. The first characters usually decide, so a folded line is rarely built.
pub(super) fn folds_to(line: &str, key: &str) -> bool {
    compare(line, key.as_bytes()).unwrap_or_else(|| fold(line) == key)
}

/// Whether the line folds to `key`; `None` if that depends on composing characters.
fn compare(line: &str, key: &[u8]) -> Option<bool> {
    let bytes = line.as_bytes();
    let (mut at, mut read) = (0, 0);
    // Whether a blank was seen since the last visible character.
    let mut blank = false;
    loop {
        let blanks = lines::indent(&bytes[at..]).len();
        (at, blank) = (at + blanks, blank || blanks > 0);
        let Some(byte) = bytes.get(at) else { return Some(read == key.len()) };
        let char = if byte.is_ascii() { char::from(*byte) } else { line[at..].chars().next()? };
        let (plain, times) = match shown(char) {
            FoldedChar::As(plain) => (plain, 1),
            FoldedChar::Ellipsis => ('.', ELLIPSIS.len()),
            FoldedChar::Nothing | FoldedChar::Blank => {
                (at, blank) = (at + char.len_utf8(), blank || is_space(char));
                continue;
            }
        };
        // A character that is shown as another one needs no composing.
        if plain == char && !is_settled(char) {
            return None;
        }
        if std::mem::take(&mut blank) && read > 0 {
            if key.get(read) != Some(&b' ') {
                return Some(false);
            }
            read += 1;
        }
        at += char.len_utf8();
        for _ in 0..times {
            if !begins_with(&key[read..], plain) {
                return (!is_composed(line, at)).then_some(false);
            }
            read += plain.len_utf8();
        }
        let run = bytes[at..].iter().zip(&key[read..]);
        let run = run.take_while(|(one, other)| one == other && is_word(**one)).count();
        (at, read) = (at + run, read + run);
    }
}

fn begins_with(key: &[u8], char: char) -> bool {
    match u8::try_from(char) {
        Ok(byte) if byte.is_ascii() => key.first() == Some(&byte),
        _ => key.starts_with(char.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// Whether a byte is a character that folding does not change, and not blank.
fn is_word(byte: u8) -> bool {
    byte.is_ascii() && !lines::is_blank(byte)
}

/// Whether the character at `at` may be composed with the one before it.
fn is_composed(line: &str, at: usize) -> bool {
    line.as_bytes().get(at).is_some_and(|byte| !byte.is_ascii())
        && line[at..]
            .chars()
            .find(|char| !is_widthless(*char))
            .is_some_and(|char| !is_settled(char))
}

/// A hash of the folded line.
pub(super) fn fold_hash(line: &str, hashing: &FixedState) -> u64 {
    let mut hasher = hashing.build_hasher();
    let write = |char| hasher.write_u32(u32::from(char));
    if is_all_settled(line) {
        Folded::new(line.chars()).for_each(write);
    } else {
        fold(line).chars().for_each(write);
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

/// The length of the line without the blanks at its end, characters of no width included.
pub(super) fn shown_len(line: &str) -> usize {
    line.trim_end_matches(|char| is_space(char) || is_widthless(char)).len()
}

/// Characters mapped one by one, with runs of blanks joined and edges trimmed.
struct Folded<I> {
    chars: I,
    /// The points of an ellipsis that are to be returned.
    points: usize,
    /// A blank was seen since the last returned character.
    blank: bool,
    /// A character was returned.
    begun: bool,
    held: Option<char>,
}

impl<I: Iterator<Item = char>> Folded<I> {
    fn new(chars: I) -> Self {
        Self { chars, points: 0, blank: false, begun: false, held: None }
    }
}

impl<I: Iterator<Item = char>> Iterator for Folded<I> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        if self.points > 0 {
            self.points -= 1;
            return Some('.');
        }
        loop {
            let char = match shown(self.chars.next()?) {
                FoldedChar::Ellipsis => {
                    self.points = ELLIPSIS.len() - 1;
                    '.'
                }
                FoldedChar::Nothing => continue,
                FoldedChar::Blank => {
                    self.blank = true;
                    continue;
                }
                FoldedChar::As(char) => char,
            };
            if std::mem::take(&mut self.blank) && self.begun {
                self.held = Some(char);
                return Some(' ');
            }
            self.begun = true;
            return Some(char);
        }
    }
}

/// The points that an ellipsis stands for.
const ELLIPSIS: &str = "...";

/// How the fifth level reads a character.
#[derive(Clone, Copy)]
pub(super) enum FoldedChar {
    /// Joiners, direction marks, soft hyphens, stray byte order marks.
    Nothing,
    /// Blanks of every kind, including Unicode line separators: within a line they are spaces.
    Blank,
    /// Three points.
    Ellipsis,
    As(char),
}

#[expect(clippy::match_same_arms, reason = "in the order of the characters")]
pub(super) fn shown(char: char) -> FoldedChar {
    match char {
        '\t' | '\u{b}' | '\u{c}' | ' ' => FoldedChar::Blank,
        '\0'..='\x7f' => FoldedChar::As(char),
        '\u{85}' | '\u{a0}' => FoldedChar::Blank,
        '\u{ad}' => FoldedChar::Nothing,
        '\u{80}'..='\u{167f}' => FoldedChar::As(char),
        '\u{1680}' | '\u{2000}'..='\u{200a}' => FoldedChar::Blank,
        '\u{180e}' | '\u{200b}'..='\u{200f}' => FoldedChar::Nothing,
        '\u{2010}'..='\u{2015}' => FoldedChar::As('-'),
        '\u{2018}'..='\u{201b}' | '\u{2032}' => FoldedChar::As('\''),
        '\u{201c}'..='\u{201f}' | '\u{2033}' => FoldedChar::As('"'),
        '\u{2026}' => FoldedChar::Ellipsis,
        '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{2800}' => FoldedChar::Blank,
        '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' => FoldedChar::Nothing,
        '\u{2066}'..='\u{2069}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' => FoldedChar::Nothing,
        '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}' => FoldedChar::As('-'),
        '\u{3000}' => FoldedChar::Blank,
        '\u{ff02}' => FoldedChar::As('"'),
        '\u{ff07}' => FoldedChar::As('\''),
        _ => FoldedChar::As(char),
    }
}

/// Whether a character is a blank.
fn is_space(char: char) -> bool {
    matches!(shown(char), FoldedChar::Blank)
}

/// Whether a character is invisible.
pub(super) fn is_widthless(char: char) -> bool {
    matches!(shown(char), FoldedChar::Nothing)
}

/// Characters that composing neither changes nor joins with the previous one: a fast check for common ones, an exact
/// one for the others.
pub(super) fn is_settled(char: char) -> bool {
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn comparing_agrees_with_folding(
            line in "[ae. \t“’–…éａ\u{301}\u{327}\u{200b}\u{a0}\u{2000}\u{1112}\u{1161}\u{11ab}]{0,7}",
            other in "[ae. \"…é\u{301}\u{327}]{0,4}",
        ) {
            let hashing = FixedState::default();
            for (line, other) in [(&line, &other), (&other, &line), (&line, &line)] {
                let key = fold(other);
                prop_assert_eq!(folds_to(line, &key), fold(line) == key, "{:?} {:?}", line, key);
                let hashes = [line, other].map(|line| fold_hash(line, &hashing));
                prop_assert_eq!(hashes[0] == hashes[1], fold(line) == key);
            }
            let cut: String = line.chars().take(2).collect();
            prop_assert_eq!(folds_to(&line, &fold(&cut)), fold(&line) == fold(&cut));
        }
    }

    #[test]
    fn replaced_characters_are_not_composed() {
        for char in '\0'..=char::MAX {
            match shown(char) {
                FoldedChar::As(plain) if plain != char => assert!(is_settled(char), "{char:?}"),
                FoldedChar::Ellipsis => assert!(is_settled(char), "{char:?}"),
                FoldedChar::As(_) | FoldedChar::Nothing => {}
                // A blank may be composed to another, but nothing is composed with it.
                FoldedChar::Blank => assert!(std::iter::once(char).nfc().all(is_space), "{char:?}"),
            }
        }
    }

    #[test]
    fn different_spellings_fold_to_one_form() {
        for (line, folded) in [
            ("  a \t b  ", "a b"),
            ("\u{201c}a\u{201d} \u{2018}b\u{2019}", "\"a\" 'b'"),
            ("a\u{2013}b\u{2014}c\u{2212}d", "a-b-c-d"),
            ("a\u{2026} b \u{2026}", "a... b ..."),
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
    fn lookalike_characters_stay_different() {
        for (one, other) in [("a", "\u{430}"), ("A", "a"), ("..", "\u{2026}"), ("`", "'")] {
            assert_ne!(fold(one), fold(other));
        }
    }

    #[test]
    fn every_settled_character_stays_unchanged() {
        // A character that composing changes or joins with the previous one.
        for char in '\0'..=char::MAX {
            if is_settled(char) {
                assert!(std::iter::once(char).nfc().eq(std::iter::once(char)), "{char:?}");
                let pair = ['e', char];
                assert!(pair.into_iter().nfc().eq(pair), "{char:?}");
            }
        }
    }
}
