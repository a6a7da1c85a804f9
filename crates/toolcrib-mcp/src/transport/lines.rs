//! Lines between this server and one client over a pair of byte streams.

use std::io;
use std::sync::Arc;

use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::sink;
use memchr::memchr;
use tokio::io::{AsyncWrite, AsyncWriteExt as _, BufWriter};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::codec::Decoder;
use tokio_util::io::{CopyToBytes, SinkWriter};
use tokio_util::sync::CancellationToken;

use crate::transport::exact_numbers::restored;

/// The longest line, in bytes: as long as the protocol library reads.
pub(crate) const LINE_MAX: usize = 16 * 1024 * 1024;
/// Room that is kept once it is not needed any more, in bytes.
const KEPT_MAX: usize = 1024 * 1024;
/// The most that waits to be written, in bytes.
const WAITING_MAX: u32 = 16 * 1024 * 1024;
/// Lines that are written at once, at most.
const LINES_AT_ONCE: usize = 64;

/// What a client sent.
pub(crate) enum ClientLine {
    /// A line; its end is included, unless it is the last.
    Whole(BytesMut),
    /// A line that was longer than [`LINE_MAX`] and is lost.
    TooLong,
}

/// Cuts what a client sends into lines.
#[derive(Default)]
pub(crate) struct ClientLines {
    /// How many bytes hold no end of a line.
    searched: usize,
    /// Whether the rest of a line that is too long is passed over.
    passing: bool,
}

impl Decoder for ClientLines {
    type Item = ClientLine;
    type Error = io::Error;

    fn decode(&mut self, bytes: &mut BytesMut) -> io::Result<Option<ClientLine>> {
        let end = memchr(b'\n', &bytes[self.searched..]).map(|end| self.searched + end + 1);
        let length = end.unwrap_or(bytes.len());
        self.searched = if end.is_some() { 0 } else { length };
        if !self.passing && length <= LINE_MAX {
            let line = end.map(|end| ClientLine::Whole(bytes.split_to(end)));
            if length > KEPT_MAX && line.is_some() {
                // A long line is not paid for as long as the client stays.
                *bytes = BytesMut::from(&bytes[..]);
            }
            return Ok(line);
        }
        bytes.advance(length);
        self.searched = 0;
        let was_passing = std::mem::replace(&mut self.passing, end.is_none());
        match (was_passing, end) {
            (false, _) => Ok(Some(ClientLine::TooLong)),
            (true, None) => Ok(None),
            (true, Some(_)) => self.decode(bytes),
        }
    }

    /// The last line may have no end.
    fn decode_eof(&mut self, bytes: &mut BytesMut) -> io::Result<Option<ClientLine>> {
        let line = self.decode(bytes)?;
        if line.is_none() {
            self.searched = 0;
        }
        Ok(line.or_else(|| (!bytes.is_empty()).then(|| ClientLine::Whole(bytes.split()))))
    }
}

/// Where lines for a client are left. Cloning it is cheap.
#[derive(Clone)]
pub(crate) struct Outbox {
    lines: UnboundedSender<Line>,
    room: Arc<Semaphore>,
}

/// A line that waits to be written, and the room that it takes.
type Line = (Vec<u8>, OwnedSemaphorePermit);

impl Outbox {
    /// An outbox, and what has to be [written](write_lines).
    pub(crate) fn new() -> (Self, UnboundedReceiver<Line>) {
        let (lines, waiting) = unbounded_channel();
        (Self { lines, room: Arc::new(Semaphore::new(WAITING_MAX as usize)) }, waiting)
    }

    /// Leaves a message to be written, as soon as there is room for it. One that nobody writes any more is
    /// lost.
    pub(crate) async fn send(&self, mut message: Vec<u8>) {
        if !message.ends_with(b"\n") {
            message.push(b'\n');
        }
        let bytes = u32::try_from(message.len()).map_or(WAITING_MAX, |len| len.min(WAITING_MAX));
        if let Ok(room) = Arc::clone(&self.room).acquire_many_owned(bytes).await {
            let _ = self.lines.send((message, room));
        }
    }

    /// Waits until there is room.
    pub(crate) async fn has_room(&self) {
        let _ = self.room.acquire().await;
    }

    /// A writer for the protocol library, which writes whole lines; exact numbers are restored.
    pub(crate) fn for_library(&self) -> impl AsyncWrite + Send + Unpin + 'static {
        let lines = sink::unfold(self.clone(), |outbox, lines: Bytes| async move {
            let lines = restored(&lines).map_or_else(|| lines.into(), String::into_bytes);
            outbox.send(lines).await;
            io::Result::Ok(outbox)
        });
        SinkWriter::new(CopyToBytes::new(Box::pin(lines)))
    }
}

/// Writes what is left in an outbox until nobody can leave anything there. If the client closes its end
/// before, `ended` is cancelled.
pub(crate) async fn write_lines(
    mut waiting: UnboundedReceiver<Line>,
    client: impl AsyncWrite + Unpin,
    ended: CancellationToken,
) {
    let (mut client, mut lines) = (BufWriter::new(client), Vec::new());
    while waiting.recv_many(&mut lines, LINES_AT_ONCE).await > 0 {
        let written = async {
            for (line, _room) in lines.drain(..) {
                client.write_all(&line).await?;
            }
            client.flush().await
        };
        if let Err(error) = written.await {
            // Nobody reads answers any more: what was asked for ends, and nothing more is read.
            tracing::info!(%error, "the client closed the stream of answers");
            return ended.cancel();
        }
    }
}
