//! JSON text → [`Tape`], in one pass.

mod keys;
mod number;
mod string;

use std::borrow::Cow;

use crate::error::ParseError;
use crate::tape::{Kind, Node, Tape};

use keys::SeenKeys;
pub(crate) use string::unescape;

/// How many arrays and objects may be nested.
pub const MAX_DEPTH: usize = 128;

/// The longest text, in bytes: 256 MiB less one.
pub const MAX_TEXT: usize = (1 << 28) - 1;

/// Nodes to make room for at most before any is seen: 1 MiB of them.
const MAX_GUESS: usize = 1 << 16;

/// Parses a text; one value and nothing behind it.
///
/// ```
/// let error = toolcrib_json::parse(r#"{"a": 1, "\u0061": 2}"#).unwrap_err();
/// assert_eq!(error.to_string(), "the key `a` is given twice (at byte 10)");
/// ```
pub fn parse(text: &str) -> Result<Tape<'_>, ParseError> {
    let (nodes, has_integral_float) = scan(text).map_err(|error| *error)?;
    Ok(Tape::new(Cow::Borrowed(text), nodes, has_integral_float))
}

/// As [`parse`](parse()), and keeps the text without copying it. A text that is refused is handed
/// back.
///
/// ```
/// let (error, text) = toolcrib_json::parse_owned("[1".to_owned()).unwrap_err();
/// assert_eq!((error.offset, text.as_str()), (2, "[1"));
/// ```
pub fn parse_owned(text: String) -> Result<Tape<'static>, (ParseError, String)> {
    match scan(&text) {
        Ok((nodes, has_integral_float)) => {
            Ok(Tape::new(Cow::Owned(text), nodes, has_integral_float))
        }
        Err(error) => Err((*error, text)),
    }
}

/// The nodes, and whether some whole number is written as a float.
fn scan(text: &str) -> Result<(Vec<Node>, bool), Box<ParseError>> {
    if text.len() > MAX_TEXT {
        let problem = "the text is longer than 256 MiB".to_owned();
        return Err(Box::new(ParseError { problem, offset: 0 }));
    }
    // A guess that makes one allocation enough for ordinary arguments.
    let guess = (8 + text.len() / 8).min(MAX_GUESS);
    let mut parser = Parser {
        text,
        bytes: text.as_bytes(),
        at: 0,
        nodes: Vec::with_capacity(guess),
        has_integral_float: false,
    };
    parser.value(0)?;
    parser.token();
    if parser.at < parser.bytes.len() {
        return Err(parser.error("text follows the JSON value"));
    }
    let mut nodes = parser.nodes;
    if nodes.capacity() > MAX_GUESS.max(nodes.len() * 2) {
        // What looked like separators stood in strings.
        nodes.shrink_to_fit();
    }
    Ok((nodes, parser.has_integral_float))
}

/// How many bytes come before a value or a key. Those in strings are counted, too.
fn separators(bytes: &[u8]) -> usize {
    let is_separator = |byte: &u8| matches!(byte, b',' | b':' | b'[' | b'{');
    // A byte counts the separators of a short piece: this is done for many pieces' bytes at once.
    let short = |piece: &[u8]| piece.iter().map(|byte| u8::from(is_separator(byte))).sum::<u8>();
    bytes.chunks(128).map(|piece| usize::from(short(piece))).sum()
}

struct Parser<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    nodes: Vec<Node>,
    has_integral_float: bool,
}

impl Parser<'_> {
    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "one comparison and a store for each node")]
    fn push(&mut self, node: Node) {
        if self.nodes.len() == self.nodes.capacity() {
            self.make_room();
        }
        self.nodes.push(node);
    }

    /// Makes room for all nodes that the rest of the text can hold, at once. A list that doubled each
    /// time would be copied over and over, and the last copy of a large one alone costs as much as
    /// reading it.
    #[cold]
    fn make_room(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        // Every value that is still to come takes two bytes, but for the last one on each level.
        let most = rest.len() / 2 + MAX_DEPTH + 2;
        self.nodes.reserve_exact((separators(rest) + 2).min(most));
    }

    /// Goes to the next byte that is not blank, and looks at it; 0 at the end, which begins
    /// nothing and separates nothing.
    #[inline]
    fn token(&mut self) -> u8 {
        match self.peek() {
            Some(byte) if byte > b' ' => byte,
            _ => self.token_after_blanks(),
        }
    }

    /// Kept apart: between compact JSON's tokens there is nothing.
    #[inline(never)]
    fn token_after_blanks(&mut self) -> u8 {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
        self.peek().unwrap_or(0)
    }

    #[cold]
    #[expect(clippy::unnecessary_box_returns, reason = "errors of one word keep parsing short")]
    fn error(&self, problem: impl Into<String>) -> Box<ParseError> {
        let offset = self.at.min(self.bytes.len());
        Box::new(ParseError { problem: problem.into(), offset })
    }

    #[cold]
    #[expect(clippy::unnecessary_box_returns, reason = "errors of one word keep parsing short")]
    fn unexpected(&self, expected: &str) -> Box<ParseError> {
        match self.text[self.at.min(self.text.len())..].chars().next() {
            Some(found) => {
                self.error(format!("expected {expected}, found `{}`", found.escape_debug()))
            }
            None => self.error(format!("the text ends where {expected} should stand")),
        }
    }

    /// Strings are most of what there is, and read in place.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call for each string is a tenth of parsing")]
    fn value(&mut self, depth: usize) -> Result<(), Box<ParseError>> {
        match self.token() {
            b'"' => self.string(),
            token => self.other_value(token, depth),
        }
    }

    #[inline(never)]
    fn other_value(&mut self, token: u8, depth: usize) -> Result<(), Box<ParseError>> {
        match token {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word("true", Kind::True),
            b'f' => self.word("false", Kind::False),
            b'n' => self.word("null", Kind::Null),
            _ => Err(self.unexpected("a JSON value")),
        }
    }

    fn word(&mut self, word: &str, kind: Kind) -> Result<(), Box<ParseError>> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.unexpected("a JSON value"));
        }
        let end = self.at + word.len();
        self.push(Node::new(kind, self.at..end, 0));
        self.at = end;
        Ok(())
    }

    /// Steps over the opening bracket; its node is closed later.
    fn open(&mut self, kind: Kind, depth: usize) -> Result<usize, Box<ParseError>> {
        if depth == MAX_DEPTH {
            return Err(self.error(format!("more than {MAX_DEPTH} levels of nesting")));
        }
        let index = self.nodes.len();
        self.push(Node::new(kind, self.at..self.at, 0));
        self.at += 1;
        Ok(index)
    }

    /// Steps over the closing bracket.
    fn close(&mut self, index: usize, len: usize) {
        self.at += 1;
        let next = self.nodes.len();
        self.nodes[index].close(self.at, next, len);
    }

    #[inline(never)]
    fn array(&mut self, depth: usize) -> Result<(), Box<ParseError>> {
        let index = self.open(Kind::Array, depth)?;
        let mut len = 0;
        if self.token() != b']' {
            loop {
                self.value(depth + 1)?;
                len += 1;
                match self.token() {
                    b',' => self.at += 1,
                    b']' => break,
                    _ => return Err(self.unexpected("`,` or `]`")),
                }
            }
        }
        self.close(index, len);
        Ok(())
    }

    #[inline(never)]
    fn object(&mut self, depth: usize) -> Result<(), Box<ParseError>> {
        let index = self.open(Kind::Object, depth)?;
        let mut seen = SeenKeys::default();
        let mut len = 0;
        if self.token() != b'}' {
            loop {
                if self.token() != b'"' {
                    return Err(self.unexpected("a key in double quotes"));
                }
                let key = self.nodes.len();
                self.string()?;
                let node = self.nodes[key];
                if seen.may_hold(node, &self.bytes[node.span()]) && len < SeenKeys::COMPARED {
                    self.refuse_repeated_key(index, key)?;
                }
                if self.token() != b':' {
                    return Err(self.unexpected("`:`"));
                }
                self.at += 1;
                self.value(depth + 1)?;
                len += 1;
                match self.token() {
                    b',' => self.at += 1,
                    b'}' => break,
                    _ => return Err(self.unexpected("`,` or `}`")),
                }
            }
        }
        self.close(index, len);
        if len > SeenKeys::COMPARED { self.refuse_repeated_keys(index, len) } else { Ok(()) }
    }
}
