//! Serving one client over a pair of byte streams.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use rmcp::service::{QuitReason, ServerInitializeError, serve_server_with_ct};
use rmcp::transport::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio_util::codec::FramedRead;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::fast_path::LineFastPath;
use crate::handler::Handler;
use crate::session::connection::Connection;
use crate::transport::exact_numbers::{FROM_CLIENTS, protected};
use crate::transport::lines::{ClientLine, ClientLines, LINE_MAX, Outbox, write_lines};
use crate::transport::malformed::{too_deep, too_long, unreadable};
use crate::{McpError, McpServer};

/// Room for what is read at once, and for what is passed on to the protocol library, in bytes.
const ROOM: usize = 64 * 1024;
/// How long calls that are running at the end of input have to be answered: as long as the protocol library
/// waits for those that it has.
const LAST_CALLS: Duration = Duration::from_secs(5);
/// How long a client may take to read what it is told last.
const LAST_WORDS: Duration = Duration::from_secs(2);

impl McpServer {
    /// Serves the client at the other end of standard input and output until it closes one of its ends
    /// or `shutdown` completes.
    ///
    /// Standard output carries protocol messages only: log to standard error. At the end of
    /// input, calls that are running have 5 s to be answered; after `shutdown`, 2 s. Then they
    /// are dropped. A client that no longer reads its answers is noticed when the next one is written:
    /// calls that are running are cancelled, although its requests could still be read.
    ///
    /// Where standard input is not a pipe (a terminal), a read stays behind on the runtime's
    /// blocking pool: end the runtime with `shutdown_background` or by leaving the process.
    ///
    /// Fails with [`McpError::Handshake`] if the client never opens a session. A client that
    /// closes before it says anything is no failure.
    pub async fn serve_stdio(&self, shutdown: impl Future<Output = ()>) -> Result<(), McpError> {
        let (read, write) = stdio_pipes();
        self.serve_io(read, write, shutdown).await
    }

    /// Like [`serve_stdio`](Self::serve_stdio), over any two byte streams: one JSON message a
    /// line, 16 MiB at most.
    pub async fn serve_io<R, W>(
        &self,
        read: R,
        write: W,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), McpError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let token = self.closing().child_token();
        let mut shutdown = pin!(shutdown);
        let _ended = token.clone().drop_guard();
        let connection = Arc::new(Connection::new(self));
        let handler = Handler::of_connection(self.clone(), Arc::clone(&connection));
        let (library, from_client) = tokio::io::duplex(ROOM);
        let (outbox, waiting) = Outbox::new();
        let to_client = outbox.for_library();
        let fast = LineFastPath::new(self.clone(), connection, outbox.clone(), token.clone());
        let lines = FramedRead::with_capacity(read, ClientLines::default(), ROOM);
        let reader = Reader { lines, fast, outbox, library };
        // Of its own: the library cancels it when it has ended, which is before calls are answered.
        let library_ends = token.child_token();
        // Tasks of their own, which end with this future.
        let reader = AbortOnDropHandle::new(tokio::spawn(reader.run(token.clone())));
        let writer = write_lines(waiting, write, token.clone());
        let writer = AbortOnDropHandle::new(tokio::spawn(writer));
        let opened = tokio::select! {
            opened = serve_server_with_ct(handler, (from_client, to_client), library_ends) => opened,
            () = &mut shutdown => return Ok(()),
        };
        let ended = match opened {
            Ok(connection) => {
                let mut ended = pin!(connection.waiting());
                let quit = tokio::select! {
                    quit = &mut ended => quit,
                    () = &mut shutdown => {
                        token.cancel();
                        ended.await
                    }
                };
                if !matches!(quit, Ok(QuitReason::Closed)) {
                    token.cancel();
                }
                match quit {
                    Ok(QuitReason::JoinError(error)) | Err(error) => {
                        Err(McpError::Task(error.into()))
                    }
                    Ok(_) => Ok(()),
                }
            }
            Err(error) => {
                token.cancel();
                match error {
                    ServerInitializeError::ConnectionClosed(_)
                    | ServerInitializeError::Cancelled => Ok(()),
                    error => Err(McpError::Handshake { reason: error.to_string() }),
                }
            }
        };
        reader.await.map_err(|error| McpError::Task(error.into()))?;
        // What was said last is still on its way to the client, if that reads it.
        match tokio::time::timeout(LAST_WORDS, writer).await {
            Ok(Err(error)) => Err(McpError::Task(error.into())),
            Ok(Ok(())) | Err(_) => ended,
        }
    }
}

/// Reads the lines of a client: answers those that are plain requests and those that nobody can read, and
/// passes the others on to the protocol library.
struct Reader<R> {
    lines: FramedRead<R, ClientLines>,
    fast: LineFastPath,
    outbox: Outbox,
    library: DuplexStream,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    async fn run(mut self, ended: CancellationToken) {
        if let Some(Err(error)) = ended.run_until_cancelled(self.read()).await {
            tracing::error!(%error, "what a client sends can no longer be read or passed on");
        }
        // The end of its input.
        drop(self.library);
        let _ = tokio::time::timeout(LAST_CALLS, self.fast.finish()).await;
    }

    async fn read(&mut self) -> std::io::Result<()> {
        loop {
            // Nothing is read of a client that does not read what it is told.
            self.outbox.has_room().await;
            let Some(line) = self.lines.next().await else { return Ok(()) };
            match line? {
                ClientLine::Whole(line) => self.work_on(line.trim_ascii_end()).await?,
                ClientLine::TooLong => self.outbox.send(too_long(LINE_MAX).answer()).await,
            }
        }
    }

    async fn work_on(&mut self, line: &[u8]) -> std::io::Result<()> {
        if line.is_empty() {
            return Ok(());
        }
        let tape = std::str::from_utf8(line).ok().and_then(|line| toolcrib_json::parse(line).ok());
        let error = tape.as_ref().map_or_else(|| unreadable(line), |tape| too_deep(tape.text()));
        if let Some(error) = error {
            self.outbox.send(error.answer()).await;
            return Ok(());
        }
        if let Some(tape) = &tape
            && self.fast.answer(tape).await
        {
            return Ok(());
        }
        let protected = protected(line, FROM_CLIENTS);
        self.library.write_all(protected.as_ref().map_or(line, String::as_bytes)).await?;
        self.library.write_all(b"\n").await
    }
}
