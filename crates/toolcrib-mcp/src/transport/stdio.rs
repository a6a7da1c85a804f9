//! Serves one client over two byte streams.

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
use crate::transport::open_requests::OpenRequests;
use crate::{McpError, McpServer};

/// The size of the read buffer and of the pipe to the protocol library, in bytes.
const BUFFER_SIZE: usize = 64 * 1024;
/// How long running calls may take after the end of input: as long as the protocol library waits
/// for its own.
const LAST_CALLS_LIMIT: Duration = Duration::from_secs(5);
/// How long a client may take to read the last messages.
const FLUSH_LIMIT: Duration = Duration::from_secs(2);

impl McpServer {
    /// Serves the client on standard input and output until it closes one of them or `shutdown`
    /// completes.
    ///
    /// Standard output carries protocol messages only: log to standard error. Running calls have 5
    /// s to finish after the end of input, and 2 s after `shutdown`; then they are dropped. A
    /// client that closes standard output is noticed at the next write: running calls are then
    /// cancelled, even if standard input is still open.
    ///
    /// If standard input is not a pipe (a terminal), a read stays behind on the runtime's blocking
    /// pool: end the runtime with `shutdown_background` or exit the process.
    ///
    /// Fails with [`McpError::Handshake`] if the client never opens a session. A client that closes
    /// the connection without a message is not a failure.
    pub async fn serve_stdio(&self, shutdown: impl Future<Output = ()>) -> Result<(), McpError> {
        let (read, write) = stdio_pipes();
        self.serve_io(read, write, shutdown).await
    }

    /// Like [`serve_stdio`](Self::serve_stdio), over any two byte streams: one JSON message per
    /// line of at most 16 MiB.
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
        let (library, from_client) = tokio::io::duplex(BUFFER_SIZE);
        let (outbox, waiting) = Outbox::new();
        let open = OpenRequests::default();
        let to_client = outbox.for_library(open.clone());
        let fast = LineFastPath::new(
            self.clone(),
            connection,
            outbox.clone(),
            open.clone(),
            token.clone(),
        );
        let lines = FramedRead::with_capacity(read, ClientLines::default(), BUFFER_SIZE);
        let reader = Reader { lines, fast, outbox, open, library };
        // A separate token: the library cancels its own when it ends, which is before calls are
        // answered.
        let library_ends = token.child_token();
        // Separate tasks, which end with this future.
        let reader = AbortOnDropHandle::new(tokio::spawn(reader.run(token.clone())));
        let writer = write_lines(waiting, write, token.clone());
        let writer = AbortOnDropHandle::new(tokio::spawn(writer));
        let opening = serve_server_with_ct(handler, (from_client, to_client), library_ends);
        let opened = tokio::select! {
            opened = Box::pin(opening) => opened,
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
        // The last messages are still on their way, if the client reads them.
        match tokio::time::timeout(FLUSH_LIMIT, writer).await {
            Ok(Err(error)) => Err(McpError::Task(error.into())),
            Ok(Ok(())) | Err(_) => ended,
        }
    }
}

/// Reads a client's lines: answers plain requests and unreadable messages itself, and passes the
/// others to the protocol library.
struct Reader<R> {
    lines: FramedRead<R, ClientLines>,
    fast: LineFastPath,
    outbox: Outbox,
    open: OpenRequests,
    library: DuplexStream,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    async fn run(mut self, ended: CancellationToken) {
        if let Some(Err(error)) = ended.run_until_cancelled(self.read()).await {
            tracing::error!(%error, "the client's input can no longer be read or passed on");
        }
        // The end of the client's input.
        drop(self.library);
        let _ = tokio::time::timeout(LAST_CALLS_LIMIT, self.fast.finish()).await;
    }

    async fn read(&mut self) -> std::io::Result<()> {
        loop {
            // Stop reading from a client that does not read its answers.
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
        if let Some(tape) = &tape {
            if self.fast.answer(tape).await {
                return Ok(());
            }
            if let Err(refusal) = self.open.note(tape) {
                self.outbox.send(refusal).await;
                return Ok(());
            }
        }
        let protected = protected(line, FROM_CLIENTS);
        self.library.write_all(protected.as_ref().map_or(line, String::as_bytes)).await?;
        self.library.write_all(b"\n").await
    }
}
