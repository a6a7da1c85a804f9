//! Fails the call at once, instead of at its timeout, if its answer is too long.
//!
//! The protocol library skips a line that is longer than its limit without a report. This reader
//! replaces such an answer with an error for its request.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};

/// The longest line that is read as a message, in bytes: the protocol library's own limit.
const LINE_MAX: usize = 16 * 1024 * 1024;
/// How many bytes of the start of a line are kept to identify the message.
const HEAD_KEPT: usize = 1024;
/// How many bytes of its end are kept, where the id follows the result.
const TAIL_KEPT: usize = 256;
/// The number of bytes read at once.
const READ_SIZE: usize = 16 * 1024;

/// A reader of a server's output that adds an error after each answer that is too long.
#[derive(Debug)]
pub(crate) struct LongLines<R> {
    read: R,
    line: CurrentLine,
    /// Bytes that are ready to be handed on.
    out: BytesMut,
    scratch: Box<[u8]>,
}

/// The line that is being read.
#[derive(Debug, Default)]
struct CurrentLine {
    length: usize,
    head: Vec<u8>,
    /// Kept only for a line that is too long.
    tail: Vec<u8>,
    /// The error was handed on; the rest of the line is skipped.
    failed: bool,
}

impl<R> LongLines<R> {
    pub(crate) fn new(read: R) -> Self {
        let (line, out) = (CurrentLine::default(), BytesMut::new());
        Self { read, line, out, scratch: vec![0; READ_SIZE].into_boxed_slice() }
    }
}

impl CurrentLine {
    /// Adds bytes of the line, without its end.
    fn take(&mut self, bytes: &[u8], out: &mut BytesMut) {
        let room = HEAD_KEPT - self.head.len().min(HEAD_KEPT);
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        // One byte over the limit tells the library that the line is too long.
        let passed = (LINE_MAX + 1).saturating_sub(self.length).min(bytes.len());
        out.extend_from_slice(&bytes[..passed]);
        self.length += bytes.len();
        if self.length <= LINE_MAX || self.failed {
            return;
        }
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL_KEPT)..]);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL_KEPT));
        if let Some(MessageHead { id: Some(id), is_answer: true }) = MessageHead::of(&self.head) {
            out.extend_from_slice(b"\n");
            fail(id, out);
            self.failed = true;
        }
    }

    /// Handles the end of the line.
    fn end(&mut self, out: &mut BytesMut) {
        if !self.failed {
            out.extend_from_slice(b"\n");
            let is_answer = || MessageHead::of(&self.head).is_some_and(|head| head.is_answer);
            if self.length > LINE_MAX
                && is_answer()
                && let Some(id) = id_at_end(&self.tail)
            {
                fail(id, out);
            }
        }
        *self = Self::default();
    }
}

/// Answers the request `id`, given as JSON, with an error.
fn fail(id: &str, out: &mut BytesMut) {
    let megabytes = LINE_MAX / (1024 * 1024);
    let error = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"the answer is longer than {megabytes} MiB"}}}}"#
    );
    out.extend_from_slice(error.as_bytes());
    out.extend_from_slice(b"\n");
}

/// What the start of a message reveals.
struct MessageHead<'a> {
    id: Option<&'a str>,
    /// Whether the long value in it is the result or error of a request.
    is_answer: bool,
}

impl<'a> MessageHead<'a> {
    /// Reads the members of an object that are complete.
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = bytes.trim_ascii_start().strip_prefix(b"{")?;
        let mut id = None;
        loop {
            let (key, behind) = text(rest.trim_ascii_start())?;
            let value = behind.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
            let Some((scalar, behind)) = scalar(value) else {
                let is_answer = key == r#""result""# || key == r#""error""#;
                return Some(Self { id, is_answer });
            };
            if key == r#""id""# {
                id = Some(scalar);
            }
            rest = behind.trim_ascii_start().strip_prefix(b",")?;
        }
    }
}

/// The id of a message whose id comes last, or last before the version.
fn id_at_end(tail: &[u8]) -> Option<&str> {
    // The tail may start in the middle of a character.
    let ascii = tail.iter().rposition(|byte| !byte.is_ascii()).map_or(0, |last| last + 1);
    let (_, member) = std::str::from_utf8(&tail[ascii..]).ok()?.rsplit_once(r#""id""#)?;
    let value = member.trim_start().strip_prefix(':')?.trim_start();
    let (id, behind) = scalar(value.as_bytes())?;
    let behind: Vec<u8> =
        behind.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    (behind == b"}" || behind == br#","jsonrpc":"2.0"}"#).then_some(id)
}

/// A string with its quotes, and the bytes after it.
fn text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let inside = bytes.strip_prefix(b"\"")?;
    let mut escaped = false;
    let end = inside.iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })?;
    let (text, rest) = bytes.split_at(end + 2);
    Some((std::str::from_utf8(text).ok()?, rest))
}

/// A string or an integer, and the bytes after it.
fn scalar(bytes: &[u8]) -> Option<(&str, &[u8])> {
    if bytes.starts_with(b"\"") {
        return text(bytes);
    }
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'-')?;
    let (number, rest) = bytes.split_at_checked(end).filter(|(number, _)| !number.is_empty())?;
    Some((std::str::from_utf8(number).ok()?, rest))
}

impl<R: AsyncRead + Unpin> AsyncRead for LongLines<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { read, line, out, scratch } = self.get_mut();
        while out.is_empty() {
            let mut chunk = ReadBuf::new(scratch);
            ready!(Pin::new(&mut *read).poll_read(cx, &mut chunk))?;
            let mut rest = chunk.filled();
            if rest.is_empty() {
                return Poll::Ready(Ok(()));
            }
            while let Some(end) = memchr::memchr(b'\n', rest) {
                line.take(&rest[..end], out);
                line.end(out);
                rest = &rest[end + 1..];
            }
            line.take(rest, out);
        }
        let handed = out.len().min(buf.remaining());
        buf.put_slice(&out[..handed]);
        out.advance(handed);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    /// The output, without the long line itself.
    async fn behind_the_long_line(before: &str, after: &str) -> String {
        let text = format!("{before}{}{after}\nnext\n", "x".repeat(LINE_MAX + 1));
        let mut all = Vec::new();
        LongLines::new(text.as_bytes()).read_to_end(&mut all).await.unwrap();
        let end = all.iter().position(|byte| *byte == b'\n').unwrap();
        assert_eq!(end, LINE_MAX + 1);
        String::from_utf8(all[end + 1..].to_vec()).unwrap()
    }

    #[tokio::test]
    async fn an_answer_that_is_too_long_is_followed_by_an_error_for_its_request() {
        for (before, after, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"text":""#, r#""}}"#, "7"),
            (r#"{"jsonrpc": "2.0", "id": "a\"b", "result": {"text": ""#, r#""}}"#, r#""a\"b""#),
            (r#"{"result":{"text":""#, r#""},"jsonrpc":"2.0","id":12}"#, "12"),
            (r#"{"result":{"text":"é"#, r#"é"}, "id": 3, "jsonrpc": "2.0"}"#, "3"),
        ] {
            let rest = behind_the_long_line(before, after).await;
            let says = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"#);
            assert!(rest.starts_with(&says) && rest.ends_with("}\nnext\n"), "{rest}");
            assert!(rest.contains("longer than 16 MiB"), "{rest}");
        }
    }

    #[tokio::test]
    async fn other_long_lines_cause_no_error() {
        for (before, after) in [
            ("", ""),
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"text":""#, r#""}}"#),
            (r#"{"params":{"text":""#, r#""},"jsonrpc":"2.0","id":7,"method":"ping"}"#),
            (r#"{"jsonrpc":"2.0","method":"x","params":{"a":""#, r#""},"id":7}"#),
        ] {
            assert_eq!(behind_the_long_line(before, after).await, "next\n", "{before}");
        }
    }

    #[tokio::test]
    async fn all_else_comes_through_as_it_is() {
        let text = "{\"a\":1}\r\n\n{\"id\":1,\"result\":{}}\nunended".repeat(10_000);
        let mut all = String::new();
        LongLines::new(text.as_bytes()).read_to_string(&mut all).await.unwrap();
        assert!(all == text);
    }
}
