//! JSON text → [`Tape`], stricter than most parsers: a text that two readers could understand
//! differently is refused.
//!
//! Refused beyond the grammar: duplicate keys, more than [`MAX_DEPTH`] levels, lone surrogates, and
//! numbers outside the range of a double.

use std::collections::HashSet;
use std::fmt;

use super::tape::{Kind, Node, Tape};

/// How many arrays and objects may be nested.
pub const MAX_DEPTH: usize = 128;

/// The largest whole number up to which every whole number is a double: 2^53.
const EXACT_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Up to this many keys are compared pair by pair; beyond it a set is cheaper.
const PAIRWISE_KEYS: usize = 16;

/// Why a text is not JSON that means one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// What is wrong, as a clause.
    pub problem: String,
    /// Where, as a byte offset into the text.
    pub offset: usize,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.problem, self.offset)
    }
}

impl std::error::Error for ParseError {}

/// Parses a text; one value and nothing behind it.
pub fn parse(text: &str) -> Result<Tape<'_>, ParseError> {
    if u32::try_from(text.len()).is_err() {
        return Err(ParseError { problem: "the text is longer than 4 GiB".to_owned(), offset: 0 });
    }
    // A guess that makes one allocation enough for ordinary arguments.
    let mut parser = Parser {
        text,
        bytes: text.as_bytes(),
        at: 0,
        nodes: Vec::with_capacity(8 + text.len() / 10),
        has_integral_float: false,
    };
    parser.skip_blanks();
    parser.value(0)?;
    parser.skip_blanks();
    if parser.at < parser.bytes.len() {
        return Err(parser.error("text follows the JSON value"));
    }
    Ok(Tape::new(text, parser.nodes, parser.has_integral_float))
}

struct Parser<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    nodes: Vec<Node>,
    has_integral_float: bool,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn error(&self, problem: impl Into<String>) -> ParseError {
        ParseError { problem: problem.into(), offset: self.at.min(self.bytes.len()) }
    }

    fn unexpected(&self, expected: &str) -> ParseError {
        match self.text[self.at.min(self.text.len())..].chars().next() {
            Some(found) => {
                self.error(format!("expected {expected}, found `{}`", found.escape_debug()))
            }
            None => self.error(format!("the text ends where {expected} should stand")),
        }
    }

    /// Positions fit: `parse` has refused longer texts.
    #[expect(clippy::cast_possible_truncation, reason = "texts over 4 GiB are refused at the door")]
    fn push(&mut self, kind: Kind, start: usize, end: usize) -> usize {
        let index = self.nodes.len();
        self.nodes.push(Node {
            kind,
            start: start as u32,
            end: end as u32,
            next: index as u32 + 1,
            len: 0,
        });
        index
    }

    #[expect(clippy::cast_possible_truncation, reason = "texts over 4 GiB are refused at the door")]
    fn close(&mut self, index: usize, len: usize) {
        let next = self.nodes.len() as u32;
        let end = self.at as u32;
        let node = &mut self.nodes[index];
        node.end = end;
        node.next = next;
        node.len = len as u32;
    }

    fn value(&mut self, depth: usize) -> Result<(), ParseError> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Kind::True),
            Some(b'f') => self.word("false", Kind::False),
            Some(b'n') => self.word("null", Kind::Null),
            _ => Err(self.unexpected("a JSON value")),
        }
    }

    fn word(&mut self, word: &str, kind: Kind) -> Result<(), ParseError> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.unexpected("a JSON value"));
        }
        self.push(kind, self.at, self.at + word.len());
        self.at += word.len();
        Ok(())
    }

    fn deeper(&self, depth: usize) -> Result<usize, ParseError> {
        if depth == MAX_DEPTH {
            return Err(self.error(format!("more than {MAX_DEPTH} levels of nesting")));
        }
        Ok(depth + 1)
    }

    fn array(&mut self, depth: usize) -> Result<(), ParseError> {
        let depth = self.deeper(depth)?;
        let index = self.push(Kind::Array, self.at, self.at);
        self.at += 1;
        self.skip_blanks();
        let mut len = 0;
        if self.peek() == Some(b']') {
            self.at += 1;
        } else {
            loop {
                self.value(depth)?;
                len += 1;
                self.skip_blanks();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b']') => break self.at += 1,
                    _ => return Err(self.unexpected("`,` or `]`")),
                }
                self.skip_blanks();
            }
        }
        self.close(index, len);
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<(), ParseError> {
        let depth = self.deeper(depth)?;
        let index = self.push(Kind::Object, self.at, self.at);
        self.at += 1;
        self.skip_blanks();
        let mut len = 0;
        if self.peek() == Some(b'}') {
            self.at += 1;
        } else {
            loop {
                if self.peek() != Some(b'"') {
                    return Err(self.unexpected("a key in double quotes"));
                }
                self.string()?;
                self.skip_blanks();
                if self.peek() != Some(b':') {
                    return Err(self.unexpected("`:`"));
                }
                self.at += 1;
                self.skip_blanks();
                self.value(depth)?;
                len += 1;
                self.skip_blanks();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b'}') => break self.at += 1,
                    _ => return Err(self.unexpected("`,` or `}`")),
                }
                self.skip_blanks();
            }
        }
        self.close(index, len);
        self.refuse_duplicate_keys(index, len)
    }

    fn string(&mut self) -> Result<(), ParseError> {
        self.at += 1;
        let start = self.at;
        let mut kind = Kind::String;
        loop {
            self.skip_plain_text();
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    kind = Kind::EscapedString;
                    self.escape()?;
                }
                Some(0..0x20) => {
                    return Err(self.error("a control character in a string must be escaped"));
                }
                Some(_) => self.at += 1,
                None => return Err(self.unexpected("the end of a string (`\"`)")),
            }
        }
        self.push(kind, start, self.at);
        self.at += 1;
        Ok(())
    }

    /// Skips, eight bytes at a time, what needs no closer look: stops at the next quote, backslash
    /// or control character, or within the last seven bytes of the text.
    fn skip_plain_text(&mut self) {
        const ONES: u64 = u64::MAX / 255;
        const TOPS: u64 = ONES << 7;
        // Sets the top bit of the first byte that is 0 (and perhaps of later ones).
        let zeros = |word: u64| word.wrapping_sub(ONES) & !word & TOPS;
        while let Some(&chunk) = self.bytes[self.at..].first_chunk::<8>() {
            let word = u64::from_le_bytes(chunk);
            let quote = zeros(word ^ (ONES * u64::from(b'"')));
            let backslash = zeros(word ^ (ONES * u64::from(b'\\')));
            let control = word.wrapping_sub(ONES * 0x20) & !word & TOPS;
            let stops = quote | backslash | control;
            if stops != 0 {
                // The lowest bit is exact: borrows only run upwards.
                self.at += stops.trailing_zeros() as usize / 8;
                return;
            }
            self.at += 8;
        }
    }

    /// Checks one escape, standing on its backslash.
    fn escape(&mut self) -> Result<(), ParseError> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => {
                self.at += 1;
                let unit = self.hex4()?;
                match unit {
                    0xD800..0xDC00 => {
                        let low = if self.bytes[self.at..].starts_with(b"\\u") {
                            self.at += 2;
                            self.hex4()?
                        } else {
                            0
                        };
                        if (0xDC00..0xE000).contains(&low) {
                            Ok(())
                        } else {
                            Err(self.error("half of a surrogate pair stands alone"))
                        }
                    }
                    0xDC00..0xE000 => Err(self.error("half of a surrogate pair stands alone")),
                    _ => Ok(()),
                }
            }
            _ => Err(self.unexpected("an escape (one of `\" \\ / b f n r t u`)")),
        }
    }

    fn hex4(&mut self) -> Result<u32, ParseError> {
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

    fn digits(&mut self) -> Result<(), ParseError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { Err(self.unexpected("a digit")) } else { Ok(()) }
    }

    fn number(&mut self) -> Result<(), ParseError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
            if let Some(b'0'..=b'9') = self.peek() {
                return Err(self.error("a number cannot begin with 0"));
            }
        } else {
            self.digits()?;
        }
        let whole_end = self.at;
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        let kind = self.number_kind(start, whole_end)?;
        self.push(kind, start, self.at);
        Ok(())
    }

    fn number_kind(&mut self, start: usize, whole_end: usize) -> Result<Kind, ParseError> {
        let is_integer = whole_end == self.at;
        // Nineteen digits and a sign always fit a double's range: no need to look closer.
        if is_integer && self.at - start <= 20 {
            return Ok(Kind::Integer);
        }
        let value: f64 = self.text[start..self.at].parse().unwrap_or(f64::INFINITY);
        if !value.is_finite() {
            self.at = start;
            return Err(self.error("the number is too large"));
        }
        if is_integer {
            Ok(Kind::Integer)
        } else if value.fract() == 0.0 && value.abs() <= EXACT_WHOLE {
            self.has_integral_float = true;
            Ok(Kind::IntegralFloat)
        } else {
            Ok(Kind::Float)
        }
    }

    fn refuse_duplicate_keys(&self, object: usize, len: usize) -> Result<(), ParseError> {
        if len < 2 {
            return Ok(());
        }
        let keys = Keys { nodes: &self.nodes, next: object + 1, remaining: len };
        if len <= PAIRWISE_KEYS {
            let mut rest = keys;
            while let Some(first) = rest.next() {
                if let Some(second) = rest.clone().find(|second| self.same_key(*first, **second)) {
                    return Err(self.duplicate(*second));
                }
            }
            return Ok(());
        }
        let mut seen = HashSet::with_capacity(len);
        for key in keys {
            if !seen.insert(self.key(*key)) {
                return Err(self.duplicate(*key));
            }
        }
        Ok(())
    }

    fn raw_key(&self, node: Node) -> &str {
        &self.text[node.start as usize..node.end as usize]
    }

    fn key(&self, node: Node) -> std::borrow::Cow<'_, str> {
        if node.kind == Kind::String {
            return self.raw_key(node).into();
        }
        let quoted = &self.text[node.start as usize - 1..=node.end as usize];
        serde_json::from_str::<String>(quoted).unwrap_or_default().into()
    }

    fn same_key(&self, first: Node, second: Node) -> bool {
        if first.kind == Kind::String && second.kind == Kind::String {
            let raw = |node: Node| &self.bytes[node.start as usize..node.end as usize];
            raw(first) == raw(second)
        } else {
            self.key(first) == self.key(second)
        }
    }

    fn duplicate(&self, key: Node) -> ParseError {
        ParseError {
            problem: format!("the key `{}` is given twice", self.key(key).escape_debug()),
            offset: key.start as usize,
        }
    }
}

/// The key nodes of an object, in order.
#[derive(Clone)]
struct Keys<'a> {
    nodes: &'a [Node],
    next: usize,
    remaining: usize,
}

impl<'a> Iterator for Keys<'a> {
    type Item = &'a Node;

    fn next(&mut self) -> Option<&'a Node> {
        self.remaining = self.remaining.checked_sub(1)?;
        let key = self.nodes.get(self.next)?;
        // A key is one node; the value after it knows where the next key is.
        self.next = self.nodes.get(self.next + 1)?.next as usize;
        Some(key)
    }
}
