//! Plain messages over a pair of byte streams, one a line.
//!
//! What stands between the client and the protocol library reads every line once. It answers those
//! that are plain and those that nobody can read, passes on the others and what the library says, and
//! writes as much at once as there is. A call that does not end at once is passed on, too, having begun: it holds up no line behind
//! it, and cancelling it is the library's affair.

#[cfg(test)]
pub(crate) mod tests;

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, BytesMut};
use memchr::{memchr, memrchr};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio_util::io::poll_read_buf;
use tokio_util::sync::CancellationToken;

use crate::fast_path::line_answers::Desk;
use crate::transport::exact_numbers::{FROM_CLIENTS, protected, restored};
use crate::transport::malformed::too_long;

/// The longest line, in bytes: as long as the protocol library reads.
const LINE_MAX: usize = 16 * 1024 * 1024;
/// Room that is kept once it is not needed any more, in bytes.
const KEPT_MAX: usize = 1024 * 1024;
/// Nothing more is read for somebody for whom more than this waits, in bytes.
const WAITING_MAX: usize = 16 * 1024 * 1024;
/// Room for what is read at once, in bytes.
const READ: usize = 64 * 1024;
/// Lines that are worked on before other tasks get their turn.
const LINES_PER_TURN: usize = 64;

/// Stands between a client and the protocol library.
pub(crate) struct Between<R, W> {
    desk: Desk,
    /// From then on nothing is read of the client.
    ended: CancellationToken,
    /// `None` once it says nothing more.
    from_client: Option<R>,
    lines: Lines,
    to_client: Outgoing,
    /// `None` once nobody is there to read.
    client: Option<W>,
    library: DuplexStream,
    /// A line of the library's that has not come to its end: nothing may come between.
    unended: Vec<u8>,
    to_library: Outgoing,
    /// Whether the library knows that the client says nothing more.
    library_told: bool,
    library_closed: bool,
}

impl<R, W> Between<R, W>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    /// Between the client at `read` and `write` and the library at the other end of `library`.
    pub(crate) fn new(
        desk: Desk,
        (read, write): (R, W),
        library: DuplexStream,
        ended: CancellationToken,
    ) -> Self {
        Self {
            desk,
            ended,
            from_client: Some(read),
            lines: Lines::default(),
            to_client: Outgoing::default(),
            client: Some(write),
            library,
            unended: Vec::new(),
            to_library: Outgoing::default(),
            library_told: false,
            library_closed: false,
        }
    }

    /// Goes on until the library has closed its end and all it has said is written.
    pub(crate) async fn run(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut lines = 0;
        loop {
            let mut moved = self.hear_library(cx);
            moved |= self.hear_client(cx);
            let worked_on = self.work(cx, LINES_PER_TURN - lines);
            lines += worked_on;
            moved |= worked_on > 0;
            moved |= self.tell_client(cx);
            moved |= self.tell_library(cx);
            if self.library_closed && self.to_client.is_done() {
                return Poll::Ready(());
            }
            if lines >= LINES_PER_TURN {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if !moved {
                return Poll::Pending;
            }
        }
    }

    /// Reads what the library has to say; whether it was something.
    fn hear_library(&mut self, cx: &mut Context<'_>) -> bool {
        if self.library_closed || self.to_client.len() > WAITING_MAX {
            return false;
        }
        self.unended.reserve(READ);
        let begun = self.unended.len();
        match poll_read_buf(Pin::new(&mut self.library), cx, &mut self.unended) {
            Poll::Pending => false,
            Poll::Ready(read) => {
                self.library_closed = !matches!(read, Ok(1..));
                let ended = memrchr(b'\n', &self.unended[begun..]).map(|end| begun + end + 1);
                // Of the last line there may be no end.
                let ended = ended.or(self.library_closed.then_some(self.unended.len()));
                let ended = ended.unwrap_or_default();
                if self.client.is_some() {
                    let lines = &self.unended[..ended];
                    match restored(lines) {
                        Some(restored) => {
                            self.to_client.bytes.extend_from_slice(restored.as_bytes());
                        }
                        None => self.to_client.bytes.extend_from_slice(lines),
                    }
                }
                self.unended.drain(..ended);
                if self.unended.is_empty() && self.unended.capacity() > KEPT_MAX {
                    self.unended = Vec::new();
                }
                true
            }
        }
    }

    /// Reads what the client has to say; whether it was something, or its end.
    fn hear_client(&mut self, cx: &mut Context<'_>) -> bool {
        let waiting = self.to_client.len().max(self.to_library.len());
        let Some(read) = self.from_client.as_mut().filter(|_| waiting <= WAITING_MAX) else {
            return false;
        };
        if self.lines.has_some() {
            return false;
        }
        self.lines.bytes.reserve(READ);
        match poll_read_buf(Pin::new(read), cx, &mut self.lines.bytes) {
            Poll::Pending => false,
            Poll::Ready(read) => {
                let ended = self.ended.is_cancelled();
                if ended {
                    self.lines = Lines::default();
                }
                if ended || !matches!(read, Ok(1..)) {
                    if let Err(error) = read {
                        tracing::error!(%error, "a client cannot be read any more");
                    }
                    self.from_client = None;
                    self.lines.end();
                }
                true
            }
        }
    }

    /// Works on lines that are there, on so many at most; how many they were.
    fn work(&mut self, cx: &mut Context<'_>, most: usize) -> usize {
        let mut worked_on = 0;
        while worked_on < most && self.to_client.len() <= WAITING_MAX {
            let Some((bytes, piece)) = self.lines.next() else { break };
            let line = &self.lines.bytes[..bytes];
            match piece {
                Piece::Line => {
                    let answered = self.client.is_some()
                        && self.desk.answer(line, &mut self.to_client.bytes, cx);
                    if !answered {
                        match protected(line, FROM_CLIENTS) {
                            Some(protected) => {
                                self.to_library.bytes.extend_from_slice(protected.as_bytes());
                            }
                            None => self.to_library.bytes.extend_from_slice(line),
                        }
                    }
                }
                Piece::TooLong if self.client.is_some() => {
                    self.to_client.bytes.extend(too_long(LINE_MAX).answer());
                    self.to_client.bytes.push(b'\n');
                }
                Piece::TooLong | Piece::More => {}
            }
            self.lines.advance(bytes);
            worked_on += 1;
        }
        worked_on
    }

    fn tell_client(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(client) = &mut self.client else { return false };
        match self.to_client.write(client, cx) {
            Ok(moved) => moved,
            Err(error) => {
                // Nobody reads answers any more: what was asked for ends, and nothing more is heard.
                tracing::info!(%error, "the client closed the stream of answers");
                self.client = None;
                self.to_client.clear();
                self.from_client = None;
                self.lines = Lines::default();
                self.ended.cancel();
                true
            }
        }
    }

    fn tell_library(&mut self, cx: &mut Context<'_>) -> bool {
        match self.to_library.write(&mut self.library, cx) {
            Ok(true) => return true,
            Ok(false) => {}
            // It has ended; what is said to it is lost with it.
            Err(_) => self.to_library.clear(),
        }
        let over = self.from_client.is_none() && !self.lines.has_some();
        if over && self.to_library.is_done() && !self.library_told {
            let told = Pin::new(&mut self.library).poll_shutdown(cx);
            self.library_told = told.is_ready();
            return self.library_told;
        }
        false
    }
}

/// What was read of a client and is not yet worked on.
#[derive(Default)]
struct Lines {
    bytes: BytesMut,
    /// How much of it holds no end of a line.
    looked_at: usize,
    /// Whether the rest of a line that is too long is passed over.
    passing: bool,
}

/// What there is to work on.
#[derive(Clone, Copy)]
enum Piece {
    /// A line, its end included.
    Line,
    /// The beginning of one that is too long, or all of it.
    TooLong,
    /// More of that.
    More,
}

impl Lines {
    /// Whether the next piece is there.
    fn has_some(&mut self) -> bool {
        self.next().is_some()
    }

    /// The next piece and its length.
    fn next(&mut self) -> Option<(usize, Piece)> {
        let end = memchr(b'\n', &self.bytes[self.looked_at..]);
        let length = end.map_or(self.bytes.len(), |end| self.looked_at + end + 1);
        if end.is_none() {
            self.looked_at = length;
        }
        match (self.passing, length > LINE_MAX) {
            (true, _) => (length > 0).then_some((length, Piece::More)),
            (false, true) => Some((length, Piece::TooLong)),
            (false, false) => end.map(|_| (length, Piece::Line)),
        }
    }

    /// The next piece is worked on.
    fn advance(&mut self, bytes: usize) {
        self.passing = self.bytes[bytes - 1] != b'\n';
        self.bytes.advance(bytes);
        self.looked_at = 0;
        if bytes > KEPT_MAX {
            // A long line is not paid for as long as the client stays.
            self.bytes = BytesMut::from(&self.bytes[..]);
        }
    }

    /// There is nothing more to come: what is there is the last line.
    fn end(&mut self) {
        if !self.bytes.is_empty() && !self.passing {
            self.bytes.extend_from_slice(b"\n");
        }
    }
}

/// What is to be written.
#[derive(Default)]
struct Outgoing {
    bytes: Vec<u8>,
    written: usize,
    /// Whether a writer may hold some of it back.
    unflushed: bool,
}

impl Outgoing {
    fn len(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Whether all of it is where it should be.
    fn is_done(&self) -> bool {
        self.len() == 0 && !self.unflushed
    }

    /// Forgets it.
    fn clear(&mut self) {
        self.written = 0;
        self.unflushed = false;
        if self.bytes.capacity() > KEPT_MAX {
            // A large answer is not paid for as long as the client stays.
            self.bytes = Vec::new();
        }
        self.bytes.clear();
    }

    /// Writes as much as is taken; whether it was something.
    fn write(
        &mut self,
        writer: &mut (impl AsyncWrite + Unpin),
        cx: &mut Context<'_>,
    ) -> std::io::Result<bool> {
        let mut moved = false;
        while self.len() > 0 {
            match Pin::new(&mut *writer).poll_write(cx, &self.bytes[self.written..]) {
                Poll::Ready(Ok(0)) => return Err(std::io::ErrorKind::WriteZero.into()),
                Poll::Ready(written) => self.written += written?,
                Poll::Pending => return Ok(moved),
            }
            self.unflushed = true;
            moved = true;
        }
        if self.unflushed && Pin::new(writer).poll_flush(cx)?.is_ready() {
            self.clear();
            moved = true;
        }
        Ok(moved)
    }
}
