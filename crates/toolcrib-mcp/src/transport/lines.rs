//! Lines between this server and one client over two byte streams.

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
use crate::transport::open_requests::OpenRequests;

/// The longest line in bytes, the same limit as in the protocol library.
pub(crate) const LINE_MAX: usize = 16 * 1024 * 1024;
/// Buffers larger than this, in bytes, are freed after use.
const BUFFER_KEPT_MAX: usize = 1024 * 1024;
/// The maximum number of bytes that wait to be written.
const WAITING_MAX: u32 = 16 * 1024 * 1024;
/// The maximum number of lines that are written at once.
const WRITE_BATCH: usize = 64;

/// A line from a client.
pub(crate) enum ClientLine {
    /// A line with its line feed, which only the last line may lack.
    Whole(BytesMut),
    /// A line longer than [`LINE_MAX`], which was discarded.
    TooLong,
}

/// Splits a client's bytes into lines.
#[derive(Default)]
pub(crate) struct ClientLines {
    /// How many bytes were searched without finding a line feed.
    searched: usize,
    /// Whether the rest of a line that is too long is being skipped.
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
            if length > BUFFER_KEPT_MAX && line.is_some() {
                // Frees the buffer of a long line, so that it does not stay allocated for the whole
                // connection.
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

    /// The last line may lack a line feed.
    fn decode_eof(&mut self, bytes: &mut BytesMut) -> io::Result<Option<ClientLine>> {
        let line = self.decode(bytes)?;
        if line.is_none() {
            self.searched = 0;
        }
        Ok(line.or_else(|| (!bytes.is_empty()).then(|| ClientLine::Whole(bytes.split()))))
    }
}

/// Queues lines for a client. Clones are cheap.
#[derive(Clone)]
pub(crate) struct Outbox {
    lines: UnboundedSender<QueuedLine>,
    room: Arc<Semaphore>,
}

/// A line that waits to be written, with the permit for its space.
type QueuedLine = (Vec<u8>, OwnedSemaphorePermit);

impl Outbox {
    /// Creates an outbox and the queue to pass to [`write_lines`].
    pub(crate) fn new() -> (Self, UnboundedReceiver<QueuedLine>) {
        let (lines, waiting) = unbounded_channel();
        (Self { lines, room: Arc::new(Semaphore::new(WAITING_MAX as usize)) }, waiting)
    }

    /// Queues a message as soon as there is space. The message is lost if the writer has ended.
    pub(crate) async fn send(&self, mut message: Vec<u8>) {
        if !message.ends_with(b"\n") {
            message.push(b'\n');
        }
        let bytes = u32::try_from(message.len()).map_or(WAITING_MAX, |len| len.min(WAITING_MAX));
        if let Ok(room) = Arc::clone(&self.room).acquire_many_owned(bytes).await {
            let _ = self.lines.send((message, room));
        }
    }

    /// Waits until there is space.
    pub(crate) async fn has_room(&self) {
        let _ = self.room.acquire().await;
    }

    /// A writer for the protocol library, which writes whole lines; exact numbers are restored. Requests
    /// that it answers are open no more.
    pub(crate) fn for_library(
        &self,
        open: OpenRequests,
    ) -> impl AsyncWrite + Send + Unpin + 'static {
        let begin = (self.clone(), open);
        let lines = sink::unfold(begin, |(outbox, open), lines: Bytes| async move {
            open.note_answers(&lines);
            let lines = restored(&lines).map_or_else(|| lines.into(), String::into_bytes);
            outbox.send(lines).await;
            io::Result::Ok((outbox, open))
        });
        SinkWriter::new(CopyToBytes::new(Box::pin(lines)))
    }
}

/// Writes queued lines until all senders are gone. If the client closes its end first, `ended` is
/// cancelled.
pub(crate) async fn write_lines(
    mut waiting: UnboundedReceiver<QueuedLine>,
    client: impl AsyncWrite + Unpin,
    ended: CancellationToken,
) {
    let (mut client, mut lines) = (BufWriter::new(client), Vec::new());
    while waiting.recv_many(&mut lines, WRITE_BATCH).await > 0 {
        let written = async {
            for (line, _room) in lines.drain(..) {
                client.write_all(&line).await?;
            }
            client.flush().await
        };
        if let Err(error) = written.await {
            // Nobody reads answers any more: end running calls and stop reading.
            tracing::info!(%error, "the client closed its end of the output stream");
            return ended.cancel();
        }
    }
}
