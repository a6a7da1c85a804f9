//! How much of a program's output is kept, and how it is shown.

use std::borrow::Cow;

use serde_json::Value;
use toolcrib_manifest::declaration::Keep;
use toolcrib_sandbox::{Capture, Captured};
use toolcrib_tool::{ByteMasks, visible};

use crate::output::redact_patterns::Redaction;

/// How many of `bytes` are kept at each end. If both ends are kept, the beginning gets three quarters, because it holds
/// headings and the first error.
pub(crate) fn capture(bytes: usize, keep: Keep) -> Capture {
    match keep {
        Keep::Both => Capture { head: bytes - bytes / 4, tail: bytes / 4 },
        Keep::Head => Capture { head: bytes, tail: 0 },
        Keep::Tail => Capture { head: 0, tail: bytes },
    }
}

/// The bytes with secrets masked. Call it before anything is cut, because half a secret cannot be found.
pub(crate) fn masked<'b>(bytes: &'b [u8], masks: Option<&ByteMasks>) -> Cow<'b, [u8]> {
    let Some(masks) = masks else { return Cow::Borrowed(bytes) };
    let (mut mask, mut masked) = (masks(), Vec::with_capacity(bytes.len()));
    mask(Some(bytes), &mut masked);
    mask(None, &mut masked);
    Cow::Owned(masked)
}

/// A stream for models and people. If there are patterns, a line that was cut is left out, because the missing part may
/// be what a pattern needs to match.
pub(crate) fn shown(captured: &Captured, redaction: &Redaction) -> String {
    let text = if redaction.is_empty() {
        captured.text()
    } else {
        captured.whole_lines().text_with(|part| redaction.text(part))
    };
    visible(&text).into_owned()
}

/// Standard output, then standard error, if any, under a heading of its own.
pub(crate) fn joined(stdout: &str, stderr: &str) -> String {
    if stderr.is_empty() {
        return stdout.to_owned();
    }
    let line_end = if stdout.is_empty() || stdout.ends_with('\n') { "" } else { "\n" };
    format!("{stdout}{line_end}[stderr]\n{stderr}")
}

/// The lines of a stream. Lines that were cut are left out completely.
pub(crate) fn lines(captured: &Captured, redaction: &Redaction) -> Vec<Value> {
    if !captured.is_truncated() {
        let text = String::from_utf8_lossy(&captured.bytes()).into_owned();
        return lines_of(&redaction.text(text));
    }
    let whole = captured.whole_lines();
    [&whole.head, &whole.tail]
        .into_iter()
        .flat_map(|part| lines_of(&redaction.text(String::from_utf8_lossy(part).into_owned())))
        .collect()
}

fn lines_of(text: &str) -> Vec<Value> {
    text.lines().map(Value::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(head: &str, tail: &str, total: u64) -> Captured {
        Captured { head: head.into(), tail: tail.into(), total }
    }

    #[test]
    fn no_half_line_is_among_the_lines() {
        let none = Redaction::new(&[]).unwrap();
        assert_eq!(lines(&captured("a\nb\r\nc", "", 6), &none), ["a", "b", "c"]);
        assert_eq!(lines(&captured("a\nb\nha", "lf\ny\nz\n", 100), &none), ["a", "b", "y", "z"]);
        assert_eq!(lines(&captured("half", "half", 100), &none), Vec::<Value>::new());
    }

    #[test]
    fn patterns_see_whole_lines_only() {
        let redaction = Redaction::new(&["(?m)password=.*$".into()]).unwrap();
        let cut = captured("first\npassword=hun", "ter22\nlast\n", 1000);
        assert_eq!(shown(&cut, &redaction), "first\n[… 989 bytes omitted …]\nlast\n");
        assert_eq!(shown(&captured("password=hunter22", "", 17), &redaction), "[redacted]");
        // Without patterns, cut lines hide nothing.
        let none = Redaction::new(&[]).unwrap();
        assert_eq!(shown(&captured("ab", "cd\n", 100), &none), "ab\n[… 95 bytes omitted …]\ncd\n");
    }

    #[test]
    fn a_capture_stays_within_its_limit() {
        for keep in [Keep::Both, Keep::Head, Keep::Tail] {
            for bytes in [0, 1, 3, 65536] {
                let capture = capture(bytes, keep);
                assert_eq!(capture.head + capture.tail, bytes);
            }
        }
    }

    #[test]
    fn standard_error_follows_under_a_heading() {
        assert_eq!(joined("out", ""), "out");
        assert_eq!(joined("out", "err\n"), "out\n[stderr]\nerr\n");
        assert_eq!(joined("out\n", "err"), "out\n[stderr]\nerr");
        assert_eq!(joined("", "err"), "[stderr]\nerr");
    }
}
