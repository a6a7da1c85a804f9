//! The settings of the listener.

mod client;
pub(crate) mod reloadable;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use toolcrib_tool::units::{OrNone, SizeLimit, TimeLimit, Timeout, or_none};

use crate::auth::allowed_hosts::{HostRule, OriginRule};
use crate::{HttpError, Listen, Token};

pub use client::{ClientConfig, Rate};

/// The default port.
pub const DEFAULT_PORT: u16 = 7777;

/// Settings of the HTTP listener (`server:` in the configuration file).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-renamed" = {
    "port": "`listen` takes the address and the port, for example `listen: 127.0.0.1:8080`",
    "host": "`listen` takes the address and the port, for example `listen: 127.0.0.1:8080`",
    "bind": "`listen` takes the address and the port, for example `listen: 127.0.0.1:8080`",
    "address": "`listen` takes the address and the port, for example `listen: 127.0.0.1:8080`",
    "read_seconds": "`server.read_seconds` is now `server.read_timeout`, a time such as `30s`",
    "stream_seconds": "`server.stream_seconds` is now `server.stream_lifetime`, a time such as `5m`, or `none`",
    "retry_seconds": "`server.retry_seconds` is now `server.retry_after`, a time such as `3s`",
}))]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// The address and port to listen on, where port 0 picks a free one; or `unix:` and the
    /// absolute path of a socket, to which only programs of this user can connect. Default
    /// `127.0.0.1:7777`.
    pub listen: Listen,
    /// The operator's bearer token, which has every right. Default: none; if there are no `tokens`
    /// either, a random token is generated at every start.
    pub token: Option<Token>,
    /// Clients with tokens of their own, by name. Default: none.
    #[serde(deserialize_with = "named")]
    #[schemars(extend("writeOnly" = true))]
    pub tokens: BTreeMap<String, ClientConfig>,
    /// Requires no token: everybody who can reach the server may call tools and observe. Refused
    /// unless the listener is on a loopback address or a Unix socket. Default `false`.
    pub no_auth: bool,
    /// The toolset of clients that name none of their own: they are limited to it. Default: all
    /// tools.
    pub toolset: Option<String>,
    /// How many requests a client may make in a period, such as `600/min`, unless its own entry says
    /// otherwise. Default `none`: no limit.
    #[serde(with = "or_none")]
    #[schemars(with = "OrNone<Rate>")]
    pub rate: Option<Rate>,
    /// How many requests of one client are answered at the same time, unless its own entry says otherwise.
    /// An event stream counts until it ends. Default `none`: for a client of `tokens`, a quarter of
    /// `connections`; no limit for the operator's token and with `no_auth`.
    #[serde(with = "or_none")]
    #[schemars(with = "OrNone<NonZeroUsize>")]
    pub concurrent: Option<NonZeroUsize>,
    /// The maximum number of open connections. Further clients are told to retry later. Default
    /// 1,024.
    #[schemars(range(min = 1))]
    pub connections: usize,
    /// How long a request may take to arrive: first its head, then its body. An idle connection is closed
    /// after the same time. Default `30s`.
    pub read_timeout: Timeout,
    /// How long the event stream of an MCP request in a session stays open. Then the client reconnects for
    /// the rest, as it does after a broken connection. Only clients of revision 2025-11-25 have sessions.
    /// Default `none`: until the answer.
    pub stream_lifetime: TimeLimit,
    /// How long an MCP client waits before it reconnects to a stream that ended before its answer.
    /// Default `3s`.
    pub retry_after: Timeout,
    /// Further names under which the server may be reached, as `name` (any port) or `name:port`:
    /// the values of the `Host` header. `localhost`, `127.0.0.1` and `[::1]` with the listener's
    /// port are always allowed, and so is the address that a connection is made to; on a Unix
    /// socket `localhost` is allowed. `/health` and `/ready` are served under any name. Default: no
    /// others.
    pub allowed_hosts: Vec<String>,
    /// Web pages that may call the server, as `scheme://name[:port]`: the values of the `Origin`
    /// header. The listener's own address is always allowed. Only browsers send this header.
    /// Default: no others.
    pub allowed_origins: Vec<String>,
    /// The size of the largest request body. Default `4MiB`.
    pub body_limit: SizeLimit,
}

/// Names of the server's own clients in logs and approvals. No client in [`ServerConfig::tokens`]
/// can have one of them.
pub const RESERVED_NAMES: [&str; 3] = ["operator", "owner", "anyone"];

/// Deserializes clients by name. Refuses reserved names here, so that configuration checks report
/// them, too.
fn named<'de, D: Deserializer<'de>>(config: D) -> Result<BTreeMap<String, ClientConfig>, D::Error> {
    let tokens = BTreeMap::<String, ClientConfig>::deserialize(config)?;
    match tokens.keys().find(|name| RESERVED_NAMES.contains(&name.as_str())) {
        Some(name) => Err(D::Error::custom(HttpError::ReservedName { name: name.clone() })),
        None => Ok(tokens),
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            token: None,
            tokens: BTreeMap::new(),
            no_auth: false,
            toolset: None,
            rate: None,
            concurrent: None,
            connections: 1024,
            read_timeout: Timeout(Duration::from_secs(30)),
            stream_lifetime: TimeLimit(None),
            retry_after: Timeout(Duration::from_secs(3)),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            body_limit: SizeLimit(4 << 20),
        }
    }
}

impl ServerConfig {
    /// The size of the largest request body in bytes.
    pub(crate) fn body_bytes(&self) -> usize {
        usize::try_from(self.body_limit.0).unwrap_or(usize::MAX)
    }

    /// Refuses settings that contradict each other or are unsafe, as a start does.
    pub fn check(&self) -> Result<(), HttpError> {
        if self.no_auth && !self.listen.is_local() {
            return Err(HttpError::OpenToTheNetwork { listen: self.listen.clone() });
        }
        if self.no_auth && (self.token.is_some() || !self.tokens.is_empty()) {
            return Err(HttpError::TokenAndNoAuth);
        }
        let mut hashes = BTreeMap::new();
        for (name, client) in &self.tokens {
            if RESERVED_NAMES.contains(&name.as_str()) {
                return Err(HttpError::ReservedName { name: name.clone() });
            }
            if let Some(other) = hashes.insert(client.hash.as_bytes(), name) {
                let (one, other) = (other.clone(), name.clone());
                return Err(HttpError::SameToken { one, other });
            }
        }
        Ok(())
    }

    /// The allowed hosts, once the port is known.
    pub(crate) fn host_rules(&self, bound: Option<SocketAddr>) -> Result<Vec<HostRule>, HttpError> {
        own_names(bound)
            .into_iter()
            .chain(self.allowed_hosts.iter().cloned())
            .map(|text| HostRule::parse(&text).ok_or(HttpError::Host { text }))
            .collect()
    }

    /// The allowed origins, once the port is known: the server's own, and the configured ones.
    pub(crate) fn origin_rules(
        &self,
        bound: Option<SocketAddr>,
    ) -> Result<Vec<OriginRule>, HttpError> {
        own_names(bound)
            .into_iter()
            .map(|name| format!("http://{name}"))
            .chain(self.allowed_origins.iter().cloned())
            .map(|text| OriginRule::parse(&text).ok_or(HttpError::Origin { text }))
            .collect()
    }
}

/// The local names of a listener, and the address it is bound to. A Unix socket has no address; its
/// clients use `localhost`.
fn own_names(bound: Option<SocketAddr>) -> Vec<String> {
    let Some(bound) = bound else { return vec!["localhost".to_owned()] };
    let port = bound.port();
    ["localhost", "127.0.0.1", "[::1]"]
        .map(|name| format!("{name}:{port}"))
        .into_iter()
        .chain((!bound.ip().is_unspecified()).then(|| bound.to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(value: serde_json::Value) -> Result<ServerConfig, serde_json::Error> {
        serde_json::from_value(value)
    }

    #[test]
    fn an_empty_section_means_the_defaults() {
        let config = config(json!({})).unwrap();
        assert_eq!(config.listen.to_string(), "127.0.0.1:7777");
        assert!(config.token.is_none() && !config.no_auth);
        assert_eq!(config.body_limit.to_string(), "4MiB");
    }

    #[test]
    fn a_misspelt_key_and_a_bare_host_are_refused_with_a_correction() {
        let unknown = config(json!({"tokan": "x"})).unwrap_err().to_string();
        assert!(unknown.contains("`tokan`") && unknown.contains("`token`"), "{unknown}");
        let address = config(json!({"listen": "localhost"})).unwrap_err().to_string();
        assert!(address.contains("127.0.0.1:7777"), "{address}");
    }

    #[test]
    fn a_refused_token_is_not_repeated() {
        let error = config(json!({"token": "hunter2"})).unwrap_err().to_string();
        assert!(error.contains("16 to 512") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn the_network_is_never_served_without_a_token() {
        let open = config(json!({"listen": "0.0.0.0:7777", "no_auth": true})).unwrap();
        assert!(matches!(open.check(), Err(HttpError::OpenToTheNetwork { .. })));
        let local = config(json!({"listen": "[::1]:7777", "no_auth": true})).unwrap();
        assert!(local.check().is_ok());
    }

    #[test]
    fn a_token_with_no_auth_is_refused() {
        let both = config(json!({"token": "0123456789abcdef", "no_auth": true})).unwrap();
        assert!(matches!(both.check(), Err(HttpError::TokenAndNoAuth)));
    }
}
