//! Finds keys and positions in a JSON text without building its value.

use std::collections::HashSet;

use super::json_text::{JsonText, Token, Tokens, read_string};

/// At most this many repeated keys are listed.
const MAX_DUPLICATES: usize = 100;

/// The value at a position.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Members {
    /// The keys of an object, in order, each once.
    Object(Vec<String>),
    /// The number of items of an array.
    Array(usize),
    /// Neither: the value as written.
    Scalar(String),
}

impl Members {
    /// Its kind, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Object(_) => "object",
            Self::Array(_) => "array",
            Self::Scalar(text) => match text.as_bytes().first() {
                Some(b'"') => "string",
                Some(b't' | b'f') => "boolean",
                Some(b'n') => "null",
                _ => "number",
            },
        }
    }
}

/// The members at a JSON pointer (RFC 6901), or the part of the pointer that does not exist.
///
/// If a key is repeated, its last value counts, as in every other operation.
pub(super) fn members(text: JsonText<'_>, pointer: &str) -> Result<Members, String> {
    let mut tokens = text.tokens();
    let mut walked = String::new();
    for segment in pointer.split('/').skip(1) {
        walked.push('/');
        walked.push_str(segment);
        let name = segment.replace("~1", "/").replace("~0", "~");
        tokens = child(tokens, &name).ok_or_else(|| walked.clone())?;
    }
    Ok(members_of(tokens))
}

/// The position of one member.
fn child<'a>(mut tokens: Tokens<'a>, name: &str) -> Option<Tokens<'a>> {
    let is_object = tokens.next()? == Token::Open('{');
    let mut found = None;
    each_member(&mut tokens, is_object, |key, at, value| {
        let matches = match key {
            Some(key) => key == name,
            None => at.to_string() == name,
        };
        if matches {
            found = Some(value.clone());
        }
    });
    found
}

fn members_of(mut tokens: Tokens<'_>) -> Members {
    match tokens.next() {
        Some(Token::Open('{')) => {
            let (mut seen, mut keys) = (HashSet::new(), Vec::new());
            each_member(&mut tokens, true, |key, _, _| {
                let key = key.unwrap_or_default();
                if seen.insert(key.to_owned()) {
                    keys.push(key.to_owned());
                }
            });
            Members::Object(keys)
        }
        Some(Token::Open(_)) => {
            let mut count = 0;
            each_member(&mut tokens, false, |_, _, _| count += 1);
            Members::Array(count)
        }
        Some(Token::String(raw) | Token::Scalar(raw)) => Members::Scalar(raw.to_owned()),
        // A checked text begins with a value, and so does every position in it.
        _ => Members::Scalar("null".to_owned()),
    }
}

/// Visits the members of the container that was just opened: key, index, position of the value.
fn each_member<'a>(
    tokens: &mut Tokens<'a>,
    is_object: bool,
    mut visit: impl FnMut(Option<&str>, usize, &Tokens<'a>),
) {
    for at in 0.. {
        let value = tokens.clone();
        let key = match tokens.next() {
            Some(Token::String(raw)) if is_object => Some(read_string(raw).unwrap_or_default()),
            None | Some(Token::Close(_)) => return,
            Some(_) => None,
        };
        if is_object {
            // The colon; the value is next.
            tokens.next();
            visit(key.as_deref(), at, tokens);
        } else {
            visit(None, at, &value);
            *tokens = value;
        }
        skip_value(tokens);
        if tokens.next() != Some(Token::Comma) {
            return;
        }
    }
}

fn skip_value(tokens: &mut Tokens<'_>) {
    let mut depth = 0_usize;
    for token in tokens {
        match token {
            Token::Open(_) => depth += 1,
            Token::Close(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return;
        }
    }
}

/// Pointers to repeated keys, at most a hundred.
pub(super) fn duplicate_keys(text: JsonText<'_>) -> Vec<String> {
    let mut found = Vec::new();
    // For each open container: its keys so far, or `None` for an array; and the current position in it.
    let mut open: Vec<(Option<HashSet<String>>, String)> = Vec::new();
    let mut tokens = text.tokens().peekable();
    while let Some(token) = tokens.next() {
        match token {
            Token::Open('{') => open.push((Some(HashSet::new()), String::new())),
            Token::Open(_) => open.push((None, "0".to_owned())),
            Token::Close(_) => {
                open.pop();
            }
            Token::Comma => {
                if let Some((None, at)) = open.last_mut() {
                    *at = at.parse().map_or(0, |at: usize| at + 1).to_string();
                }
            }
            Token::String(raw) if tokens.peek() == Some(&Token::Colon) => {
                let key = read_string(raw).unwrap_or_default();
                if let Some((Some(keys), at)) = open.last_mut() {
                    *at = key.replace('~', "~0").replace('/', "~1");
                    if !keys.insert(key) && found.len() < MAX_DUPLICATES {
                        let steps = open.iter().map(|(_, at)| at.as_str());
                        found.push(steps.fold(String::new(), |path, step| path + "/" + step));
                    }
                }
            }
            _ => {}
        }
    }
    found
}
