//! Repairs JSON text with the mistakes that models commonly make. Runs only on text that does not
//! parse; the result parses.
//!
//! It repairs a code fence around the text, pairs without braces, trailing commas, invalid escapes
//! (`\d`), and raw control characters in strings. Truncated text is closed only if the caller
//! allows it: for a tool that writes, half an argument is worse than none.

use std::fmt::{self, Write as _};

use toolcrib_json::parse;

/// A kind of repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Repair {
    /// A code fence around the text was removed.
    CodeFence,
    /// Braces were added around bare pairs.
    BarePairs,
    /// A comma before a closing bracket was removed.
    TrailingComma,
    /// A backslash that does not begin a valid escape was doubled.
    IllegalEscape,
    /// A raw control character in a string was escaped.
    RawControl,
    /// A string or bracket left open was closed.
    Unclosed,
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CodeFence => "removed a code fence",
            Self::BarePairs => "added braces around bare pairs",
            Self::TrailingComma => "removed a trailing comma",
            Self::IllegalEscape => "doubled a backslash that does not begin an escape",
            Self::RawControl => "escaped a raw control character",
            Self::Unclosed => "closed open strings and brackets",
        })
    }
}

/// Why a text could not be repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unrepairable {
    /// It ends inside a string or bracket, and closing it was not allowed.
    CutOff,
    /// It is wrong in another way.
    Other,
}

/// Repairs a text that does not parse. `may_close` allows closing open strings and brackets.
pub(crate) fn repair(text: &str, may_close: bool) -> Result<(String, Vec<Repair>), Unrepairable> {
    let mut repairs = Vec::new();
    let mut text = text.trim();
    if let Some(inner) = without_fence(text) {
        text = inner;
        repairs.push(Repair::CodeFence);
    }
    let wrapped;
    if text.starts_with('"') && parse(text).is_err() {
        wrapped = format!("{{{text}}}");
        text = &wrapped;
        repairs.push(Repair::BarePairs);
    }
    let mut scan = Scan { out: String::with_capacity(text.len() + 8), open: Vec::new(), repairs };
    let in_string = scan.run(text);
    if in_string || !scan.open.is_empty() {
        if !may_close {
            return Err(Unrepairable::CutOff);
        }
        scan.close(in_string);
    }
    let Scan { out, mut repairs, .. } = scan;
    repairs.sort_unstable();
    if repairs.is_empty() || parse(&out).is_err() {
        return Err(Unrepairable::Other);
    }
    Ok((out, repairs))
}

fn without_fence(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("```")?;
    let inner = inner.strip_suffix("```")?;
    // The rest of the first line names the language.
    let (language, body) = inner.split_once('\n').unwrap_or(("", inner));
    language.trim().chars().all(|c| c.is_ascii_alphanumeric()).then(|| body.trim())
}

/// One pass that copies the text with the small repairs. Correct text is copied in runs.
struct Scan {
    out: String,
    open: Vec<char>,
    repairs: Vec<Repair>,
}

impl Scan {
    /// Returns whether the text ended inside a string.
    fn run(&mut self, text: &str) -> bool {
        let mut rest = text;
        let mut in_string = false;
        loop {
            let marks: fn(&u8) -> bool = if in_string {
                |byte| matches!(byte, b'"' | b'\\' | ..b' ')
            } else {
                |byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']')
            };
            let Some(at) = rest.as_bytes().iter().position(marks) else {
                self.out.push_str(rest);
                return in_string;
            };
            // All marks are ASCII, so the text can be split at them.
            self.out.push_str(&rest[..at]);
            let mark = rest.as_bytes()[at];
            rest = &rest[at + 1..];
            match mark {
                b'"' => {
                    in_string = !in_string;
                    self.out.push('"');
                }
                b'\\' => rest = self.escape(rest),
                control @ ..b' ' => {
                    // Writing to a String cannot fail.
                    let _ = write!(self.out, "\\u{control:04x}");
                    self.mended(Repair::RawControl);
                }
                bracket => self.bracket(char::from(bracket)),
            }
        }
    }

    /// Copies an escape; `rest` follows its backslash. Returns the remaining text.
    fn escape<'t>(&mut self, rest: &'t str) -> &'t str {
        let bytes = rest.as_bytes();
        match bytes.first() {
            Some(b'u') if is_hex4(&bytes[1..]) => self.out.push('\\'),
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.out.push('\\');
                self.out.push_str(&rest[..1]);
                return &rest[1..];
            }
            // The text ends inside an escape: the backslash is dropped.
            None => {}
            Some(_) => {
                self.out.push_str("\\\\");
                self.mended(Repair::IllegalEscape);
            }
        }
        rest
    }

    fn mended(&mut self, repair: Repair) {
        if !self.repairs.contains(&repair) {
            self.repairs.push(repair);
        }
    }

    fn bracket(&mut self, bracket: char) {
        match bracket {
            '{' => self.open.push('}'),
            '[' => self.open.push(']'),
            _ => {
                self.drop_trailing_comma();
                if self.open.last() == Some(&bracket) {
                    self.open.pop();
                }
            }
        }
        self.out.push(bracket);
    }

    fn drop_trailing_comma(&mut self) {
        let kept = self.out.trim_end();
        if let Some(before) = kept.strip_suffix(',') {
            self.out.truncate(before.len());
            self.mended(Repair::TrailingComma);
        }
    }

    fn close(&mut self, in_string: bool) {
        if in_string {
            self.out.push('"');
        }
        while let Some(bracket) = self.open.pop() {
            if !in_string {
                self.drop_trailing_comma();
            }
            self.out.push(bracket);
        }
        self.mended(Repair::Unclosed);
    }
}

fn is_hex4(bytes: &[u8]) -> bool {
    bytes.get(..4).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_usual_mistakes_are_mended_and_named() {
        for (text, mended, repairs) in [
            ("```json\n{\"a\": 1}\n```", r#"{"a": 1}"#, vec![Repair::CodeFence]),
            (r#""a": 1, "b": 2"#, r#"{"a": 1, "b": 2}"#, vec![Repair::BarePairs]),
            (r#"{"a": [1, 2, ], }"#, r#"{"a": [1, 2]}"#, vec![Repair::TrailingComma]),
            (r#"{"re": "\d+\.\s"}"#, r#"{"re": "\\d+\\.\\s"}"#, vec![Repair::IllegalEscape]),
            ("{\"a\": \"x\ny\"}", r#"{"a": "x\u000ay"}"#, vec![Repair::RawControl]),
            (r#"{"a": "\u12"}"#, r#"{"a": "\\u12"}"#, vec![Repair::IllegalEscape]),
        ] {
            assert_eq!(repair(text, false), Ok((mended.to_owned(), repairs)), "{text}");
        }
    }

    #[test]
    fn what_was_cut_off_is_closed_only_where_that_is_allowed() {
        let unclosed = vec![Repair::Unclosed];
        for (text, closed, repairs) in [
            (r#"{"path": "src/ma"#, r#"{"path": "src/ma"}"#, unclosed.clone()),
            (r#"{"a": [1, 2"#, r#"{"a": [1, 2]}"#, unclosed.clone()),
            (r#"{"a": [1, 2,"#, r#"{"a": [1, 2]}"#, vec![Repair::TrailingComma, Repair::Unclosed]),
            (r#"{"a": "x\"#, r#"{"a": "x"}"#, unclosed),
        ] {
            assert_eq!(repair(text, false), Err(Unrepairable::CutOff), "{text}");
            assert_eq!(repair(text, true), Ok((closed.to_owned(), repairs)));
        }
    }

    #[test]
    fn what_means_nothing_is_left_alone() {
        for text in ["{a: 1}", "{'a': 1}", r#"{"a": }"#, "hello", r#"{"a": 1} {"b": 2}"#, "{]"] {
            assert!(repair(text, true).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_mended_text_parses_and_needs_no_more_mending(text in "[\\[\\]{}:,\"a1 \\\\dn`\\n]{0,40}", may_close: bool) {
            if parse(&text).is_err()
                && let Ok((mended, _)) = repair(&text, may_close)
            {
                prop_assert!(parse(&mended).is_ok());
                prop_assert!(!matches!(repair(&mended, may_close), Ok((again, _)) if again != mended));
            }
        }
    }
}
