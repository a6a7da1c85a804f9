//! Lines of arbitrary bytes: line ends and blanks.
//!
//! A line ends with LF, CR LF or a lone CR. Form feeds, vertical tabs, NEL and Unicode separators are ordinary text:
//! splitting at them would lose them.

use memchr::{memchr, memchr_iter, memchr2};

/// A line and its line end, which is empty for the last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) text: &'a [u8],
    pub(super) eol: &'a [u8],
}

/// Splits bytes after each line end. There is always a last piece, empty if the bytes end with a line end or are empty.
pub(super) fn pieces(bytes: &[u8]) -> Pieces<'_> {
    Pieces { rest: Some(bytes) }
}

pub(super) struct Pieces<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let bytes = self.rest.take()?;
        let Some(end) = memchr2(b'\n', b'\r', bytes) else {
            return Some(Piece { text: bytes, eol: b"" });
        };
        let next = end + eol_at(bytes, end);
        self.rest = Some(&bytes[next..]);
        Some(Piece { text: &bytes[..end], eol: &bytes[end..next] })
    }
}

/// The length of the line end at `at`; 0 if there is none.
pub(super) fn eol_at(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(b'\n') => 1,
        Some(b'\r') => 1 + usize::from(bytes.get(at + 1) == Some(&b'\n')),
        _ => 0,
    }
}

/// The length of the line end just before `at`; 0 if there is none.
pub(super) fn eol_before(bytes: &[u8], at: usize) -> usize {
    match at.checked_sub(1).map(|last| bytes[last]) {
        Some(b'\n') => 1 + usize::from(at > 1 && bytes[at - 2] == b'\r'),
        // No line ends between CR and LF.
        Some(b'\r') if bytes.get(at) != Some(&b'\n') => 1,
        _ => 0,
    }
}

/// Whether `at` is between the CR and the LF of one line end.
pub(super) fn splits_eol(bytes: &[u8], at: usize) -> bool {
    at > 0 && bytes[at - 1] == b'\r' && bytes.get(at) == Some(&b'\n')
}

/// Whether a byte is a blank within a line.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0b | 0x0c)
}

/// The text without blanks at the end.
pub(super) fn trim_end(text: &[u8]) -> &[u8] {
    let blanks = text.iter().rev().take_while(|byte| is_blank(**byte)).count();
    &text[..text.len() - blanks]
}

/// The text without blanks at either end.
pub(super) fn trim(text: &[u8]) -> &[u8] {
    let text = trim_end(text);
    &text[indent(text).len()..]
}

/// The blanks at the start.
pub(super) fn indent(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| is_blank(**byte)).count();
    &text[..blanks]
}

/// The start of the line that contains `at`.
pub(super) fn line_start(bytes: &[u8], at: usize) -> usize {
    let at = if splits_eol(bytes, at) { at - 1 } else { at };
    memchr::memrchr2(b'\n', b'\r', &bytes[..at]).map_or(0, |eol| eol + 1)
}

/// The end of the line that contains `at`, before its line end.
pub(super) fn line_end(bytes: &[u8], at: usize) -> usize {
    if splits_eol(bytes, at) {
        return at - 1;
    }
    memchr2(b'\n', b'\r', &bytes[at..]).map_or(bytes.len(), |eol| at + eol)
}

/// The start of the line that contains `at`, unless it is more than `most` bytes before.
pub(super) fn line_start_within(bytes: &[u8], at: usize, most: usize) -> Option<usize> {
    let from = at.saturating_sub(most);
    let start = from + line_start(&bytes[from..], at - from);
    (start == 0 || eol_before(bytes, start) > 0).then_some(start)
}

/// The end of the line that contains `at`, unless it is more than `most` bytes after.
pub(super) fn line_end_within(bytes: &[u8], at: usize, most: usize) -> Option<usize> {
    let to = bytes.len().min(at + most);
    let end = line_end(&bytes[..to], at);
    (end == bytes.len() || eol_at(bytes, end) > 0).then_some(end)
}

/// A position with a known line number, from which counting can continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LinePosition {
    pub(super) at: usize,
    /// The number of its line.
    pub(super) line: usize,
}

impl LinePosition {
    /// The start of the file; the first line is 1.
    pub(super) const START: Self = Self { at: 0, line: 1 };
}

/// Counts lines by line feeds, as every reader does, and by carriage returns only in a file without line feeds.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineCounter<'a> {
    file: &'a [u8],
    eol: u8,
}

impl<'a> LineCounter<'a> {
    pub(super) fn new(file: &'a [u8]) -> Self {
        let eol = if memchr(b'\n', file).is_none() { b'\r' } else { b'\n' };
        Self { file, eol }
    }

    /// How many line ends of this file's kind a text contains.
    pub(super) fn ends_in(&self, text: &[u8]) -> usize {
        memchr_iter(self.eol, text).count()
    }

    /// The mark of `at`, which must not be before `from`.
    pub(super) fn mark(&self, from: LinePosition, at: usize) -> LinePosition {
        LinePosition { at, line: from.line + self.ends_in(&self.file[from.at..at]) }
    }
}

/// The kind of line end around `at`: that of its own line, else of the line before, else of the first line, else none.
pub(super) fn eol_near(bytes: &[u8], at: usize) -> &[u8] {
    let end = line_end(bytes, at);
    let own = eol_at(bytes, end);
    if own > 0 {
        return &bytes[end..end + own];
    }
    let start = line_start(bytes, at);
    &bytes[start - eol_before(bytes, start)..start]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_lf_cr_lf_or_cr_and_nothing_else() {
        let text = b"a\nb\r\nc\rd\x0ce\xe2\x80\xa8f\n";
        let found: Vec<_> = pieces(text).map(|piece| (piece.text, piece.eol)).collect();
        let expected: [(&[u8], &[u8]); 5] = [
            (b"a", b"\n"),
            (b"b", b"\r\n"),
            (b"c", b"\r"),
            (b"d\x0ce\xe2\x80\xa8f", b"\n"),
            (b"", b""),
        ];
        assert_eq!(found, expected);
        let joined: Vec<u8> = pieces(text).flat_map(|p| [p.text, p.eol].concat()).collect();
        assert_eq!(joined, text);
    }

    #[test]
    fn line_ends_are_found_from_both_sides() {
        let text = b"a\r\nb\rc\n";
        for at in 0..=text.len() {
            let before = eol_before(text, at);
            assert!(before == 0 || eol_at(text, at - before) == before, "{at}");
        }
        assert_eq!(eol_before(text, 3), 2);
        assert_eq!(eol_before(text, 2), 0);
        assert!(splits_eol(text, 2));
        assert_eq!((line_start(text, 3), line_end(text, 3)), (3, 4));
    }

    #[test]
    fn a_new_line_gets_the_line_end_of_its_neighbours() {
        assert_eq!(eol_near(b"a\r\nb\nc", 4), b"\n");
        assert_eq!(eol_near(b"a\r\nb\nc", 5), b"\n");
        assert_eq!(eol_near(b"a\r\nb", 3), b"\r\n");
        assert_eq!(eol_near(b"a", 0), b"");
    }

    #[test]
    fn line_numbers_follow_line_feeds_unless_there_are_none() {
        for (file, line) in [(b"a\rb\nc", 2), (b"a\rb\rc", 3)] {
            assert_eq!(
                LineCounter::new(file).mark(LinePosition::START, 4),
                LinePosition { at: 4, line }
            );
        }
    }
}
