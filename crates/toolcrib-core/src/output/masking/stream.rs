//! Masking text streams.

use std::borrow::Cow;

use toolcrib_tool::Content;

use super::{ByteStream, Mask};

/// Masks text piece by piece: the concatenated output equals [`Mask::text`] of the whole. It holds back only a suffix
/// that could be the beginning of a secret, fewer bytes than its longest spelling.
///
/// ```
/// use toolcrib_core::masking::Mask;
///
/// let mut stream = Mask::new(["hunter22".to_owned()])?.stream();
/// assert_eq!(stream.push("the password is hunt"), "the password is ");
/// assert_eq!(stream.push("er22, hu"), "[masked], ");
/// assert_eq!(stream.finish(), "hu");
/// # Ok::<(), toolcrib_core::masking::MaskError>(())
/// ```
#[derive(Debug)]
pub struct MaskStream {
    mask: Mask,
    bytes: ByteStream,
}

impl MaskStream {
    pub(super) fn new(mask: Mask) -> Self {
        let bytes = mask.bytes();
        Self { mask, bytes }
    }

    /// Takes a piece, and returns the masked output so far.
    pub fn push<'p>(&mut self, piece: &'p str) -> Cow<'p, str> {
        if self.bytes.passes(piece.as_bytes()) {
            return Cow::Borrowed(piece);
        }
        let mut shown = Vec::new();
        self.bytes.push(piece.as_bytes(), &mut shown);
        Cow::Owned(text(shown))
    }

    /// Ends the text, and returns what was held back. The next piece begins a new text.
    pub fn finish(&mut self) -> String {
        let mut shown = Vec::new();
        self.bytes.finish(&mut shown);
        text(shown)
    }

    /// Takes a part of an output, and returns the masked parts so far: text is masked piece by
    /// piece, and a part without text ends the text before it.
    pub fn part(&mut self, part: Content) -> Vec<Content> {
        let text_part = |text: String| (!text.is_empty()).then_some(Content::Text(text));
        match part {
            Content::Text(piece) => text_part(self.push(&piece).into_owned()).into_iter().collect(),
            other => {
                let before = text_part(self.finish());
                before.into_iter().chain([self.mask.content(other)]).collect()
            }
        }
    }

    /// How many bytes are held back.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.bytes.held()
    }
}

/// Converts bytes back to text. Secrets are text, so they begin and end at character boundaries.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|broken| String::from_utf8_lossy(broken.as_bytes()).into_owned())
}
