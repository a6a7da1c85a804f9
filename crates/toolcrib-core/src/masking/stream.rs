//! Masking what arrives in pieces.

use std::borrow::Cow;

use toolcrib_tool::Content;

use super::{MASKED, Mask, Patterns};

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
    /// What came in and has not come out.
    held: String,
    /// How many bytes at the beginning of `held` belong to a secret whose mark is out already.
    covered: usize,
}

impl MaskStream {
    pub(super) fn new(mask: Mask) -> Self {
        Self { mask, held: String::new(), covered: 0 }
    }

    /// Takes a piece, and gives what can be shown by now.
    pub fn push<'p>(&mut self, piece: &'p str) -> Cow<'p, str> {
        let Some(patterns) = &self.mask.patterns else { return Cow::Borrowed(piece) };
        // Most pieces follow on nothing and hold no beginning of a secret.
        if self.held.is_empty() && open_end(patterns, piece) == piece.len() {
            return self.mask.text(piece);
        }
        self.held.push_str(piece);
        let end = open_end(patterns, &self.held);
        Cow::Owned(self.release(end))
    }

    /// Ends the text, and gives what was held back. What comes next begins a new one.
    pub fn finish(&mut self) -> String {
        let end = self.held.len();
        self.release(end)
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
        self.held.len()
    }

    /// Gives what stands before `end`. Every secret that begins there has been seen whole.
    fn release(&mut self, end: usize) -> String {
        let Some(patterns) = &self.mask.patterns else { return String::new() };
        let mut out = String::new();
        let mut shown = self.covered;
        for secret in patterns.every(&self.held).into_iter().take_while(|found| found.start < end) {
            if secret.start >= shown {
                out.push_str(&self.held[shown..secret.start]);
                out.push_str(MASKED);
            }
            shown = shown.max(secret.end);
        }
        if shown < end {
            out.push_str(&self.held[shown..end]);
            shown = end;
        }
        self.covered = shown - end;
        self.held.drain(..end);
        out
    }
}

/// Where the longest end of the text begins that a secret could begin with.
fn open_end(patterns: &Patterns, text: &str) -> usize {
    let first = text.len().saturating_sub(patterns.longest() - 1);
    (first..text.len())
        .find(|&start| text.is_char_boundary(start) && patterns.may_go_on(&text[start..]))
        .unwrap_or(text.len())
}
