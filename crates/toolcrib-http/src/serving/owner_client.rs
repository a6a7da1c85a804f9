//! A client for the private socket of a running server.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::time::timeout;
use toolcrib_tool::{canonical_json, exact};

use crate::serving::owner_socket::may_operate;

/// How long an answer may take; a reload may read thousands of files.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest answer, in bytes.
const ANSWER_MAX: usize = 64 * 1024 * 1024;

/// Escapes a text as one path segment; only unreserved characters are left unescaped.
///
/// ```
/// assert_eq!(toolcrib_http::path_segment("a/b c"), "a%2Fb%20c");
/// ```
pub fn path_segment(text: &str) -> String {
    let mut segment = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            segment.push(byte.into());
        } else {
            // Writing to a String does not fail.
            let _ = write!(segment, "%{byte:02X}");
        }
    }
    segment
}

/// A client of a server's [`OwnerSocket`](crate::OwnerSocket). Each request uses a new connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerClient {
    socket: PathBuf,
    /// Another user, beside this one and root, whose server is accepted.
    owner: Option<u32>,
}

/// Why a request to a server failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// The server refused the request. The text is the server's message, which says what to do.
    #[error("{detail}")]
    Refused {
        /// The status of the answer.
        status: u16,
        /// The problem kind, such as `not_found` or `already_resolved`.
        kind: String,
        /// The server's message.
        detail: String,
    },
    /// No answer came within 60 seconds.
    #[error("the server did not answer within {} seconds", ANSWER_TIMEOUT.as_secs())]
    TimedOut,
    /// The socket could not be connected to, or the connection was lost.
    #[error("the server cannot be reached at {}: {source}", socket.display())]
    Connection {
        /// The socket.
        socket: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The process that listens at the socket belongs to an unexpected user. Nothing was sent to
    /// it.
    #[error(
        "{} belongs to a process of user {user}, who owns neither this config's state folder nor this \
         command: nothing was sent to it. Remove the socket if no server of yours made it",
        socket.display()
    )]
    Stranger {
        /// The socket.
        socket: PathBuf,
        /// The user of the process that listens.
        user: u32,
    },
    /// The answer from the socket is not valid.
    #[error("the server at {} gave an answer that cannot be read: {reason}", socket.display())]
    Answer {
        /// The socket.
        socket: PathBuf,
        /// What is wrong with the answer.
        reason: String,
    },
}

impl OwnerError {
    /// The HTTP status of the refusal, if the server refused.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The problem kind of the refusal, if the server refused.
    pub fn kind(&self) -> Option<&str> {
        match self {
            Self::Refused { kind, .. } => Some(kind),
            _ => None,
        }
    }
}

impl OwnerClient {
    /// Creates a client of the server that listens at `socket`. No connection is made yet.
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into(), owner: None }
    }

    /// Also accepts a server of this user. By default only servers of the current user and of root
    /// are accepted: anybody else could have placed a socket there.
    #[must_use]
    pub fn owner(mut self, user: u32) -> Self {
        self.owner = Some(user);
        self
    }

    /// The socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Sends a GET request and returns the JSON of the answer.
    ///
    /// Fails with the server's message if it refuses, and after 60 seconds. Must be called on a
    /// runtime with I/O and time enabled.
    pub async fn get(&self, path: &str) -> Result<Value, OwnerError> {
        self.ask(Method::GET, path, None).await
    }

    /// Sends a POST request, with a JSON body if there is one, and returns the JSON of the answer.
    ///
    /// Fails as [`get`](Self::get) does.
    pub async fn post(&self, path: &str, body: Option<&Value>) -> Result<Value, OwnerError> {
        self.ask(Method::POST, path, body).await
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, OwnerError> {
        let answered = timeout(ANSWER_TIMEOUT, self.exchange(method, path, body)).await;
        let (status, body) = answered.map_err(|_| OwnerError::TimedOut)??;
        let text = exact::protect(str::from_utf8(&body).unwrap_or_default());
        let body: Value = serde_json::from_str(&text)
            .map_err(|error| self.unreadable(format!("{status} without valid JSON: {error}")))?;
        if status.is_success() {
            return Ok(body);
        }
        let said = body["detail"].as_str().or_else(|| body["title"].as_str());
        let detail = said.unwrap_or_else(|| status.as_str()).to_owned();
        let kind = body["kind"].as_str().unwrap_or("refused").to_owned();
        Err(OwnerError::Refused { status: status.as_u16(), kind, detail })
    }

    /// Sends one request on a connection of its own.
    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Bytes), OwnerError> {
        let broken = |source| OwnerError::Connection { socket: self.socket.clone(), source };
        let http = |error: hyper::Error| broken(io::Error::other(error));
        let stream = UnixStream::connect(&self.socket).await.map_err(broken)?;
        let user = stream.peer_cred().map_err(broken)?.uid();
        if !may_operate(user) && self.owner != Some(user) {
            return Err(OwnerError::Stranger { socket: self.socket.clone(), user });
        }
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(http)?;
        let body = body.map(|body| Bytes::from(canonical_json(body))).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "localhost")
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| broken(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
        let exchange = async {
            let response = sender.send_request(request).await.map_err(http)?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
            let body = body.map_err(|error| self.unreadable(error.to_string()))?;
            Ok((status, body.to_bytes()))
        };
        tokio::pin!(connection);
        tokio::pin!(exchange);
        // Drive the connection while waiting for the answer; it may end first.
        tokio::select! {
            answer = &mut exchange => answer,
            ended = &mut connection => match ended {
                Ok(()) => exchange.await,
                Err(error) => Err(http(error)),
            },
        }
    }

    fn unreadable(&self, reason: String) -> OwnerError {
        OwnerError::Answer { socket: self.socket.clone(), reason }
    }
}
