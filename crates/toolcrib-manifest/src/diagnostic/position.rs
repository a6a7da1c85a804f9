//! Positions in a text: converts byte offsets to lines and columns.

use std::ops::Range;

/// A byte range of a text, always on character boundaries.
pub(crate) type Span = Range<usize>;

/// The text without a leading byte order mark, which some editors write.
///
/// All spans of this crate are offsets into this text.
pub(crate) fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The line and the column of a byte offset. Both count from 1; columns count characters.
pub(crate) fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..boundary(text, offset)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    (line, before[line_start..].chars().count() + 1)
}

/// The nearest character boundary at or before `offset`, inside the text.
pub(crate) fn boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// The range clamped to the text and to character boundaries, without trailing spaces.
pub(crate) fn clamp(text: &str, span: &Span) -> Span {
    let start = boundary(text, span.start);
    let end = boundary(text, span.end).max(start);
    start..start + text[start..end].trim_end().len()
}

/// The part of a range on its first line, which is underlined for a block of several lines.
pub(crate) fn first_line(text: &str, span: &Span) -> Span {
    let span = clamp(text, span);
    let length = text[span.clone()].find(['\n', '\r']).unwrap_or(span.len());
    clamp(text, &(span.start..span.start + length))
}

/// An index of the lines of a text, for many lookups in constant time.
#[derive(Debug)]
pub struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    /// Indexes the lines of a text without a byte order mark.
    pub fn new(text: &'t str) -> Self {
        let text = without_bom(text);
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// The line and the column of a byte offset. Both count from 1; columns count characters.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let offset = boundary(self.text, offset);
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        (line, self.text[start..offset].chars().count() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_both_lookups_agree() {
        let text = "ä: 1\nbé: x\n";
        let offset = text.find('x').unwrap();
        assert_eq!(line_column(text, offset), (2, 5));
        let lines = Lines::new(text);
        for offset in 0..=text.len() + 3 {
            assert_eq!(lines.line_column(offset), line_column(text, offset), "at {offset}");
        }
    }

    #[test]
    fn a_block_is_underlined_on_its_first_line_only() {
        assert_eq!(first_line("a: 1  \r\nb: 2\n", &(0..12)), 0..4);
    }
}
