//! Connections: taken, bounded in number and in how long a request may take to arrive, and ended.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use crate::auth::host_check::Reached;
use crate::observability::traffic::Traffic;
use crate::serving::drained_body::Lingering;
use crate::serving::owner_socket::OwnerSocket;
use crate::serving::routes::Routes;
use crate::serving::unix_socket::SocketFile;

/// The longest head of a request, in bytes, give or take one read of the socket.
const HEAD_MAX: usize = 64 * 1024;

/// What is said to a connection beyond the bound: nothing is read of it.
const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/problem+json\r\nretry-after: 1\r\ncontent-length: 135\r\n\
    connection: close\r\n\r\n\
    {\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\
    \"detail\":\"too many connections: come back later\",\"kind\":\"unavailable\"}";

/// How long whoever is turned away may take to hear it.
const TURN_AWAY: Duration = Duration::from_secs(1);

/// Where connections come in.
#[derive(Debug)]
pub(crate) enum Door {
    /// From the network, or from this machine only.
    Tcp(TcpListener),
    /// From programs that may write to the socket's file.
    Unix(UnixListener, SocketFile),
    /// From the owner of the server.
    Owner(OwnerSocket),
}

enum Connection {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Door {
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
            // The file first: whoever still finds it finds a server, too.
            Self::Unix(listener, file) => {
                drop(file);
                drop(listener);
            }
            Self::Owner(socket) => socket.close(),
        }
    }
}

/// The bounds of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// How many at once.
    pub(crate) connections: usize,
    /// How long the head of a request may take, and a connection be silent.
    pub(crate) head: Duration,
}

/// What every connection needs.
struct Shared {
    app: Routes,
    head: Duration,
}

/// Takes connections until it is told to stop, and then waits until those there are have ended.
/// Dropping the future ends them at once.
pub(crate) async fn serve(
    door: Door,
    app: Routes,
    bounds: Bounds,
    traffic: Arc<Traffic>,
    mut stop: watch::Receiver<bool>,
) {
    let shared = Arc::new(Shared { app, head: bounds.head });
    let slots = Arc::new(Semaphore::new(bounds.connections.min(Semaphore::MAX_PERMITS)));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stopped(&mut stop) => break,
            // Those that have ended are forgotten.
            Some(_) = connections.join_next() => {}
            accepted = door.accept() => match accepted {
                Err(error) => resting(&error).await,
                Ok(stream) => match Arc::clone(&slots).try_acquire_owned() {
                    Err(_) => {
                        traffic.refused_connection();
                        connections.spawn(turn_away(stream));
                    }
                    Ok(slot) => {
                        let (shared, stop) = (Arc::clone(&shared), stop.clone());
                        connections.spawn(async move {
                            converse(stream, &shared, stop).await;
                            drop(slot);
                        });
                    }
                },
            },
        }
    }
    // From here on nobody is let in.
    door.close();
    while connections.join_next().await.is_some() {}
}

/// Completes when the server is told to stop.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that whoever could say so is gone, which is the same.
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn converse(connection: Connection, shared: &Shared, stop: watch::Receiver<bool>) {
    match connection {
        Connection::Tcp(stream) => {
            // Answers are small and written once: waiting to fill a packet only delays them.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY was not set");
            }
            let reached = stream.local_addr().ok().map(Reached);
            serve_connection(stream, reached, shared, stop).await;
        }
        Connection::Unix(stream) => serve_connection(stream, None, shared, stop).await,
    }
}

async fn serve_connection<S>(
    stream: S,
    reached: Option<Reached>,
    shared: &Shared,
    mut stop: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| answer(&shared.app, request, reached));
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.head)
        .max_buf_size(HEAD_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return said(ended),
        () = stopped(&mut stop) => connection.as_mut().graceful_shutdown(),
    }
    said(connection.await);
}

/// Answers a request by its route. Whatever the route leaves unread of the body is read and thrown away.
fn answer(
    app: &Routes,
    request: Request<Incoming>,
    reached: Option<Reached>,
) -> impl Future<Output = Result<Response, Infallible>> + Send + use<> {
    let (mut head, body) = request.into_parts();
    if let Some(reached) = reached {
        head.extensions.insert(reached);
    }
    let body = Body::new(Lingering::new(&head.headers, body));
    app.clone().oneshot(Request::from_parts(head, body))
}

/// How a connection ends is its client's matter.
fn said(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

async fn turn_away(connection: Connection) {
    let told = async {
        match connection {
            Connection::Tcp(stream) => tell_too_many(stream).await,
            Connection::Unix(stream) => tell_too_many(stream).await,
        }
    };
    let _ = tokio::time::timeout(TURN_AWAY, told).await;
}

async fn tell_too_many(mut stream: impl AsyncWrite + Unpin) -> io::Result<()> {
    stream.write_all(TOO_MANY).await?;
    stream.shutdown().await
}

/// A connection that was not taken. Where the process is short of something, others may end meanwhile.
async fn resting(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};

    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tracing::warn!(%error, "a connection could not be taken");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::TOO_MANY;

    #[test]
    fn what_is_said_to_those_turned_away_is_as_long_as_it_says() {
        let text = std::str::from_utf8(TOO_MANY).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{}", body.len());
        let problem: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(problem["status"], 503);
    }
}
