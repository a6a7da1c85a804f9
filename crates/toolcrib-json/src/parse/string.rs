//! Parsing strings and their escapes.

use super::Parser;
use crate::error::ParseError;
use crate::tape::{Kind, Node};

const ONES: u64 = u64::MAX / 255;
const TOPS: u64 = ONES << 7;

/// The bytes, of eight in a word, that need a closer look: quotes, backslashes and control
/// characters have their top bit set. Only the lowest set bit is exact: borrows run upwards.
#[inline]
fn stops(word: u64) -> u64 {
    // Subtracting n borrows the top bit of a byte below 0x80 exactly if it was less than n.
    // Flipping this bit swaps quote and blank, and keeps control characters among themselves.
    let quote_or_control = (word ^ (ONES * 2)).wrapping_sub(ONES * 0x21);
    let backslash = (word ^ (ONES * u64::from(b'\\'))).wrapping_sub(ONES);
    (quote_or_control | backslash) & !word & TOPS
}

/// Where the string that starts at `start` ends, if nothing but plain text stands before its
/// quote. May not find the end of one within the last bytes of the text.
#[inline(always)]
#[expect(clippy::inline_always, reason = "most texts end within a word or two")]
fn end_of_plain(bytes: &[u8], start: usize) -> Option<usize> {
    let (_, mut rest) = bytes.split_at_checked(start)?;
    while let Some((chunk, behind)) = rest.split_first_chunk() {
        let word = u64::from_le_bytes(*chunk);
        let found = stops(word);
        if found != 0 {
            let bits = found.trailing_zeros() & !7;
            let end = bytes.len() - rest.len() + bits as usize / 8;
            let is_quote = (word >> bits) & 0xFF == u64::from(b'"');
            return is_quote.then_some(end);
        }
        rest = behind;
    }
    None
}

impl Parser<'_> {
    /// A string, standing on its quote.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for `value`")]
    pub(super) fn string(&mut self) -> Result<(), Box<ParseError>> {
        let start = self.at + 1;
        match end_of_plain(self.bytes, start) {
            Some(end) => {
                self.push(Node::new(Kind::String, start..end, 0));
                self.at = end + 1;
                Ok(())
            }
            None => self.odd_string(start),
        }
    }

    /// A string with escapes or with something wrong, or at the very end of the text.
    #[cold]
    fn odd_string(&mut self, start: usize) -> Result<(), Box<ParseError>> {
        self.at = start;
        let mut kind = Kind::String;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    kind = Kind::EscapedString;
                    self.escape()?;
                }
                Some(0..0x20) => {
                    return Err(self.error("a control character in a string must be escaped"));
                }
                Some(_) => self.skip_plain_text(),
                None => return Err(self.unexpected("the end of a string (`\"`)")),
            }
        }
        self.push(Node::new(kind, start..self.at, 0));
        self.at += 1;
        Ok(())
    }

    /// Skips a byte that needs no closer look, and others like it behind it.
    fn skip_plain_text(&mut self) {
        self.at += 1;
        while let Some(chunk) = self.bytes[self.at..].first_chunk() {
            let found = stops(u64::from_le_bytes(*chunk));
            if found != 0 {
                self.at += found.trailing_zeros() as usize / 8;
                return;
            }
            self.at += 8;
        }
    }

    /// Checks one escape, standing on its backslash.
    fn escape(&mut self) -> Result<(), Box<ParseError>> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => {
                self.at += 1;
                self.unicode_escape()
            }
            _ => Err(self.unexpected("an escape (one of `\" \\ / b f n r t u`)")),
        }
    }

    fn unicode_escape(&mut self) -> Result<(), Box<ParseError>> {
        let half = |parser: &Self| Err(parser.error("half of a surrogate pair stands alone"));
        match self.hex4()? {
            0xD800..0xDC00 => {
                if !self.bytes[self.at..].starts_with(b"\\u") {
                    return half(self);
                }
                self.at += 2;
                if (0xDC00..0xE000).contains(&self.hex4()?) { Ok(()) } else { half(self) }
            }
            0xDC00..0xE000 => half(self),
            _ => Ok(()),
        }
    }

    fn hex4(&mut self) -> Result<u32, Box<ParseError>> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.unexpected("four hexadecimal digits"));
            };
            unit = unit * 16 + digit;
            self.at += 1;
        }
        Ok(unit)
    }
}

/// What a string whose escapes the parser has checked stands for.
pub(crate) fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((plain, escape)) = rest.split_once('\\') {
        out.push_str(plain);
        let mut chars = escape.chars();
        out.push(match chars.next() {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => unescape_unit(&mut chars),
            Some(itself) => itself,
            None => char::REPLACEMENT_CHARACTER,
        });
        rest = chars.as_str();
    }
    out.push_str(rest);
    out
}

/// Reads on after `\u`. The parser has checked that this makes a character.
fn unescape_unit(chars: &mut std::str::Chars<'_>) -> char {
    let first = hex_unit(chars);
    let code = if (0xD800..0xDC00).contains(&first) {
        // Over the `\u` of the second half.
        let second = chars.nth(1).map_or(0, |_| hex_unit(chars));
        0x1_0000 + ((first - 0xD800) << 10) + (second & 0x3FF)
    } else {
        first
    };
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn hex_unit(chars: &mut std::str::Chars<'_>) -> u32 {
    let digits = chars.by_ref().take(4).filter_map(|digit| digit.to_digit(16));
    digits.fold(0, |unit, digit| unit * 16 + digit)
}
