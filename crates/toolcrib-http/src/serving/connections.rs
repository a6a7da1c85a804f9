//! Accepts, bounds and closes connections.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::http::header::UPGRADE;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use crate::auth::host_check::LocalAddress;
use crate::observability::traffic::Traffic;
use crate::serving::drained_body::DrainedBody;
use crate::serving::owner_socket::OwnerSocket;
use crate::serving::routes::Routes;
use crate::serving::unix_socket::SocketFile;

/// The maximum size of request headers in bytes, plus at most one socket read.
const HEAD_MAX: usize = 64 * 1024;

/// The response to a connection beyond the limit, sent without reading a request.
const TOO_MANY_CONNECTIONS: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/problem+json\r\nretry-after: 1\r\ncontent-length: 135\r\n\
    connection: close\r\n\r\n\
    {\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\
    \"detail\":\"too many connections: try again later\",\"kind\":\"unavailable\"}";

/// How long a refused client may take to read the response.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// A listener.
#[derive(Debug)]
pub(crate) enum Listener {
    /// Clients on the network or on this machine.
    Tcp(TcpListener),
    /// Programs that may write to the socket's file.
    Unix(UnixListener, SocketFile),
    /// The owner of the server.
    Owner(OwnerSocket),
}

enum Connection {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
    async fn accept(&self) -> io::Result<Connection> {
        match self {
            Self::Tcp(listener) => listener.accept().await.map(|(own, _)| Connection::Tcp(own)),
            Self::Unix(listener, _) => {
                listener.accept().await.map(|(own, _)| Connection::Unix(own))
            }
            Self::Owner(socket) => socket.accept().await.map(Connection::Unix),
        }
    }

    fn close(self) {
        match self {
            Self::Tcp(listener) => drop(listener),
            // Remove the file first: a client that still finds it finds a server, too.
            Self::Unix(listener, file) => {
                drop(file);
                drop(listener);
            }
            Self::Owner(socket) => socket.close(),
        }
    }
}

/// Limits of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// The maximum number of connections.
    pub(crate) connections: usize,
    /// How long request headers may take to arrive, and how long a connection may be idle.
    pub(crate) head: Duration,
}

/// The place of a connection among those that are allowed, also for a protocol to which it is upgraded.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionSlot(
    #[expect(dead_code, reason = "held until it is dropped")] Arc<OwnedSemaphorePermit>,
);

/// State that all connections share.
struct ConnectionContext {
    app: Routes,
    head: Duration,
}

/// Accepts connections until it is told to stop, then waits until open ones have ended. Dropping
/// the future ends them at once.
pub(crate) async fn serve(
    listener: Listener,
    app: Routes,
    bounds: ConnectionLimits,
    traffic: Arc<Traffic>,
    mut stop: watch::Receiver<bool>,
) {
    let shared = Arc::new(ConnectionContext { app, head: bounds.head });
    let slots = Arc::new(Semaphore::new(bounds.connections.min(Semaphore::MAX_PERMITS)));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stopped(&mut stop) => break,
            // Remove tasks that have ended.
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Err(error) => pause_after_error(&error).await,
                Ok(stream) => match Arc::clone(&slots).try_acquire_owned() {
                    Err(_) => {
                        traffic.refused_connection();
                        connections.spawn(refuse_connection(stream));
                    }
                    Ok(slot) => {
                        let (shared, stop) = (Arc::clone(&shared), stop.clone());
                        connections.spawn(async move {
                            handle_connection(stream, ConnectionSlot(Arc::new(slot)), &shared, stop).await;
                        });
                    }
                },
            },
        }
    }
    // From now on no connection is accepted.
    listener.close();
    while connections.join_next().await.is_some() {}
}

/// Completes when the server is told to stop.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, which also means to stop.
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn handle_connection(
    connection: Connection,
    slot: ConnectionSlot,
    shared: &ConnectionContext,
    stop: watch::Receiver<bool>,
) {
    match connection {
        Connection::Tcp(stream) => {
            // Responses are small and written at once: Nagle's algorithm would only delay them.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY was not set");
            }
            let local_address = stream.local_addr().ok().map(LocalAddress);
            serve_connection(stream, local_address, slot, shared, stop).await;
        }
        Connection::Unix(stream) => serve_connection(stream, None, slot, shared, stop).await,
    }
}

async fn serve_connection<S>(
    stream: S,
    local_address: Option<LocalAddress>,
    slot: ConnectionSlot,
    shared: &ConnectionContext,
    mut stop: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| answer(&shared.app, request, local_address, &slot));
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.head)
        .max_buf_size(HEAD_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return log_end(ended),
        () = stopped(&mut stop) => connection.as_mut().graceful_shutdown(),
    }
    log_end(connection.await);
}

/// Answers a request by its route. The rest of an unread body is read and discarded.
fn answer(
    app: &Routes,
    request: Request<Incoming>,
    local_address: Option<LocalAddress>,
    slot: &ConnectionSlot,
) -> impl Future<Output = Result<Response, Infallible>> + Send + use<> {
    let (mut head, body) = request.into_parts();
    if let Some(local_address) = local_address {
        head.extensions.insert(local_address);
    }
    if head.headers.contains_key(UPGRADE) {
        head.extensions.insert(slot.clone());
    }
    let body = Body::new(DrainedBody::new(&head.headers, body));
    app.clone().oneshot(Request::from_parts(head, body))
}

/// Logs how a connection has ended.
fn log_end(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended with an error");
    }
}

async fn refuse_connection(connection: Connection) {
    let told = async {
        match connection {
            Connection::Tcp(stream) => write_refusal(stream).await,
            Connection::Unix(stream) => write_refusal(stream).await,
        }
    };
    let _ = tokio::time::timeout(REFUSAL_TIMEOUT, told).await;
}

async fn write_refusal(mut stream: impl AsyncWrite + Unpin) -> io::Result<()> {
    stream.write_all(TOO_MANY_CONNECTIONS).await?;
    stream.shutdown().await
}

/// Handles a failed accept. If the process lacks resources, connections may end in the meantime.
async fn pause_after_error(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};

    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tracing::warn!(%error, "a connection could not be accepted");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::TOO_MANY_CONNECTIONS;

    #[test]
    fn the_refusal_of_a_connection_has_the_right_content_length() {
        let text = std::str::from_utf8(TOO_MANY_CONNECTIONS).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{}", body.len());
        let problem: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(problem["status"], 503);
    }
}
