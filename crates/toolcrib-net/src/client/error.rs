//! Why a request failed.

use std::error::Error as StdError;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use super::resolve::Refused;
use crate::address::AddressKind;
use crate::target::{Target, UrlRefusal};

/// Why there is no answer.
///
/// The texts name hosts, and nothing else of a URL: paths and queries can hold secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL's text is refused.
    #[error(transparent)]
    Url(#[from] UrlRefusal),
    /// The host is an address, or every address of its name is one, that must not be connected to.
    #[error("{}", address_text(host, *address, *kind))]
    Address {
        /// The host as the URL names it.
        host: String,
        /// An address of it.
        address: IpAddr,
        /// What keeps it from being public.
        kind: AddressKind,
    },
    /// The name has no address.
    #[error("the name `{host}` cannot be resolved: {source}")]
    Unresolved {
        /// The name.
        host: String,
        /// What the resolver says.
        source: io::Error,
    },
    /// There is no connection, TLS included.
    #[error("cannot connect to {origin}: {cause}")]
    Connect {
        /// Scheme, host and port.
        origin: String,
        /// The innermost reason.
        cause: String,
        /// The whole of it.
        source: reqwest::Error,
    },
    /// It took too long.
    #[error("{} within {after:?}", if *connecting { "no connection" } else { "no complete answer" })]
    Timeout {
        /// The limit that passed.
        after: Duration,
        /// Whether no connection was there yet.
        connecting: bool,
    },
    /// A redirect that is not followed.
    #[error("{from} redirects, and that is not followed: {reason}")]
    Redirect {
        /// Who redirects: scheme, host and port.
        from: String,
        /// Why it is not followed.
        reason: RedirectRefusal,
    },
    /// The body is larger than is taken.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// How many bytes are taken.
        limit: usize,
    },
    /// The answer is not one, or broke off.
    #[error("the answer of {origin} is broken: {cause}")]
    Broken {
        /// Scheme, host and port.
        origin: String,
        /// The innermost reason.
        cause: String,
        /// The whole of it.
        source: reqwest::Error,
    },
    /// One of these happened after redirects.
    #[error("after {redirects} redirect(s): {source}")]
    Redirected {
        /// How many were followed.
        redirects: u32,
        /// What happened.
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
    /// There were too many before.
    #[error("it is redirect number {}", .0 + 1)]
    TooMany(u32),
    /// `Location` is no URL.
    #[error("its `Location` is no URL")]
    Unreadable,
    /// The URL it names is refused.
    #[error(transparent)]
    Url(UrlRefusal),
    /// It would give up encryption.
    #[error("it leads from https to {to}, which is not encrypted")]
    Downgrade {
        /// Where it leads.
        to: String,
    },
    /// It would hand the request's body to somebody else.
    #[error("it would send the request's body to {to}, another server")]
    BodyElsewhere {
        /// Where it leads.
        to: String,
    },
}

impl Error {
    /// Whether the server cannot have seen the request, so that sending it again repeats nothing.
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

    /// What a failure of the client below means. It names the URL, so that its text is not used.
    pub(super) fn of(error: reqwest::Error, target: &Target, connect: Duration) -> Self {
        let error = error.without_url();
        if let Some(refused) = sources(&error).find_map(|error| error.downcast_ref::<Refused>()) {
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

/// What is behind an error, innermost last.
fn sources(error: &reqwest::Error) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    std::iter::successors(error.source(), |error| (*error).source())
}

fn address_text(host: &str, address: IpAddr, kind: AddressKind) -> String {
    if host == address.to_string() {
        format!("{host} is {kind}, which is not connected to")
    } else {
        format!("`{host}` is at {address}, {kind}, which is not connected to")
    }
}
