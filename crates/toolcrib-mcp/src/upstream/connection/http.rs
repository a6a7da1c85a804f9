//! Servers that speak streamable HTTP: their address and the transport to it.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fmt;

use http::{HeaderName, HeaderValue};
use rmcp::RoleClient;
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use toolcrib_net::{AddressPolicy, Client, IpNet, NamedBy, Target};

use super::exact_http::ExactHttp;
use super::failure::Failure;
use crate::upstream::review::confidential::Confidential;

/// A server that speaks MCP over streamable HTTP.
///
/// Addresses are checked when the connection is made: loopback, private and link-local addresses
/// are dialled only if they are in an allowed network. Redirects are not followed, and the
/// environment, including proxy variables, is ignored.
///
/// ```
/// use toolcrib_mcp::upstream::{HttpServer, Upstream};
///
/// let server = HttpServer::new("http://127.0.0.1:8000/mcp").bearer("…").allow("127.0.0.0/8".parse()?);
/// assert_eq!(Upstream::http("local", server).name(), "local");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct HttpServer {
    url: String,
    bearer: Option<String>,
    headers: BTreeMap<String, String>,
    allowed: Vec<IpNet>,
}

impl HttpServer {
    /// Creates a server at this address: `http` or `https`, with a host and without user info.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), bearer: None, headers: BTreeMap::new(), allowed: Vec::new() }
    }

    /// Sets the token that is sent as `Authorization: Bearer …`.
    #[must_use]
    pub fn bearer(mut self, token: impl Into<String>) -> Self {
        self.bearer = Some(token.into());
        self
    }

    /// Sets a header that is sent with every request.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Allows all addresses of a network. Default: addresses of the public internet only.
    #[must_use]
    pub fn allow(mut self, network: IpNet) -> Self {
        self.allowed.push(network);
        self
    }

    /// Values that must not be shown even if the server says them.
    pub(crate) fn confidential(&self) -> impl Iterator<Item = &str> {
        self.bearer.iter().chain(self.headers.values()).map(String::as_str)
    }

    /// Creates the transport to the server; nothing is sent yet.
    pub(crate) async fn transport(
        &self,
        confidential: &Confidential,
    ) -> Result<impl Transport<RoleClient> + use<>, Failure> {
        let target = Target::parse(&self.url, NamedBy::Operator).map_err(|error| {
            Failure::new("its address cannot be used").detail(&error.to_string(), confidential)
        })?;
        let policy = self
            .allowed
            .iter()
            .fold(AddressPolicy::public(), |policy, network| policy.allow(*network));
        let client = Client::builder().addresses(policy).build();
        let client = client.of_server(&target).await.map_err(|error| {
            Failure::new("it cannot be connected to").detail(&chain(&error), confidential)
        })?;
        let mut config = StreamableHttpClientTransportConfig::with_uri(target.url().as_str())
            .custom_headers(self.custom_headers()?);
        // A session that the server has ended needs a new connection, since its tools may have
        // changed.
        config.reinit_on_expired_session = false;
        if let Some(token) = &self.bearer {
            config = config.auth_header(token.as_str());
        }
        Ok(StreamableHttpClientTransport::with_client(ExactHttp(client), config))
    }

    fn custom_headers(&self) -> Result<HashMap<HeaderName, HeaderValue>, Failure> {
        let mut headers = HashMap::new();
        for (name, value) in &self.headers {
            let unusable = || Failure::new(format!("its header `{name}` cannot be sent"));
            let name = HeaderName::try_from(name.as_str()).map_err(|_| unusable())?;
            let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| unusable())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

impl fmt::Debug for HttpServer {
    /// Omits the token and the values of headers, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer")
            .field("url", &self.url)
            .field("bearer", &self.bearer.as_ref().map(|_| "…"))
            .field("headers", &self.headers.keys())
            .field("allowed", &self.allowed)
            .finish()
    }
}

/// An error with all its causes, on one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        source = cause.source();
    }
    text.replace('\n', " ")
}
