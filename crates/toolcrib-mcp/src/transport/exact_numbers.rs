//! Keeps numbers exact on their way through the protocol library, whose types hold 64-bit integers
//! and doubles.
//!
//! Before the library reads a message, each number that it would change is replaced by a stand-in
//! ([`toolcrib_json::exact`]) where a message holds data of tools: in the arguments of a call, in
//! answers to questions, and in structured content. The numbers are restored in what the library
//! writes. All other numbers of a message belong to the protocol.

use std::borrow::Cow;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response};
use http_body_util::{BodyExt as _, Full};
use rmcp::model::JsonObject;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use toolcrib_json::exact;

use crate::transport::http::McpBody;

/// The path of a member that holds data of tools.
pub(crate) type MemberPath = [&'static str; 2];

/// In messages from clients: the arguments of a call, and answers to questions, in a request or in
/// a response.
pub(crate) const FROM_CLIENTS: &[MemberPath] =
    &[["params", "arguments"], ["params", "inputResponses"], ["result", "content"]];
/// In messages from servers: the structured content of an answer.
pub(crate) const FROM_SERVERS: &[MemberPath] = &[["result", "structuredContent"]];

/// The message with stand-ins at these paths; `None` if none are needed.
pub(crate) fn protected(message: &[u8], places: &[MemberPath]) -> Option<String> {
    let text = std::str::from_utf8(message).ok()?;
    // This is nearly always the case: no other message is parsed a second time.
    if let Cow::Borrowed(_) = exact::protect(text) {
        return None;
    }
    let tape = toolcrib_json::parse(text).ok()?;
    let at = |[outer, inner]: &MemberPath| tape.root().get(outer)?.get(inner);
    let mut found: Vec<_> = places.iter().filter_map(at).collect();
    found.sort_unstable_by_key(|place| place.span().start);
    let (mut out, mut copied) = (String::new(), 0);
    for place in found {
        if let Cow::Owned(protected) = exact::protect(place.source()) {
            out.push_str(&text[copied..place.span().start]);
            out.push_str(&protected);
            copied = place.span().end;
        }
    }
    if copied == 0 {
        return None;
    }
    out.push_str(&text[copied..]);
    Some(out)
}

/// Replaces the number in each header that repeats an argument (`Mcp-Param-...`) by its stand-in in
/// the protected body, so that the library finds them equal.
pub(crate) fn protect_headers(headers: &mut HeaderMap, body: &str) {
    for (name, value) in headers.iter_mut() {
        let number = value.to_str().ok().filter(|_| name.as_str().starts_with("mcp-param-"));
        let Some(stand_in) = number.and_then(exact::stand_in) else { continue };
        if !body.contains(&stand_in) {
            continue;
        }
        // Texts beyond ASCII are encoded in headers.
        let encoded = format!("=?base64?{}?=", BASE64.encode(stand_in));
        if let Ok(encoded) = HeaderValue::try_from(encoded) {
            *value = encoded;
        }
    }
}

/// The library's output with the numbers in place of their stand-ins; `None` if there are none.
pub(crate) fn restored(written: &[u8]) -> Option<String> {
    match exact::restore(std::str::from_utf8(written).ok()?) {
        Cow::Borrowed(_) => None,
        Cow::Owned(restored) => Some(restored),
    }
}

/// The arguments of a call, in the library's type, as JSON text.
pub(crate) fn arguments_text(arguments: &JsonObject) -> serde_json::Result<String> {
    let text = serde_json::to_string(arguments)?;
    Ok(match exact::restore(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(restored) => restored,
    })
}

/// Restores a response of the library. Each event of a stream is one frame of its body.
pub(crate) async fn restored_response(response: Response<McpBody>) -> Response<McpBody> {
    let restore = |data: Bytes| restored(&data).map_or(data, Bytes::from);
    let (parts, body) = response.into_parts();
    let body = if http_body::Body::size_hint(&body).exact().is_some() {
        // The whole body is already in memory.
        let Ok(whole) = body.collect().await;
        Full::new(restore(whole.to_bytes())).boxed()
    } else {
        body.map_frame(move |frame| frame.map_data(restore)).boxed()
    };
    Response::from_parts(parts, body)
}

/// Reads a server's output line by line and puts stand-ins into structured content.
#[derive(Debug)]
pub(crate) struct ProtectedLines<R> {
    read: R,
    /// The start of a line that was read.
    line: Vec<u8>,
    /// Complete lines, and how much of them was handed on.
    out: Vec<u8>,
    handed_on: usize,
    ended: bool,
}

impl<R> ProtectedLines<R> {
    pub(crate) fn new(read: R) -> Self {
        Self { read, line: Vec::new(), out: Vec::new(), handed_on: 0, ended: false }
    }

    /// Processes bytes that were read; none at the end of the stream.
    fn take(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.line.extend_from_slice(&rest[..=end]);
            self.end_line();
            rest = &rest[end + 1..];
        }
        self.line.extend_from_slice(rest);
        if bytes.is_empty() {
            self.ended = true;
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        match protected(&self.line, FROM_SERVERS) {
            Some(protected) => self.out.extend_from_slice(protected.as_bytes()),
            None => self.out.extend_from_slice(&self.line),
        }
        self.line.clear();
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for ProtectedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.handed_on == this.out.len() && !this.ended {
            this.out.clear();
            this.handed_on = 0;
            let mut bytes = [0; 16 * 1024];
            let mut read = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut this.read).poll_read(cx, &mut read))?;
            this.take(read.filled());
        }
        let waiting = &this.out[this.handed_on..];
        let taken = waiting.len().min(buf.remaining());
        buf.put_slice(&waiting[..taken]);
        this.handed_on += taken;
        Poll::Ready(Ok(()))
    }
}

/// Restores numbers in what is written to a server. The writer passes complete messages.
#[derive(Debug)]
pub(crate) struct RestoredLines<W> {
    write: W,
    /// Restored bytes that are not written yet.
    waiting: Vec<u8>,
    written: usize,
}

impl<W: AsyncWrite + Unpin> RestoredLines<W> {
    pub(crate) fn new(write: W) -> Self {
        Self { write, waiting: Vec::new(), written: 0 }
    }

    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.waiting.len() {
            let rest = &self.waiting[self.written..];
            match ready!(Pin::new(&mut self.write).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.written += written,
            }
        }
        self.waiting.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for RestoredLines<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_waiting(cx))?;
        match restored(bytes) {
            // The rest of a message whose first part was written has no stand-ins either.
            None => Pin::new(&mut self.write).poll_write(cx, bytes),
            Some(restored) => {
                self.waiting = restored.into_bytes();
                match self.poll_waiting(cx) {
                    Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                    Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(bytes.len())),
                }
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_waiting(cx))?;
        Pin::new(&mut self.write).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_waiting(cx))?;
        Pin::new(&mut self.write).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const WIDE: &str = "123456789012345678901";

    #[test]
    fn only_data_of_tools_is_protected() {
        let call = format!(r#"{{"id":{WIDE},"params":{{"arguments":{{"n":{WIDE}}},"p":{WIDE}}}}}"#);
        let protected_call = protected(call.as_bytes(), FROM_CLIENTS).unwrap();
        assert_eq!(protected_call.matches(&format!(":{WIDE}")).count(), 2);
        assert_eq!(restored(protected_call.as_bytes()).unwrap(), call);
        for other in [format!(r#"{{"id":{WIDE}}}"#), r#"{"params":{"arguments":{"n":1}}}"#.into()] {
            assert_eq!(protected(other.as_bytes(), FROM_CLIENTS), None);
        }
        let answers = format!(
            r#"{{"params":{{"inputResponses":{{"a":{{"content":{{"n":{WIDE}}}}}}},"arguments":[{WIDE}]}}}}"#
        );
        let protected_answers = protected(answers.as_bytes(), FROM_CLIENTS).unwrap();
        assert!(!protected_answers.contains(&format!(":{WIDE}")));
        assert!(!protected_answers.contains(&format!("[{WIDE}")));
        assert_eq!(restored(protected_answers.as_bytes()).unwrap(), answers);
    }

    #[tokio::test]
    async fn lines_are_protected_and_restored_across_any_split() {
        let answer = format!("{{\"result\":{{\"structuredContent\":[{WIDE}]}}}}\n");
        let text = format!("{answer}{{}}\n{}", answer.trim_end());
        for piece in [1, 7, 1_000] {
            let (near, mut far) = tokio::io::duplex(piece);
            let sent = text.clone();
            let sending = tokio::spawn(async move { far.write_all(sent.as_bytes()).await });
            let mut protected = Vec::new();
            ProtectedLines::new(near).read_to_end(&mut protected).await.unwrap();
            sending.await.unwrap().unwrap();
            assert_eq!(restored(&protected).unwrap(), text);

            let (near, mut far) = tokio::io::duplex(piece);
            let writing = tokio::spawn(async move {
                let mut lines = RestoredLines::new(near);
                lines.write_all(&protected).await?;
                lines.shutdown().await
            });
            let mut written = String::new();
            far.read_to_string(&mut written).await.unwrap();
            writing.await.unwrap().unwrap();
            assert_eq!(written, text);
        }
    }
}
