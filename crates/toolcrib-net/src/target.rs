//! Checked URLs: first the raw text is checked, then the parsed URL.

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

use crate::host_name;

/// The longest accepted URL, in bytes.
pub const URL_MAX_BYTES: usize = 8 * 1024;

/// What a URL must not contain, for messages.
pub const FORBIDDEN_IN_URLS: &str = "control characters, spaces and backslashes";

/// Who chose the host of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedBy {
    /// The operator, who wrote it down: any name. Its addresses are still checked.
    Operator,
    /// A model, or a server that redirects: no names of local networks.
    Anybody,
}

/// A URL that passed every check of its text: `http` or `https`, with a host, without a user name or
/// password.
///
/// This does not check the addresses, because they are not known yet. The [`Client`](crate::Client) checks the
/// addresses of names as well as literal addresses.
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

/// Why a URL is refused. The text tells a model what to send instead; it contains only the URL's scheme and host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlRefusal {
    /// It is longer than [`URL_MAX_BYTES`].
    #[error("the URL is longer than 8 KiB")]
    TooLong,
    /// It contains a character that URL parsers drop or rewrite.
    #[error("the URL contains {0}, which must be percent-encoded or left out")]
    Character(&'static str),
    /// It is not an `http` or `https` URL.
    #[error("only http:// and https:// URLs are requested, not `{0}`")]
    Scheme(String),
    /// It names no host after `//`.
    #[error("the URL names no host: write it like https://example.com/path")]
    NoHost,
    /// It carries a user name or a password.
    #[error("the URL contains a user name or a password: leave out everything up to the `@`")]
    UserInfo,
    /// The parser rejects it.
    #[error("the URL cannot be read: {0}")]
    Unreadable(String),
    /// Its host is the name of a local network.
    #[error("the host `{host}` is refused: {reason}; use the full name of a public server")]
    Host {
        /// The host.
        host: String,
        /// The reason, as one clause.
        reason: &'static str,
    },
}

impl Target {
    /// Checks a URL's text, without using the network.
    ///
    /// Characters that parsers drop, trim or rewrite are refused before anything is parsed, so that no two parsers can
    /// see different hosts in the same text.
    pub fn parse(text: &str, named_by: NamedBy) -> Result<Self, UrlRefusal> {
        check_text(text)?;
        let url = Url::parse(text).map_err(|error| UrlRefusal::Unreadable(error.to_string()))?;
        // The text was checked above; the rest uses the parsed URL.
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

    /// The URL to use.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The host: a name in lower case and ASCII, or an address without brackets.
    pub fn host(&self) -> String {
        match self.url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            // `parse` accepts no URL without a host.
            None => String::new(),
        }
    }

    /// The address, if the host is a literal address.
    pub fn literal_address(&self) -> Option<IpAddr> {
        match self.url.host()? {
            Host::Domain(_) => None,
            Host::Ipv4(address) => Some(address.into()),
            Host::Ipv6(address) => Some(address.into()),
        }
    }

    /// Scheme, host and port, without anything that could be secret: `https://example.com:8443`.
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// Whether two URLs have the same origin: scheme, host and port.
    pub fn same_origin(&self, other: &Self) -> bool {
        self.url.origin() == other.url.origin()
    }
}

/// Shows only the origin: paths and queries may contain secrets.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.origin()).finish()
    }
}

/// Checks the text before a parser corrects it.
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

/// The name of a character that a URL must not contain.
pub(crate) fn forbidden(character: char) -> Option<&'static str> {
    match character {
        '\\' => Some("a backslash"),
        '\n' | '\r' => Some("a line end"),
        control if control.is_control() => Some("a control character"),
        space if space.is_whitespace() => Some("a space"),
        _ => None,
    }
}
