//! Shortened texts for messages.

use std::borrow::Cow;

use toolcrib_json::{Cursor, Kind};

/// Up to this many bytes, a message gives a text's length in characters; beyond it, in bytes.
const COUNTED: usize = 64 * 1024;

/// The text, or its first `limit` characters and its length.
pub(crate) fn shorten(text: &str, limit: usize) -> Cow<'_, str> {
    match text.char_indices().nth(limit) {
        Some((cut, _)) => Cow::Owned(format!("{}… ({})", &text[..cut], size(text))),
        None => Cow::Borrowed(text),
    }
}

fn size(text: &str) -> String {
    if text.len() <= COUNTED {
        format!("{} characters", text.chars().count())
    } else {
        format!("{} bytes", text.len())
    }
}

/// The compact JSON of a value, or its first `limit` characters and the length of its text. The
/// cost depends on what is shown, not on the size of the value.
pub(crate) fn excerpt(value: Cursor<'_>, limit: usize) -> String {
    let mut out = String::new();
    let complete = write(value, limit, &mut out);
    let cut = out.char_indices().nth(limit).map(|(cut, _)| cut);
    if complete && cut.is_none() {
        return out;
    }
    out.truncate(cut.unwrap_or(out.len()));
    format!("{out}… ({})", size(value.source()))
}

/// Writes at least the first `limit` characters; `false` if there may be more.
fn write(value: Cursor<'_>, limit: usize, out: &mut String) -> bool {
    // No character takes more than four bytes.
    let most = limit.saturating_mul(4).saturating_add(4);
    if out.len() > most {
        return false;
    }
    let mut separate = {
        let mut first = true;
        move |out: &mut String| {
            if !std::mem::take(&mut first) {
                out.push(',');
            }
        }
    };
    match value.kind() {
        Kind::Array => {
            out.push('[');
            for item in value.items() {
                separate(out);
                if !write(item, limit, out) {
                    return false;
                }
            }
            out.push(']');
            true
        }
        Kind::Object => {
            out.push('{');
            for (name, value) in value.members() {
                separate(out);
                if !write(name, limit, out) {
                    return false;
                }
                out.push(':');
                if !write(value, limit, out) {
                    return false;
                }
            }
            out.push('}');
            true
        }
        _ => {
            let source = value.source();
            let mut end = source.len().min(most);
            while !source.is_char_boundary(end) {
                end -= 1;
            }
            out.push_str(&source[..end]);
            end == source.len()
        }
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_json::parse;

    use super::*;

    #[test]
    fn short_values_are_shown_in_full_without_blanks() {
        let tape = parse(r#"{"a": [1, 2.50], "b" : "x y"}"#).unwrap();
        assert_eq!(excerpt(tape.root(), 80), r#"{"a":[1,2.50],"b":"x y"}"#);
        assert_eq!(shorten("read_file", 9), "read_file");
    }

    #[test]
    fn long_values_are_cut_and_say_how_long_they_are() {
        let tape = parse(r#"["äöüß", "äöüß"]"#).unwrap();
        assert_eq!(excerpt(tape.root(), 4), r#"["äö… (16 characters)"#);
        assert_eq!(shorten("read_file", 4), "read… (9 characters)");
        let long = format!("[{}1]", "1,".repeat(40_000));
        let tape = parse(&long).unwrap();
        assert_eq!(excerpt(tape.root(), 5), "[1,1,… (80003 bytes)");
    }
}
