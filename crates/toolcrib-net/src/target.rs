//! Checked URLs: the raw text first, then what the parser makes of it.

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

use crate::host_name;

/// The longest URL that is taken, in bytes.
pub const URL_MAX_BYTES: usize = 8 * 1024;

/// What a URL may not contain, for messages.
pub const FORBIDDEN_IN_URLS: &str = "control characters, spaces and backslashes";

/// Whose word the host of a URL is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedBy {
    /// The operator's, who wrote it down: any name. Its addresses are checked all the same.
    Operator,
    /// A model's, or that of a server that redirects: no names of local networks.
    Anybody,
}

/// A URL that passed every check of its text: `http` or `https`, with a host, without a user name or
/// password.
///
/// Its addresses are not checked by this: a name has none yet. The [`Client`](crate::Client) checks
/// them, of names and of literal addresses.
///
/// ```
/// use toolcrib_net::{NamedBy, Target};
///
/// assert!(Target::parse("https://example.com/a?b=c", NamedBy::Anybody).is_ok());
/// for refused in [
///     "file:///etc/passwd",
///     "http:example.com",
///     "https://good.example@evil.example/",
///     "https://good.example\\@evil.example/",
///     "http://metadata.google.internal/",
/// ] {
///     assert!(Target::parse(refused, NamedBy::Anybody).is_err(), "{refused}");
/// }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
}

/// Why a URL is refused. Its text tells a model what to send instead; it shows nothing of the URL
/// but its scheme and its host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlRefusal {
    /// It is longer than [`URL_MAX_BYTES`].
    #[error("the URL is longer than 8 KiB")]
    TooLong,
    /// It contains a character that readers of URLs drop or rewrite.
    #[error("the URL contains {0}, which must be percent-encoded or left out")]
    Character(&'static str),
    /// It is not of the web.
    #[error("only http:// and https:// URLs are requested, not `{0}`")]
    Scheme(String),
    /// It names no host after `//`.
    #[error("the URL names no host: write it like https://example.com/path")]
    NoHost,
    /// It carries a user name or a password.
    #[error("the URL contains a user name or a password: leave out everything up to the `@`")]
    UserInfo,
    /// The parser finds no URL in it.
    #[error("the URL cannot be read: {0}")]
    Unreadable(String),
    /// Its host is a name of a local network.
    #[error("the host `{host}` is refused: {reason}; use the full name of a public server")]
    Host {
        /// The host.
        host: String,
        /// What is wrong with it, as one clause.
        reason: &'static str,
    },
}

impl Target {
    /// Checks a URL's text, and nothing of the network.
    ///
    /// Characters that parsers drop, trim or turn into others are refused before anything is parsed,
    /// so that no two readers can see different hosts in the same text.
    pub fn parse(text: &str, named_by: NamedBy) -> Result<Self, UrlRefusal> {
        check_text(text)?;
        let url = Url::parse(text).map_err(|error| UrlRefusal::Unreadable(error.to_string()))?;
        // The text was looked at above; what counts is what will be used.
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlRefusal::UserInfo);
        }
        let name = match url.host() {
            None => return Err(UrlRefusal::NoHost),
            Some(Host::Domain(name)) => Some(name),
            Some(Host::Ipv4(_) | Host::Ipv6(_)) => None,
        };
        if named_by == NamedBy::Anybody
            && let Some(name) = name
            && let Some(reason) = host_name::refusal(name)
        {
            return Err(UrlRefusal::Host { host: name.to_owned(), reason });
        }
        Ok(Self { url })
    }

    /// The URL as it will be used.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The host: a name in lower case and ASCII, or an address without brackets.
    pub fn host(&self) -> String {
        match self.url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            // `parse` lets no URL without a host pass.
            None => String::new(),
        }
    }

    /// The address, if the host is one and no name.
    pub fn literal_address(&self) -> Option<IpAddr> {
        match self.url.host()? {
            Host::Domain(_) => None,
            Host::Ipv4(address) => Some(address.into()),
            Host::Ipv6(address) => Some(address.into()),
        }
    }

    /// Scheme, host and port, without anything that may be secret: `https://example.com:8443`.
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// Whether two URLs go to the same server in the same way: scheme, host and port.
    pub fn same_origin(&self, other: &Self) -> bool {
        self.url.origin() == other.url.origin()
    }
}

/// Shows the origin only: paths and queries can hold secrets.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.origin()).finish()
    }
}

/// Checks what is written, before a parser mends it.
fn check_text(text: &str) -> Result<(), UrlRefusal> {
    if text.len() > URL_MAX_BYTES {
        return Err(UrlRefusal::TooLong);
    }
    if let Some(found) = text.chars().find_map(forbidden) {
        return Err(UrlRefusal::Character(found));
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return Err(UrlRefusal::Unreadable("it has no scheme such as https://".to_owned()));
    };
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        let shown = scheme.chars().take(20).collect();
        return Err(UrlRefusal::Scheme(shown));
    }
    let rest = rest.strip_prefix("//").ok_or(UrlRefusal::NoHost)?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(UrlRefusal::UserInfo);
    }
    if authority.is_empty() || authority.starts_with(':') {
        return Err(UrlRefusal::NoHost);
    }
    Ok(())
}

/// What to call a character that must not be in a URL.
pub(crate) fn forbidden(character: char) -> Option<&'static str> {
    match character {
        '\\' => Some("a backslash"),
        '\n' | '\r' => Some("a line end"),
        control if control.is_control() => Some("a control character"),
        space if space.is_whitespace() => Some("a space"),
        _ => None,
    }
}
