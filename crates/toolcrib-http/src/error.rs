//! Errors of the listener.

use std::io;
use std::path::PathBuf;

use toolcrib_core::NoRandomness;

use crate::Listen;

/// Why the listener could not start, or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// `no_auth` was set for an address that others can reach.
    #[error(
        "no_auth is refused for {listen}, which is not a loopback address: set a token, or listen \
         on 127.0.0.1 or a socket"
    )]
    OpenToTheNetwork {
        /// The address to listen on.
        listen: Listen,
    },
    /// Both a token and `no_auth` are set.
    #[error("both tokens and no_auth are set, which contradict each other: remove one of them")]
    TokenAndNoAuth,
    /// A client's name is reserved for the server's own clients.
    #[error("tokens.{name}: the server itself uses the name `{name}`: give the client another one")]
    ReservedName {
        /// The name.
        name: String,
    },
    /// Two clients have the same token, so that they cannot be told apart.
    #[error("tokens.{one} and tokens.{other} have the same hash: make a token for each")]
    SameToken {
        /// One of them.
        one: String,
        /// The other.
        other: String,
    },
    /// The token cannot be masked in outputs, because there are too many secrets.
    #[error("the token cannot be masked: there are too many secrets, or they are too long")]
    TokenUnmasked,
    /// A reload would leave no valid token.
    #[error(
        "no valid token would be left: set `server.token` or one of \
         `server.tokens`"
    )]
    NoTokenLeft,
    /// A client is limited to a toolset that does not exist.
    #[error("server.{key}: there is no toolset `{toolset}`")]
    Toolset {
        /// The key that names it.
        key: String,
        /// The toolset.
        toolset: String,
    },
    /// An entry of `allowed_hosts` is not a valid host.
    #[error("{text:?} in allowed_hosts is not `name` or `name:port`")]
    Host {
        /// The entry.
        text: String,
    },
    /// An entry of `allowed_origins` is not a valid origin.
    #[error(
        "{text:?} in allowed_origins is not `http://name[:port]` or `https://name[:port]` \
         (no path, no wildcard)"
    )]
    Origin {
        /// The entry.
        text: String,
    },
    /// The system could not provide random bits for a token.
    #[error("the system has no random numbers to make a token of: set a token yourself")]
    NoRandomness(#[source] NoRandomness),
    /// A socket cannot be created at that path.
    #[error("cannot listen on unix:{}: {problem}", path.display())]
    Socket {
        /// The path.
        path: PathBuf,
        /// What prevents it, and what to do.
        problem: String,
    },
    /// The listener could not bind the address.
    #[error("cannot listen on {listen}: {error}{}", bind_hint(.listen, .error))]
    Bind {
        /// The address.
        listen: Listen,
        /// The system's error.
        error: io::Error,
    },
}

impl HttpError {
    /// Whether another process already listens there.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Bind { error, .. } if error.kind() == io::ErrorKind::AddrInUse)
    }
}

fn bind_hint(listen: &Listen, error: &io::Error) -> &'static str {
    match (listen, error.kind()) {
        (Listen::Tcp(_), io::ErrorKind::AddrInUse) => {
            ". Another process holds the port: end it, or set another port (0: any that is free) with \
             `server.listen` or `--listen`"
        }
        (Listen::Tcp(_), io::ErrorKind::PermissionDenied) => {
            ". Ports below 1024 need a privilege: choose a higher one"
        }
        (Listen::Unix(_), io::ErrorKind::AddrInUse) => ": stop it, or choose another path",
        _ => "",
    }
}
