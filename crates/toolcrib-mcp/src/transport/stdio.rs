//! Serving one client over a pair of byte streams.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{QuitReason, ServerInitializeError, serve_server_with_ct};
use rmcp::transport::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::task::AbortOnDropHandle;

use crate::fast_path::{Between, Desk};
use crate::handler::Handler;
use crate::session::connection::Connection;
use crate::{McpError, McpServer};

/// Room for what is passed on to the protocol library, and for what it says, in bytes.
const PASSED_ON: usize = 64 * 1024;

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
        let desk = Desk::new(self.clone(), Arc::clone(&connection));
        let handler = Handler::of_connection(self.clone(), connection);
        let (ours, theirs) = tokio::io::duplex(PASSED_ON);
        let between = Between::new(desk, (read, write), ours, token.clone());
        // A task of its own, so that it is woken where what is read arrives. It ends with this future.
        let between = AbortOnDropHandle::new(tokio::spawn(between.run()));
        let opened = tokio::select! {
            opened = serve_server_with_ct(handler, theirs, token.clone()) => opened,
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
                match quit {
                    Ok(QuitReason::JoinError(error)) | Err(error) => {
                        Err(McpError::Task(error.into()))
                    }
                    Ok(_) => Ok(()),
                }
            }
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
                Ok(())
            }
            Err(error) => Err(McpError::Handshake { reason: error.to_string() }),
        };
        // What was said last is still on its way to the client, if that reads it.
        match tokio::time::timeout(LAST_WORDS, between).await {
            Ok(Err(error)) => Err(McpError::Task(error.into())),
            Ok(Ok(())) | Err(_) => ended,
        }
    }
}
