//! Output of a running program as lines, for those who watch it.

use std::fmt::Write as _;

use memchr::{memchr2, memrchr2};

/// The maximum size of the complete lines that wait to be shown, in bytes.
const BUFFER: usize = 64 * 1024;
/// The length of the longest line that is shown, in bytes.
pub const LONGEST_LINE: usize = 8 * 1024;

/// What a program has printed and nobody has been shown yet, as lines. It uses a bounded amount of memory, so that a
/// program never waits for whoever watches it: what does not fit is omitted and counted.
#[derive(Debug, Default)]
pub struct LineBuffer {
    /// Complete lines, each with its line end.
    whole: Vec<u8>,
    /// The beginning of an incomplete line.
    partial_line: Vec<u8>,
    /// Whether the incomplete line is too long to be shown.
    too_long: bool,
    /// Whether the beginning of a line that exceeds the buffer is shown.
    cuts_lines: bool,
    /// Whether the previous line ended with a carriage return, which a line feed may follow.
    ended_with_cr: bool,
    /// The number of omitted bytes.
    lost: u64,
}

impl LineBuffer {
    /// Whether the beginning of a line is shown that is too long, instead of nothing of it. Default: nothing.
    #[must_use]
    pub fn cutting_lines(mut self, cuts_lines: bool) -> Self {
        self.cuts_lines = cuts_lines;
        self
    }

    /// Adds a piece of output; returns whether there is a new line or omission to show. A carriage return ends a line,
    /// too.
    pub fn push(&mut self, piece: &[u8]) -> bool {
        let mut rest = piece;
        let mut has_change = false;
        while let Some(at) = memchr2(b'\n', b'\r', rest) {
            if self.whole.len() >= BUFFER {
                // These lines are all omitted; only the last, incomplete one matters.
                let last = memrchr2(b'\n', b'\r', rest).unwrap_or(at);
                self.lost += (self.partial_line.len() + last + 1) as u64;
                self.partial_line.clear();
                (self.too_long, self.ended_with_cr) = (false, rest[last] == b'\r');
                rest = &rest[last + 1..];
                break;
            }
            let is_second_half = at == 0 && rest[0] == b'\n' && self.ended_with_cr;
            self.ended_with_cr = rest[at] == b'\r';
            if !is_second_half || !self.partial_line.is_empty() {
                self.begin(&rest[..at]);
                self.end_line();
                has_change = true;
            }
            rest = &rest[at + 1..];
        }
        if !rest.is_empty() {
            self.ended_with_cr = false;
            self.begin(rest);
        }
        has_change
    }

    fn begin(&mut self, text: &[u8]) {
        let longest = if self.cuts_lines { BUFFER } else { LONGEST_LINE };
        let fits = self.partial_line.len() + text.len() <= longest;
        if self.cuts_lines && !fits {
            self.lost += text.len() as u64;
        } else if self.too_long || !fits {
            self.too_long = true;
            self.lost += (self.partial_line.len() + text.len()) as u64;
            self.partial_line.clear();
        } else {
            self.partial_line.extend_from_slice(text);
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.too_long) {
            return;
        }
        self.whole.append(&mut self.partial_line);
        self.whole.push(b'\n');
    }

    /// Takes the complete lines. The incomplete one stays, unless `with_partial_line` is set.
    #[must_use]
    pub fn take(&mut self, with_partial_line: bool) -> Self {
        let partial_line = if with_partial_line {
            self.too_long = false;
            std::mem::take(&mut self.partial_line)
        } else {
            Vec::new()
        };
        Self {
            whole: std::mem::take(&mut self.whole),
            partial_line,
            lost: std::mem::take(&mut self.lost),
            ..Self::default()
        }
    }

    /// What was taken as text, each line as `shown` returns it. The last line says how many bytes were omitted. `None`
    /// if there is nothing.
    pub fn text(&self, shown: impl Fn(String) -> String) -> Option<String> {
        let whole = String::from_utf8_lossy(&self.whole);
        let mut text = String::with_capacity(whole.len());
        for line in whole.lines() {
            text.push_str(&shown(line.to_owned()));
            text.push('\n');
        }
        text.push_str(&shown(String::from_utf8_lossy(&self.partial_line).into_owned()));
        if self.lost > 0 {
            if !self.partial_line.is_empty() {
                text.push('\n');
            }
            // Writing to a string does not fail.
            let _ = writeln!(text, "[… {} bytes not shown live …]", self.lost);
        }
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown_text(part: &mut LineBuffer) -> String {
        part.take(false).text(|line| line).unwrap_or_default()
    }

    #[test]
    fn only_whole_lines_are_shown_and_a_carriage_return_ends_one() {
        let mut part = LineBuffer::default();
        assert!(!part.push(b"a"));
        assert!(part.push(b"b\r\nc\n\n 10%\r 20%\rd"));
        assert_eq!(shown_text(&mut part), "ab\nc\n\n 10%\n 20%\n");
        assert!(part.push(b"\r"));
        // The other half of the line end.
        assert!(!part.push(b"\n"));
        assert_eq!(shown_text(&mut part), "d\n");
    }

    #[test]
    fn omitted_bytes_are_counted() {
        let mut part = LineBuffer::default();
        part.push(&b"x".repeat(LONGEST_LINE + 1));
        part.push(b"yy\nshort\n");
        assert_eq!(
            shown_text(&mut part),
            format!("short\n[… {} bytes not shown live …]\n", LONGEST_LINE + 3)
        );

        let lines = b"0123456\n".repeat(2 * BUFFER / 8);
        part.push(&lines);
        part.push(b"rest");
        assert!(part.whole.len() <= BUFFER + LONGEST_LINE);
        let text = shown_text(&mut part);
        assert!(
            text.ends_with(&format!("[… {BUFFER} bytes not shown live …]\n")),
            "{}",
            text.len()
        );
        part.push(b" of it\n");
        assert_eq!(shown_text(&mut part), "rest of it\n");
    }

    proptest! {
        #[test]
        fn every_split_of_a_short_text_shows_the_same_lines(
            text in "[ab\r\n]{0,40}",
            at in 0_usize..40,
        ) {
            let at = at.min(text.len());
            let mut whole = LineBuffer::default();
            whole.push(text.as_bytes());
            let mut split = LineBuffer::default();
            split.push(&text.as_bytes()[..at]);
            split.push(&text.as_bytes()[at..]);
            prop_assert_eq!(shown_text(&mut whole), shown_text(&mut split));
            prop_assert_eq!(whole.partial_line, split.partial_line);
        }
    }
}
