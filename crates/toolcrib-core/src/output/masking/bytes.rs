//! Masking byte streams, such as the output of programs.

use std::ops::Range;

use super::unescape::Readings;
use super::{MASKED, Mask};

/// Masks bytes piece by piece: the concatenated output equals [`Mask::text`] of the whole. The
/// bytes need not be UTF-8.
///
/// It holds back only a suffix that could be the beginning of a secret or of an escape: fewer bytes than the longest
/// spelling of a secret. At the end of the stream, such a suffix is emitted unchanged: masking parts of
/// secrets would tell a program whether its guess of the first characters is right.
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
    /// Input that was not emitted yet.
    held: Vec<u8>,
    /// How many bytes at the beginning of `held` belong to a secret whose mark was already emitted.
    covered: usize,
}

impl ByteStream {
    pub(super) fn new(mask: Mask) -> Self {
        Self { mask, held: Vec::new(), covered: 0 }
    }

    /// Replaces the mask, also for the bytes that are held back now.
    pub(super) fn set_mask(&mut self, mask: Mask) {
        self.mask = mask;
    }

    /// Takes a piece, and appends the masked output so far to `shown`.
    pub fn push(&mut self, piece: &[u8], shown: &mut Vec<u8>) {
        let Some(patterns) = self.mask.patterns.clone() else {
            self.finish(shown);
            shown.extend_from_slice(piece);
            return;
        };
        if self.passes(piece) {
            shown.extend_from_slice(piece);
            return;
        }
        self.held.extend_from_slice(piece);
        let readings = Readings::of(&self.held, false);
        let (found, end) = (patterns.every(&readings), patterns.open_end(&readings));
        self.release(found, end, shown);
    }

    /// Ends the stream, and appends what was held back to `shown`. The next piece begins a new
    /// stream.
    pub fn finish(&mut self, shown: &mut Vec<u8>) {
        let readings = Readings::of(&self.held, true);
        let found = self.mask.patterns.as_ref().map(|patterns| patterns.every(&readings));
        self.release(found.unwrap_or_default(), self.held.len(), shown);
    }

    /// Whether a piece is emitted unchanged, as most are: nothing is held back, and it contains
    /// neither a secret nor the beginning of one.
    pub(super) fn passes(&self, piece: &[u8]) -> bool {
        let Some(patterns) = &self.mask.patterns else { return self.held.is_empty() };
        if !self.held.is_empty() {
            return false;
        }
        let readings = Readings::of(piece, false);
        patterns.open_end(&readings) == piece.len() && !patterns.occurs_in(&readings)
    }

    /// How many bytes are held back.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Emits everything before `end`. Every secret that begins there is complete and was found.
    fn release(&mut self, found: Vec<Range<usize>>, end: usize, shown: &mut Vec<u8>) {
        let mut out = self.covered;
        for secret in found.into_iter().take_while(|found| found.start < end) {
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
