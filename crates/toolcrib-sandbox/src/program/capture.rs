//! Keeping the beginning and the end of a stream of any length in constant memory.

use std::borrow::Cow;
use std::collections::VecDeque;

/// How much of an output stream is kept, in bytes. What comes after the head and before the tail
/// is read, counted and thrown away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capture {
    /// Bytes kept of the beginning. Default 768 KiB.
    pub head: usize,
    /// Bytes kept of the end. Default 256 KiB.
    pub tail: usize,
}

impl Default for Capture {
    fn default() -> Self {
        Self { head: 768 * 1024, tail: 256 * 1024 }
    }
}

/// What was kept of an output stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The beginning.
    pub head: Vec<u8>,
    /// The end; follows the head directly if nothing was left out.
    pub tail: Vec<u8>,
    /// How many bytes the program wrote.
    pub total: u64,
}

impl Captured {
    /// How many bytes between head and tail were thrown away.
    pub fn omitted(&self) -> u64 {
        self.total.saturating_sub((self.head.len() + self.tail.len()) as u64)
    }

    /// Whether something was thrown away.
    pub fn is_truncated(&self) -> bool {
        self.omitted() > 0
    }

    /// All bytes kept, one after another.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        if self.tail.is_empty() {
            Cow::Borrowed(&self.head)
        } else {
            Cow::Owned([self.head.as_slice(), &self.tail].concat())
        }
    }

    /// The stream as text; what is not UTF-8 becomes U+FFFD. If something was thrown away, a line
    /// of its own says how many bytes, and no character is split at the seam.
    ///
    /// ```
    /// use toolcrib_sandbox::Captured;
    ///
    /// let captured = Captured { head: b"begin".to_vec(), tail: b"end".to_vec(), total: 108 };
    /// assert_eq!(captured.text(), "begin\n[… 100 bytes omitted …]\nend");
    /// ```
    pub fn text(&self) -> String {
        if !self.is_truncated() {
            return String::from_utf8_lossy(&self.bytes()).into_owned();
        }
        let head = without_split_end(&self.head);
        let tail = without_split_start(&self.tail);
        let omitted = self.total.saturating_sub((head.len() + tail.len()) as u64);
        let head = String::from_utf8_lossy(head);
        let break_before = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        let tail = String::from_utf8_lossy(tail);
        format!("{head}{break_before}[… {omitted} bytes omitted …]\n{tail}")
    }
}

/// `bytes` without an unfinished character at its end.
fn without_split_end(bytes: &[u8]) -> &[u8] {
    // A character has at most four bytes: its first byte, if it is cut off, is one of the last three.
    for back in 1..=bytes.len().min(3) {
        let start = bytes.len() - back;
        let length = match bytes[start] {
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            0x80..=0xBF => continue,
            _ => 1,
        };
        return if length > back { &bytes[..start] } else { bytes };
    }
    bytes
}

/// `bytes` without the rest of a character at its start.
fn without_split_start(bytes: &[u8]) -> &[u8] {
    let rest = bytes.iter().take(3).take_while(|byte| matches!(byte, 0x80..=0xBF)).count();
    &bytes[rest..]
}

/// Takes a stream in pieces and keeps what a [`Capture`] asks for.
#[derive(Debug)]
pub(crate) struct Recorder {
    limits: Capture,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Recorder {
    /// An empty one. Memory is taken as the stream grows, never more than the limits.
    pub(crate) fn new(limits: Capture) -> Self {
        Self { limits, head: Vec::new(), tail: VecDeque::new(), total: 0 }
    }

    /// Takes the next piece.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.total += piece.len() as u64;
        let room = self.limits.head - self.head.len();
        let (head, rest) = piece.split_at(room.min(piece.len()));
        self.head.extend_from_slice(head);

        let last = &rest[rest.len().saturating_sub(self.limits.tail)..];
        let overflow = (self.tail.len() + last.len()).saturating_sub(self.limits.tail);
        self.tail.drain(..overflow);
        self.tail.extend(last);
    }

    /// What has been kept so far.
    pub(crate) fn so_far(&self) -> Captured {
        Captured {
            head: self.head.clone(),
            tail: self.tail.iter().copied().collect(),
            total: self.total,
        }
    }

    /// What was kept.
    pub(crate) fn finish(self) -> Captured {
        Captured { head: self.head, tail: self.tail.into(), total: self.total }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(limits: Capture, pieces: &[Vec<u8>]) -> Captured {
        let mut recorder = Recorder::new(limits);
        for piece in pieces {
            recorder.push(piece);
        }
        recorder.finish()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn head_and_tail_are_those_of_the_whole_stream(
            head in 0_usize..20,
            tail in 0_usize..20,
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..8),
        ) {
            let captured = record(Capture { head, tail }, &pieces);
            let whole = pieces.concat();
            let kept_head = &whole[..whole.len().min(head)];
            let rest = &whole[kept_head.len()..];
            prop_assert_eq!(&captured.head, kept_head);
            prop_assert_eq!(&captured.tail, &rest[rest.len().saturating_sub(tail)..]);
            prop_assert_eq!(captured.total, whole.len() as u64);
        }

        #[test]
        fn no_character_is_split_at_the_seam(
            head in 0_usize..20,
            tail in 0_usize..20,
            text in "[a-zäß€日🦀]{0,60}",
        ) {
            let captured = record(Capture { head, tail }, &[text.clone().into_bytes()]);
            let shown = captured.text();
            prop_assert!(!shown.contains('\u{fffd}'), "{}", shown);
            if !captured.is_truncated() {
                prop_assert_eq!(shown, text);
            }
        }
    }

    #[test]
    fn the_marker_counts_the_bytes_that_are_not_shown() {
        let captured = record(Capture { head: 4, tail: 4 }, &["aaa€€bbb".into()]);
        assert_eq!(captured.omitted(), 4);
        assert_eq!(captured.text(), "aaa\n[… 6 bytes omitted …]\nbbb");
    }
}
