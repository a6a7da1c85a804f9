//! Why a request failed.

use std::error::Error as StdError;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use super::resolve::RefusedAddress;
use crate::address::AddressKind;
use crate::target::{Target, UrlRefusal};

/// Why there is no response.
///
/// The texts contain hosts, and nothing else of a URL: paths and queries may contain secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL was refused.
    #[error(transparent)]
    Url(#[from] UrlRefusal),
    /// The host is a forbidden address, or every address of its name is forbidden.
    #[error("{}", address_text(host, *address, *kind))]
    Address {
        /// The host as in the URL.
        host: String,
        /// One of its addresses.
        address: IpAddr,
        /// Why it is not public.
        kind: AddressKind,
    },
    /// The name has no address.
    #[error("the name `{host}` cannot be resolved: {source}")]
    Unresolved {
        /// The name.
        host: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// The connection failed, including TLS.
    #[error("cannot connect to {origin}: {cause}")]
    Connect {
        /// Scheme, host and port.
        origin: String,
        /// The innermost reason.
        cause: String,
        /// The complete error.
        source: reqwest::Error,
    },
    /// It took too long.
    #[error("{} within {after:?}", if *connecting { "no connection" } else { "no complete answer" })]
    Timeout {
        /// The limit that passed.
        after: Duration,
        /// Whether the connection was not established yet.
        connecting: bool,
    },
    /// A redirect was not followed.
    #[error("a redirect from {from} was not followed: {reason}")]
    Redirect {
        /// The origin of the redirect: scheme, host and port.
        from: String,
        /// Why it was not followed.
        reason: RedirectRefusal,
    },
    /// The body exceeds the limit.
    #[error("the response is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The response is not valid HTTP, or ended early.
    #[error("the response from {origin} is invalid: {cause}")]
    Broken {
        /// Scheme, host and port.
        origin: String,
        /// The innermost reason.
        cause: String,
        /// The complete error.
        source: reqwest::Error,
    },
    /// One of these errors happened after redirects.
    #[error("after {redirects} redirect(s): {source}")]
    Redirected {
        /// How many redirects were followed.
        redirects: u32,
        /// The error.
        source: Box<Error>,
    },
    /// The client could not be set up.
    #[error("the HTTP client cannot be set up: {0}")]
    Setup(String),
}

/// Why a redirect is not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedirectRefusal {
    /// Too many redirects were followed before.
    #[error("it is redirect number {}", .0 + 1)]
    TooMany(u32),
    /// `Location` is not a URL.
    #[error("its `Location` is not a URL")]
    Unreadable,
    /// The URL it names is refused.
    #[error(transparent)]
    Url(UrlRefusal),
    /// It leads from https to http.
    #[error("it leads from https to {to}, which is not encrypted")]
    Downgrade {
        /// Its target.
        to: String,
    },
    /// It would send the request's body to another server.
    #[error("it would send the request's body to {to}, another server")]
    BodyElsewhere {
        /// Its target.
        to: String,
    },
}

impl Error {
    /// Whether the server cannot have received the request, so that sending it again is safe.
    pub fn nothing_was_sent(&self) -> bool {
        match self {
            Self::Url(_)
            | Self::Address { .. }
            | Self::Unresolved { .. }
            | Self::Connect { .. }
            | Self::Setup(_) => true,
            Self::Timeout { connecting, .. } => *connecting,
            Self::Redirect { .. }
            | Self::TooLarge { .. }
            | Self::Broken { .. }
            | Self::Redirected { .. } => false,
        }
    }

    /// Translates an error of the underlying client. Its text contains the URL, so it is not used.
    pub(super) fn of(error: reqwest::Error, target: &Target, connect: Duration) -> Self {
        let error = error.without_url();
        if let Some(refused) =
            sources(&error).find_map(|error| error.downcast_ref::<RefusedAddress>())
        {
            return refused.to_error();
        }
        if error.is_timeout() {
            return Self::Timeout { after: connect, connecting: true };
        }
        let origin = target.origin();
        let cause = sources(&error).last().map_or_else(|| error.to_string(), ToString::to_string);
        if error.is_connect() {
            return Self::Connect { origin, cause, source: error };
        }
        Self::Broken { origin, cause, source: error }
    }
}

/// The sources of an error, innermost last.
fn sources(error: &reqwest::Error) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    std::iter::successors(error.source(), |error| (*error).source())
}

fn address_text(host: &str, address: IpAddr, kind: AddressKind) -> String {
    if host == address.to_string() {
        format!("{host} is {kind}; connections to it are not allowed")
    } else {
        format!("`{host}` has the address {address}, {kind}; connections to it are not allowed")
    }
}
