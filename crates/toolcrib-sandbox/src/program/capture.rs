//! Capturing the beginning and the end of a stream in constant memory.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Changes a stream before any of it is cut or kept, for example to hide secrets. It gets one piece
/// after another, and `None` at the end, and appends its output to the vector.
pub type OutputFilter = Box<dyn FnMut(Option<&[u8]>, &mut Vec<u8>) + Send>;

/// Creates an [`OutputFilter`] for each stream.
pub type OutputFilters = Arc<dyn Fn() -> OutputFilter + Send + Sync>;

/// One of the outputs of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputKind {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Called with each piece of output as soon as it was read and
/// [filtered](crate::Command::filter_output). It must not block.
pub type OutputTap = Arc<dyn Fn(OutputKind, &[u8]) + Send + Sync>;

/// The number of bytes to keep of an output stream. The bytes between the head and the tail are
/// read, counted and dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capture {
    /// Bytes to keep of the beginning. Default 768 KiB.
    pub head: usize,
    /// Bytes to keep of the end. Default 256 KiB.
    pub tail: usize,
}

impl Default for Capture {
    fn default() -> Self {
        Self { head: 768 * 1024, tail: 256 * 1024 }
    }
}

/// The captured part of an output stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The beginning.
    pub head: Vec<u8>,
    /// The end; it directly follows the head if nothing was dropped.
    pub tail: Vec<u8>,
    /// The number of bytes that the program wrote, counted after the
    /// [filter](crate::Command::filter_output).
    pub total: u64,
}

impl Captured {
    /// The number of bytes between head and tail that were dropped.
    pub fn omitted(&self) -> u64 {
        self.total.saturating_sub((self.head.len() + self.tail.len()) as u64)
    }

    /// Whether bytes were dropped.
    pub fn is_truncated(&self) -> bool {
        self.omitted() > 0
    }

    /// All captured bytes, in order.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        if self.tail.is_empty() {
            Cow::Borrowed(&self.head)
        } else {
            Cow::Owned([self.head.as_slice(), &self.tail].concat())
        }
    }

    /// The stream as text; bytes that are not UTF-8 become U+FFFD. If bytes were dropped, a
    /// separate line says how many, and no character is split at the cut.
    ///
    /// ```
    /// use toolcrib_sandbox::Captured;
    ///
    /// let captured = Captured { head: b"begin".to_vec(), tail: b"end".to_vec(), total: 108 };
    /// assert_eq!(captured.text(), "begin\n[… 100 bytes omitted …]\nend");
    /// ```
    pub fn text(&self) -> String {
        self.text_with(|part| part)
    }

    /// The stream as [`text`](Self::text) returns it, with each captured part changed by the function: the whole stream
    /// if nothing was dropped, otherwise the head and the tail.
    pub fn text_with(&self, change: impl Fn(String) -> String) -> String {
        if !self.is_truncated() {
            return change(String::from_utf8_lossy(&self.bytes()).into_owned());
        }
        let head = without_split_end(&self.head);
        let tail = without_split_start(&self.tail);
        let omitted = self.total.saturating_sub((head.len() + tail.len()) as u64);
        let head = change(String::from_utf8_lossy(head).into_owned());
        let break_before = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        let tail = change(String::from_utf8_lossy(tail).into_owned());
        format!("{head}{break_before}[… {omitted} bytes omitted …]\n{tail}")
    }

    /// The stream without incomplete lines at the cut: the unfinished line at the end of the head, and the rest of a
    /// line at the start of the tail. They count as dropped. If nothing was dropped, this is the whole stream.
    pub fn whole_lines(&self) -> Cow<'_, Self> {
        if !self.is_truncated() {
            return Cow::Borrowed(self);
        }
        let is_end = |byte: &u8| *byte == b'\n';
        let head = self.head.iter().rposition(is_end).map_or(0, |end| end + 1);
        let tail = self.tail.iter().position(is_end).map_or(self.tail.len(), |end| end + 1);
        let (head, tail) = (self.head[..head].to_vec(), self.tail[tail..].to_vec());
        Cow::Owned(Self { head, tail, total: self.total })
    }
}

/// `bytes` without an unfinished character at its end.
fn without_split_end(bytes: &[u8]) -> &[u8] {
    // A character has at most four bytes, so the first byte of an unfinished one is among the last three.
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

/// Collects the pieces of a stream and keeps the part of its filtered content that a [`Capture`]
/// asks for.
pub(crate) struct Recorder {
    limits: Capture,
    filter: Option<OutputFilter>,
    tap: Option<(OutputKind, OutputTap)>,
    /// The filter's output; the buffer is reused for the next piece.
    passed: Vec<u8>,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Recorder {
    /// An empty recorder. Memory is allocated as the stream grows, up to the limits.
    pub(crate) fn new(limits: Capture, filters: Option<&OutputFilters>) -> Self {
        Self {
            limits,
            filter: filters.map(|filters| filters()),
            tap: None,
            passed: Vec::new(),
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
        }
    }

    /// Also passes the filtered stream to a tap.
    pub(crate) fn tapped(self, kind: OutputKind, tap: Option<&OutputTap>) -> Self {
        Self { tap: tap.map(|tap| (kind, Arc::clone(tap))), ..self }
    }

    /// Adds the next piece.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.pass(Some(piece));
    }

    /// Ends the stream: adds what the filter has held back.
    pub(crate) fn end(&mut self) {
        self.pass(None);
        self.filter = None;
        self.passed = Vec::new();
    }

    /// Sends a piece, or the end, through the filter.
    fn pass(&mut self, piece: Option<&[u8]>) {
        let Some(filter) = &mut self.filter else {
            self.keep(piece.unwrap_or_default());
            return;
        };
        let mut passed = std::mem::take(&mut self.passed);
        filter(piece, &mut passed);
        self.keep(&passed);
        passed.clear();
        self.passed = passed;
    }

    fn keep(&mut self, piece: &[u8]) {
        if let Some((kind, tap)) = self.tap.as_ref().filter(|_| !piece.is_empty()) {
            tap(*kind, piece);
        }
        self.total += piece.len() as u64;
        let room = self.limits.head - self.head.len();
        let (head, rest) = piece.split_at(room.min(piece.len()));
        self.head.extend_from_slice(head);

        let last = &rest[rest.len().saturating_sub(self.limits.tail)..];
        let overflow = (self.tail.len() + last.len()).saturating_sub(self.limits.tail);
        self.tail.drain(..overflow);
        self.tail.extend(last);
    }

    /// The captured part so far, without what the filter holds back.
    pub(crate) fn so_far(&self) -> Captured {
        Captured {
            head: self.head.clone(),
            tail: self.tail.iter().copied().collect(),
            total: self.total,
        }
    }

    /// The captured part of the whole stream.
    pub(crate) fn finish(mut self) -> Captured {
        self.end();
        Captured { head: self.head, tail: self.tail.into(), total: self.total }
    }
}

impl fmt::Debug for Recorder {
    /// Shows the sizes, not the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("limits", &self.limits)
            .field("total", &self.total)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(limits: Capture, pieces: &[Vec<u8>]) -> Captured {
        let mut recorder = Recorder::new(limits, None);
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
    fn what_is_kept_has_passed_the_filter_to_the_end() {
        // A filter that holds back one byte and doubles each byte.
        let filters: OutputFilters = Arc::new(|| {
            let mut held = Vec::new();
            Box::new(move |piece, passed| match piece {
                Some(piece) => {
                    held.extend_from_slice(piece);
                    let last = held.pop();
                    passed.extend(held.drain(..).flat_map(|byte| [byte, b'.']));
                    held.extend(last);
                }
                None => passed.extend(held.drain(..).map(|byte| byte.to_ascii_uppercase())),
            })
        });
        let mut recorder = Recorder::new(Capture { head: 3, tail: 3 }, Some(&filters));
        recorder.push(b"ab");
        assert_eq!(recorder.so_far().text(), "a.");
        recorder.push(b"cde");
        let captured = recorder.finish();
        assert_eq!(
            (captured.text().as_str(), captured.total),
            ("a.b\n[… 3 bytes omitted …]\nd.E", 9)
        );
    }

    #[test]
    fn whole_lines_are_without_what_was_cut_of_a_line() {
        let captured = |head: &str, tail: &str, total| Captured {
            head: head.into(),
            tail: tail.into(),
            total,
        };
        let whole = |captured: &Captured| captured.whole_lines().text();
        assert_eq!(whole(&captured("a\nb", "", 3)), "a\nb");
        assert_eq!(whole(&captured("a\nha", "lf\nb", 100)), "a\n[… 97 bytes omitted …]\nb");
        assert_eq!(whole(&captured("ha", "lf", 100)), "[… 100 bytes omitted …]\n");
        assert_eq!(whole(&captured("", "lf\nb\n", 100)), "[… 98 bytes omitted …]\nb\n");
    }

    #[test]
    fn the_marker_counts_the_bytes_that_are_not_shown() {
        let captured = record(Capture { head: 4, tail: 4 }, &["aaa€€bbb".into()]);
        assert_eq!(captured.omitted(), 4);
        assert_eq!(captured.text(), "aaa\n[… 6 bytes omitted …]\nbbb");
    }
}
