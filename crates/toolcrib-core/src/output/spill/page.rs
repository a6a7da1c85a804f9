//! Pages of stored texts.

use super::{SpillFormat, Spilled};

/// A part of a stored text. Offsets and sizes count characters (code points).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// The characters of this page.
    pub text: String,
    /// The offset of the first character; the text's length if the requested offset is beyond it.
    pub offset: usize,
    /// The length of the whole text.
    pub total_chars: usize,
    /// The format of the text.
    pub format: SpillFormat,
    /// Bytes that the tool did not capture.
    pub omitted_bytes: u64,
    next: usize,
}

impl Page {
    /// Extracts a page from a text.
    pub fn of(whole: &Spilled, offset: usize, limit: usize) -> Self {
        let text = whole.text.as_str();
        let total_chars = text.chars().count();
        let offset = offset.min(total_chars);
        let next = offset.saturating_add(limit).min(total_chars);
        let part = if total_chars == text.len() {
            &text[offset..next]
        } else {
            let start = byte_index(text, offset);
            let rest = &text[start..];
            &rest[..byte_index(rest, next - offset)]
        };
        Self {
            text: part.to_owned(),
            offset,
            total_chars,
            format: whole.format,
            omitted_bytes: whole.omitted_bytes,
            next,
        }
    }

    /// Where the next page begins; `None` after the last.
    pub fn next_offset(&self) -> Option<usize> {
        (self.next < self.total_chars).then_some(self.next)
    }
}

/// The byte index of a character.
pub(crate) fn byte_index(text: &str, chars: usize) -> usize {
    text.char_indices().nth(chars).map_or(text.len(), |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pages_put_together_are_the_whole(text in "(\\PC|\n){0,120}", limit in 1usize..40) {
            let whole = Spilled::text(text);
            let mut read = String::new();
            let mut offset = 0;
            loop {
                let page = Page::of(&whole, offset, limit);
                prop_assert!(page.text.chars().count() <= limit);
                prop_assert_eq!(page.offset, offset);
                read.push_str(&page.text);
                match page.next_offset() {
                    Some(next) => {
                        prop_assert!(next > offset);
                        offset = next;
                    }
                    None => break,
                }
            }
            prop_assert_eq!(read, whole.text);
        }

        #[test]
        fn any_offset_and_limit_are_answered(text in "\\PC{0,20}", offset: usize, limit: usize) {
            let whole = Spilled::text(text);
            let page = Page::of(&whole, offset, limit);
            let expected: String = whole.text.chars().skip(offset).take(limit).collect();
            prop_assert_eq!(page.text, expected);
        }
    }
}
