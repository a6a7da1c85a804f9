//! Rules for allowed `Host` and `Origin` values.

use axum::http::Uri;
use axum::http::uri::Authority;

/// A host with an optional port, compared case-insensitively.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostRule {
    host: String,
    port: Option<u16>,
}

impl HostRule {
    /// Parses `name`, `name:port`, `1.2.3.4:port` or `[::1]:port`, and nothing else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let authority: Authority = text.parse().ok()?;
        let host = authority.host();
        // Reject `user@host`, and the invalid ports of `host:` and `host:99999`.
        let plain = !text.contains('@') && !host.is_empty();
        let port = authority.port_u16();
        let said_port = text.len() > host.len();
        (plain && said_port == port.is_some())
            .then(|| Self { host: host.to_ascii_lowercase(), port })
    }

    /// Whether a request for `asked` may pass. A rule without a port matches any port.
    pub(crate) fn admits(&self, asked: &Self) -> bool {
        self.host == asked.host && self.port.is_none_or(|port| asked.port == Some(port))
    }

    /// The rule as text.
    pub(crate) fn to_text(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }
}

/// The origin of a web page; without a port, the default port of the scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OriginRule {
    scheme: &'static str,
    host: String,
    port: u16,
}

impl OriginRule {
    /// Parses `http://name[:port]` or `https://name[:port]`, as browsers send it. `null`, other
    /// schemes, paths and wildcards are not accepted.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let uri: Uri = text.parse().ok()?;
        let (scheme, default_port) = match uri.scheme_str()? {
            "http" => ("http", 80),
            "https" => ("https", 443),
            _ => return None,
        };
        let authority = uri.authority()?.as_str();
        // A browser sends no path; the parser reports its absence as `/`.
        let bare = text.len() == scheme.len() + "://".len() + authority.len();
        let HostRule { host, port } = HostRule::parse(authority).filter(|_| bare)?;
        Some(Self { scheme, host, port: port.unwrap_or(default_port) })
    }

    /// The rule as text, always with its port.
    pub(crate) fn to_text(&self) -> String {
        format!("{}://{}:{}", self.scheme, self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(rule: &str, asked: &str) -> bool {
        HostRule::parse(rule).unwrap().admits(&HostRule::parse(asked).unwrap())
    }

    #[test]
    fn hosts_are_compared_exactly_but_case_insensitively() {
        assert!(admits("localhost:7777", "LOCALHOST:7777"));
        assert!(admits("[::1]:7777", "[::1]:7777"));
        assert!(!admits("localhost:7777", "localhost:7778"));
        assert!(!admits("localhost:7777", "localhost"));
        assert!(!admits("localhost:7777", "localhost.evil.example:7777"));
        assert!(!admits("example.com", "evil-example.com"));
    }

    #[test]
    fn a_rule_without_a_port_fits_any_port() {
        assert!(
            admits("tools.example", "tools.example") && admits("tools.example", "tools.example:9")
        );
    }

    #[test]
    fn an_invalid_host_is_refused() {
        for text in
            ["", "a b", "user@localhost", "localhost:", "localhost:99999", "http://localhost"]
        {
            assert_eq!(HostRule::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_origin_without_a_port_has_the_default_port() {
        let parse = |text| OriginRule::parse(text).unwrap();
        assert_eq!(parse("https://app.example"), parse("https://APP.example:443"));
        assert_ne!(parse("https://app.example"), parse("http://app.example"));
        assert_ne!(parse("http://localhost:3000"), parse("http://localhost:3001"));
        assert_eq!(parse("https://app.example").to_text(), "https://app.example:443");
    }

    #[test]
    fn an_invalid_origin_is_refused() {
        for text in
            ["null", "*", "app.example", "file:///etc", "https://app.example/", "https://a@b"]
        {
            assert_eq!(OriginRule::parse(text), None, "{text:?}");
        }
    }
}
