//! JSON as text: checked once, then walked without losing key order, numbers or escapes.

use serde::de::IgnoredAny;
use toolcrib_tool::ToolError;

/// The longest JSON text, in bytes.
pub(super) const MAX_BYTES: usize = 4 << 20;

/// The deepest nesting. Anything that recurses over a checked text or its value stays within this limit, and
/// `serde_json` can parse it again.
pub(super) const MAX_DEPTH: u16 = 120;

/// Why a text is not JSON.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct JsonError {
    /// From 1.
    pub(super) line: usize,
    /// In bytes, from 1.
    pub(super) column: usize,
    /// The reason, as one clause.
    pub(super) reason: String,
}

impl JsonError {
    fn at(text: &str, offset: usize, reason: String) -> Self {
        let before = &text[..offset];
        let line = before.matches('\n').count() + 1;
        let column = offset - before.rfind('\n').map_or(0, |newline| newline + 1) + 1;
        Self { line, column, reason }
    }

    pub(super) fn into_error(self) -> ToolError {
        ToolError::invalid_args(format!(
            "`json_string` is not JSON: {} at line {}, column {}",
            self.reason, self.line, self.column
        ))
        .with_hint("Send one JSON text: double quotes, no trailing commas, no comments.")
    }
}

/// A text known to be one JSON value, nested at most [`MAX_DEPTH`] deep, with valid strings.
#[derive(Debug, Clone, Copy)]
pub(super) struct JsonText<'a>(&'a str);

/// One token of a JSON text; strings and numbers as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// `{` or `[`.
    Open(char),
    /// `}` or `]`.
    Close(char),
    Comma,
    Colon,
    /// A string with its quotes: a key if a colon follows.
    String(&'a str),
    /// A number, `true`, `false` or `null`.
    Scalar(&'a str),
}

impl<'a> JsonText<'a> {
    /// Checks a text.
    pub(super) fn check(text: &'a str) -> Result<Self, JsonError> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let syntax =
            <IgnoredAny as serde::Deserialize>::deserialize(&mut reader).and_then(|_| reader.end());
        if let Err(error) = syntax {
            // Parsing a value gives a better message than skipping it.
            let error = serde_json::from_str::<serde_json::Value>(text).err().unwrap_or(error);
            return Err(JsonError {
                line: error.line(),
                column: error.column(),
                reason: reason(&error),
            });
        }
        // The check above skips strings and ignores depth; invalid escapes show only when a string is read.
        let checked = Self(text);
        let mut depth = 0_u16;
        let mut tokens = checked.tokens();
        while let Some(token) = tokens.next() {
            let problem = match token {
                Token::Open(_) if depth == MAX_DEPTH => {
                    Some((1, format!("nested more than {MAX_DEPTH} deep")))
                }
                Token::Open(_) => {
                    depth += 1;
                    None
                }
                Token::Close(_) => {
                    depth -= 1;
                    None
                }
                Token::String(raw) => {
                    read_string(raw).err().map(|error| (raw.len(), reason(&error)))
                }
                _ => None,
            };
            if let Some((length, reason)) = problem {
                return Err(JsonError::at(text, text.len() - tokens.rest.len() - length, reason));
            }
        }
        Ok(checked)
    }

    /// The pieces, in order.
    pub(super) fn tokens(self) -> Tokens<'a> {
        Tokens { rest: self.0 }
    }

    /// The same value without white space.
    pub(super) fn minified(self) -> String {
        let mut out = String::with_capacity(self.0.len());
        for token in self.tokens() {
            token.write(&mut out);
        }
        out
    }

    /// The same value with two blanks for each level and one member on each line; empty containers stay on one line.
    ///
    /// `None` if the result is longer than `max_bytes`: every member of a deep value adds its own indentation.
    pub(super) fn pretty(self, max_bytes: usize) -> Option<String> {
        let mut out = String::with_capacity(self.0.len());
        let mut depth = 0_usize;
        let mut tokens = self.tokens().peekable();
        while let Some(token) = tokens.next() {
            if out.len() > max_bytes {
                return None;
            }
            if let Token::Close(_) = token {
                depth -= 1;
                new_line(&mut out, depth);
            }
            token.write(&mut out);
            match token {
                Token::Open(_) => {
                    if let Some(close) = tokens.next_if(|next| matches!(next, Token::Close(_))) {
                        close.write(&mut out);
                    } else {
                        depth += 1;
                        new_line(&mut out, depth);
                    }
                }
                Token::Comma => new_line(&mut out, depth),
                Token::Colon => out.push(' '),
                _ => {}
            }
        }
        Some(out)
    }
}

/// The message without its position.
fn reason(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.split(" at line ").next().unwrap_or_default().to_owned()
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

/// The value of a string with its quotes.
pub(super) fn read_string(raw: &str) -> Result<String, serde_json::Error> {
    serde_json::from_str(raw)
}

impl Token<'_> {
    fn write(self, out: &mut String) {
        match self {
            Self::Open(bracket) | Self::Close(bracket) => out.push(bracket),
            Self::Comma => out.push(','),
            Self::Colon => out.push(':'),
            Self::String(raw) | Self::Scalar(raw) => out.push_str(raw),
        }
    }
}

/// Walks a [`JsonText`].
#[derive(Clone)]
pub(super) struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let first = rest.chars().next()?;
        let (token, length) = match first {
            '{' | '[' => (Token::Open(first), 1),
            '}' | ']' => (Token::Close(first), 1),
            ',' => (Token::Comma, 1),
            ':' => (Token::Colon, 1),
            '"' => {
                let length = string_length(rest);
                (Token::String(&rest[..length]), length)
            }
            _ => {
                let ends = [',', ':', '}', ']', ' ', '\t', '\r', '\n'];
                let length = rest.find(ends).unwrap_or(rest.len());
                (Token::Scalar(&rest[..length]), length)
            }
        };
        self.rest = &rest[length..];
        Some(token)
    }
}

/// The length of the string at the beginning of `text`, including quotes.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    // A checked text closes its strings.
    text.len()
}
