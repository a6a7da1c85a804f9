//! Which `Host` and `Origin` values are served.

use axum::http::Uri;
use axum::http::uri::Authority;

/// A host with an optional port, compared without regard to case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostRule {
    host: String,
    port: Option<u16>,
}

impl HostRule {
    /// Reads `name`, `name:port`, `1.2.3.4:port` or `[::1]:port`; nothing else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let authority: Authority = text.parse().ok()?;
        let host = authority.host();
        // `user@host` names somebody; `host:` and `host:99999` have a port that is none.
        let plain = !text.contains('@') && !host.is_empty();
        let port = authority.port_u16();
        let said_port = text.len() > host.len();
        (plain && said_port == port.is_some())
            .then(|| Self { host: host.to_ascii_lowercase(), port })
    }

    /// Whether a request for `asked` may pass. A rule without a port fits any port.
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

/// Where a web page comes from; the port is the scheme's own where none is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OriginRule {
    scheme: &'static str,
    host: String,
    port: u16,
}

impl OriginRule {
    /// Reads `http://name[:port]` or `https://name[:port]`, as browsers send it. `null`, other
    /// schemes, paths and wildcards are no origins here.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let uri: Uri = text.parse().ok()?;
        let (scheme, default_port) = match uri.scheme_str()? {
            "http" => ("http", 80),
            "https" => ("https", 443),
            _ => return None,
        };
        let authority = uri.authority()?.as_str();
        // A browser sends no path; the parser reads its absence as `/`.
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
    fn hosts_are_compared_whole_and_without_case() {
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
    fn what_is_no_host_is_refused() {
        for text in
            ["", "a b", "user@localhost", "localhost:", "localhost:99999", "http://localhost"]
        {
            assert_eq!(HostRule::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_origin_without_a_port_is_its_scheme_s_port() {
        let parse = |text| OriginRule::parse(text).unwrap();
        assert_eq!(parse("https://app.example"), parse("https://APP.example:443"));
        assert_ne!(parse("https://app.example"), parse("http://app.example"));
        assert_ne!(parse("http://localhost:3000"), parse("http://localhost:3001"));
        assert_eq!(parse("https://app.example").to_text(), "https://app.example:443");
    }

    #[test]
    fn what_is_no_origin_is_refused() {
        for text in
            ["null", "*", "app.example", "file:///etc", "https://app.example/", "https://a@b"]
        {
            assert_eq!(OriginRule::parse(text), None, "{text:?}");
        }
    }
}
