//! Masking text that arrives in pieces.

use std::borrow::Cow;

use toolcrib_tool::Content;

use super::{ByteStream, Mask};

/// Masks text piece by piece: what comes out, put together, is what [`Mask::text`] makes of the
/// whole. It holds back only an end that could be the beginning of a secret, fewer bytes than the
/// longest one has.
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

    /// Takes a piece, and gives what can be shown by now.
    pub fn push<'p>(&mut self, piece: &'p str) -> Cow<'p, str> {
        if self.bytes.passes(piece.as_bytes()) {
            return Cow::Borrowed(piece);
        }
        let mut shown = Vec::new();
        self.bytes.push(piece.as_bytes(), &mut shown);
        Cow::Owned(text(shown))
    }

    /// Ends the text, and gives what was held back. What comes next begins a new one.
    pub fn finish(&mut self) -> String {
        let mut shown = Vec::new();
        self.bytes.finish(&mut shown);
        text(shown)
    }

    /// Takes a part of an output, and gives the parts that can be shown by now: text is masked
    /// piece by piece, and a part that is none ends the text before it.
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

/// Bytes that came of text. Secrets are text, so that one begins and ends where characters do.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|broken| String::from_utf8_lossy(broken.as_bytes()).into_owned())
}
