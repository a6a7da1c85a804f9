//! Reading a text through the escapes of JSON, so that a secret is found whatever escapes spell it.
//!
//! JSON can spell each character in several ways: `<` is also `\u003c` and `\u003C`, `/` is also `\/`, and every letter
//! has a number. JSON inside a JSON string is escaped once more. Instead of listing spellings, a text is read without
//! its escapes, that reading is read again, and so on. Each reading is searched, and what is found is mapped back to the
//! text. The work is linear in the text, and a text without backslashes is only searched for one.

use std::ops::Range;

use memchr::memchr;

/// How many levels of escapes are read: JSON, JSON in a string of JSON, and two more.
pub(super) const DEPTHS: usize = 4;

/// A text, and what it says without one, two, and more levels of escapes.
pub(super) struct Readings<'t> {
    text: &'t [u8],
    unescaped: Vec<Unescaped>,
}

impl<'t> Readings<'t> {
    /// Reads a text. If it is not its end, an escape that may be cut off at the end is not read.
    pub(super) fn of(text: &'t [u8], is_end: bool) -> Self {
        let mut unescaped: Vec<Unescaped> = Vec::new();
        while unescaped.len() < DEPTHS {
            let last = unescaped.last().map_or(text, |last| &last.text);
            match Unescaped::of(last, is_end) {
                Some(next) => unescaped.push(next),
                None => break,
            }
        }
        Self { text, unescaped }
    }

    /// The text and its readings, each with its number of levels.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, &[u8])> {
        std::iter::once(self.text).chain(self.unescaped.iter().map(|one| &*one.text)).enumerate()
    }

    /// The range of the text that becomes this range when it is unescaped `depth` times.
    pub(super) fn range_in_text(&self, depth: usize, range: &Range<usize>) -> Range<usize> {
        let below = self.unescaped[..depth].iter().rev();
        below.fold(range.clone(), |range, reading| reading.source_range(&range))
    }

    /// The position in the text that becomes this position when it is unescaped `depth` times.
    pub(super) fn position_in_text(&self, depth: usize, position: usize) -> usize {
        let below = self.unescaped[..depth].iter().rev();
        below.fold(position, |position, reading| reading.source_position(position))
    }

    /// The last position, not after this one, where no escape of any level is cut. Whatever follows it is read in the
    /// same way without what stands before it.
    pub(super) fn boundary(&self, position: usize) -> usize {
        let read = self.unescaped.iter().fold(position, |at, reading| reading.read_position(at));
        self.position_in_text(self.unescaped.len(), read)
    }
}

/// A text without one level of escapes.
struct Unescaped {
    text: Vec<u8>,
    /// The escapes that were read, in order.
    escapes: Vec<Escape>,
}

/// An escape, and the character that it spells.
struct Escape {
    /// Where the character stands in what was read.
    read: usize,
    /// Where the escape stands in its source.
    source: usize,
    read_len: u8,
    source_len: u8,
}

impl Escape {
    fn read_end(&self) -> usize {
        self.read + usize::from(self.read_len)
    }

    fn source_end(&self) -> usize {
        self.source + usize::from(self.source_len)
    }
}

impl Unescaped {
    /// `None` if nothing changes by reading it.
    fn of(source: &[u8], is_end: bool) -> Option<Self> {
        let mut backslash = memchr(b'\\', source)?;
        let mut read = Self { text: Vec::with_capacity(source.len()), escapes: Vec::new() };
        let mut copied = 0;
        let end = loop {
            read.text.extend_from_slice(&source[copied..backslash]);
            copied = match Spelling::at(&source[backslash..], is_end) {
                Spelling::Escape(character, len) => {
                    read.push(character, backslash, len);
                    backslash + usize::from(len)
                }
                Spelling::Plain => {
                    read.text.push(b'\\');
                    backslash + 1
                }
                Spelling::Unfinished => break backslash,
            };
            let Some(next) = memchr(b'\\', &source[copied..]) else {
                read.text.extend_from_slice(&source[copied..]);
                break source.len();
            };
            backslash = copied + next;
        };
        (!read.escapes.is_empty() || end < source.len()).then_some(read)
    }

    fn push(&mut self, character: char, source: usize, source_len: u8) {
        let mut buffer = [0; 4];
        let spelt = character.encode_utf8(&mut buffer).as_bytes();
        // A character has at most four bytes.
        let read_len = u8::try_from(spelt.len()).unwrap_or(4);
        self.escapes.push(Escape { read: self.text.len(), source, read_len, source_len });
        self.text.extend_from_slice(spelt);
    }

    fn source_range(&self, range: &Range<usize>) -> Range<usize> {
        let start = self.source_position(range.start);
        let Some(last) = range.end.checked_sub(1) else { return start..start };
        let end = match self.before(|escape| escape.read <= last) {
            Some(escape) if last < escape.read_end() => escape.source_end(),
            _ => self.source_position(last) + 1,
        };
        start..end
    }

    /// Where the character at this position begins in the source.
    fn source_position(&self, position: usize) -> usize {
        match self.before(|escape| escape.read <= position) {
            None => position,
            Some(escape) if position < escape.read_end() => escape.source,
            Some(escape) => escape.source_end() + (position - escape.read_end()),
        }
    }

    /// Where the character begins that contains this position of the source.
    fn read_position(&self, position: usize) -> usize {
        let read = match self.before(|escape| escape.source <= position) {
            None => position,
            Some(escape) if position < escape.source_end() => escape.read,
            Some(escape) => escape.read_end() + (position - escape.source_end()),
        };
        read.min(self.text.len())
    }

    /// The last escape that fulfils a condition that the first ones fulfil.
    fn before(&self, condition: impl Fn(&Escape) -> bool) -> Option<&Escape> {
        self.escapes[..self.escapes.partition_point(condition)].last()
    }
}

/// What a backslash begins.
enum Spelling {
    /// An escape of so many bytes.
    Escape(char, u8),
    /// No escape.
    Plain,
    /// The text ends before it can be told.
    Unfinished,
}

impl Spelling {
    /// What the backslash at the beginning of this text begins.
    fn at(text: &[u8], is_end: bool) -> Self {
        let character = match text.get(1) {
            None if is_end => return Self::Plain,
            None => return Self::Unfinished,
            Some(b'u') => return Self::number(text, is_end),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(other @ (b'"' | b'\\' | b'/')) => char::from(*other),
            Some(_) => return Self::Plain,
        };
        Self::Escape(character, 2)
    }

    /// The same for `\u`: a UTF-16 unit, or two that make one character.
    fn number(text: &[u8], is_end: bool) -> Self {
        let unit = match Unit::at(text) {
            Unit::Number(unit) => unit,
            Unit::Unfinished if !is_end => return Self::Unfinished,
            Unit::Unfinished | Unit::None => return Self::Plain,
        };
        if let Some(character) = char::from_u32(unit) {
            return Self::Escape(character, 6);
        }
        let lone = Self::Escape(char::REPLACEMENT_CHARACTER, 6);
        if unit >= 0xdc00 {
            return lone;
        }
        match Unit::at(&text[6..]) {
            Unit::Number(low @ 0xdc00..=0xdfff) => {
                let character = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                char::from_u32(character).map_or(lone, |character| Self::Escape(character, 12))
            }
            Unit::Unfinished if !is_end => Self::Unfinished,
            _ => lone,
        }
    }
}

/// What may be `\u` and four hexadecimal digits.
enum Unit {
    Number(u32),
    Unfinished,
    None,
}

impl Unit {
    fn at(text: &[u8]) -> Self {
        let mut number = 0;
        for index in 0..6 {
            let Some(byte) = text.get(index) else { return Self::Unfinished };
            match (index, char::from(*byte).to_digit(16)) {
                (0, _) if *byte == b'\\' => {}
                (1, _) if *byte == b'u' => {}
                (2.., Some(digit)) => number = number * 16 + digit,
                _ => return Self::None,
            }
        }
        Self::Number(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The readings of a whole text.
    fn readings(text: &str) -> Vec<String> {
        let readings = Readings::of(text.as_bytes(), true);
        readings.all().map(|(_, text)| String::from_utf8_lossy(text).into_owned()).collect()
    }

    #[test]
    fn each_level_of_escapes_is_a_reading_of_its_own() {
        assert_eq!(readings("plain"), ["plain"]);
        assert_eq!(readings(r"\x \q"), [r"\x \q"], "no escapes of JSON");
        assert_eq!(readings(r#"\"\/\u003c\u003C\n"#), [r#"\"\/\u003c\u003C\n"#, "\"/<<\n"]);
        assert_eq!(readings(r"\\u003c"), [r"\\u003c", r"\u003c", "<"]);
        assert_eq!(
            readings(r"\ud83d\ude00\ud83d-\ude00"),
            [r"\ud83d\ude00\ud83d-\ude00", "😀\u{fffd}-\u{fffd}"]
        );
        assert_eq!(readings(r"\ud83"), [r"\ud83"]);
        assert_eq!(readings(&"\\".repeat(64)).len(), DEPTHS + 1);
    }

    #[test]
    fn ranges_and_boundaries_are_those_of_whole_escapes() {
        let text = r"a\\u00e9b\\n".as_bytes();
        let readings = Readings::of(text, true);
        let twice = readings.all().nth(2).map(|(_, text)| text.to_owned());
        assert_eq!(twice.unwrap(), "aéb\n".as_bytes());
        assert_eq!(readings.range_in_text(2, &(1..3)), 1..8);
        assert_eq!(readings.range_in_text(2, &(0..5)), 0..12);
        assert_eq!(readings.range_in_text(1, &(1..7)), 1..8);
        for position in 1..8 {
            assert_eq!(readings.boundary(position), 1);
        }
        assert_eq!(
            (readings.boundary(8), readings.boundary(11), readings.boundary(12)),
            (8, 9, 12)
        );
    }

    #[test]
    fn an_escape_that_is_cut_off_is_read_when_it_is_whole() {
        for cut in [r"\", r"\u", r"\u0", r"\u003", r"\ud83d", r"\ud83d\", r"\ud83d\ude0"] {
            let text = format!("ab{cut}");
            let readings = Readings::of(text.as_bytes(), false);
            let read: Vec<_> = readings.all().map(|(_, text)| text).collect();
            assert_eq!(read, [text.as_bytes(), b"ab"], "{cut}");
            assert_eq!(readings.position_in_text(1, 2), 2);
            assert_eq!(readings.boundary(text.len()), 2);
        }
    }
}
