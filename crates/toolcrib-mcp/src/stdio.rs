//! Serving one client over a pair of byte streams.

use std::future::Future;
use std::pin::pin;

use rmcp::service::{QuitReason, ServerInitializeError, serve_server_with_ct};
use rmcp::transport::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::handler::Handler;
use crate::{McpError, McpServer};

impl McpServer {
    /// Serves the client at the other end of standard input and output until it closes its end
    /// or `shutdown` completes.
    ///
    /// Standard output carries protocol messages only: log to standard error. At the end of
    /// input, calls that are running have 5 s to be answered; after `shutdown`, 2 s. Then they
    /// are dropped.
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
        let handler = Handler::of_connection(self.clone());
        let opened = tokio::select! {
            opened = serve_server_with_ct(handler, (read, write), token.clone()) => opened,
            () = &mut shutdown => return Ok(()),
        };
        let connection = match opened {
            Ok(connection) => connection,
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
                return Ok(());
            }
            Err(error) => return Err(McpError::Handshake { reason: error.to_string() }),
        };
        let mut ended = pin!(connection.waiting());
        let quit = tokio::select! {
            quit = &mut ended => quit,
            () = &mut shutdown => {
                token.cancel();
                ended.await
            }
        };
        match quit {
            Ok(QuitReason::JoinError(error)) | Err(error) => Err(McpError::Task(error.into())),
            Ok(_) => Ok(()),
        }
    }
}
