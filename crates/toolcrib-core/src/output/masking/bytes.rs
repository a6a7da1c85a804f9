//! Masking bytes that arrive in pieces, as programs print them.

use super::{MASKED, Mask};

/// Masks bytes piece by piece: what comes out, put together, is what [`Mask::text`] makes of the
/// whole. The bytes need not be UTF-8.
///
/// It holds back only an end that could be the beginning of a secret, fewer bytes than the longest
/// secret has. When the bytes end, such a beginning comes out as it is: a mask that also covered parts
/// of secrets would tell a program whether its guess of the first characters is right.
///
/// ```
/// use toolcrib_core::masking::Mask;
///
/// let mut bytes = Mask::new(["hunter22".to_owned()])?.bytes();
/// let mut shown = Vec::new();
/// bytes.push(b"the password is hunt", &mut shown);
/// assert_eq!(shown, b"the password is ");
/// bytes.push(b"er22, hu", &mut shown);
/// bytes.finish(&mut shown);
/// assert_eq!(shown, b"the password is [masked], hu");
/// # Ok::<(), toolcrib_core::masking::MaskError>(())
/// ```
#[derive(Debug, Default)]
pub struct ByteStream {
    mask: Mask,
    /// What came in and has not come out.
    held: Vec<u8>,
    /// How many bytes at the beginning of `held` belong to a secret whose mark is out already.
    covered: usize,
}

impl ByteStream {
    pub(super) fn new(mask: Mask) -> Self {
        Self { mask, held: Vec::new(), covered: 0 }
    }

    /// Masks with this mask from the next piece on. What is held back now is judged by it, too.
    pub(super) fn set_mask(&mut self, mask: Mask) {
        self.mask = mask;
    }

    /// Takes a piece, and appends to `shown` what can be shown by now.
    pub fn push(&mut self, piece: &[u8], shown: &mut Vec<u8>) {
        let Some(patterns) = &self.mask.patterns else {
            self.finish(shown);
            shown.extend_from_slice(piece);
            return;
        };
        if self.passes(piece) {
            shown.extend_from_slice(piece);
            return;
        }
        self.held.extend_from_slice(piece);
        let end = patterns.open_end(&self.held);
        self.release(end, shown);
    }

    /// Ends the stream, and appends to `shown` what was held back. What comes next begins a new one.
    pub fn finish(&mut self, shown: &mut Vec<u8>) {
        self.release(self.held.len(), shown);
    }

    /// Whether a piece comes out as it is. Most do: they follow on nothing that is held back, and hold
    /// neither a secret nor the beginning of one.
    pub(super) fn passes(&self, piece: &[u8]) -> bool {
        let Some(patterns) = &self.mask.patterns else { return self.held.is_empty() };
        self.held.is_empty()
            && patterns.open_end(piece) == piece.len()
            && !patterns.automaton.is_match(piece)
    }

    /// How many bytes are held back.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Gives what stands before `end`. Every secret that begins there has been seen whole.
    fn release(&mut self, end: usize, shown: &mut Vec<u8>) {
        let mut out = self.covered;
        let found = self.mask.patterns.as_ref().map(|patterns| patterns.every(&self.held));
        for secret in found.unwrap_or_default().into_iter().take_while(|found| found.start < end) {
            if secret.start >= out {
                shown.extend_from_slice(&self.held[out..secret.start]);
                shown.extend_from_slice(MASKED.as_bytes());
            }
            out = out.max(secret.end);
        }
        if out < end {
            shown.extend_from_slice(&self.held[out..end]);
            out = end;
        }
        self.covered = out - end;
        self.held.drain(..end);
    }
}
