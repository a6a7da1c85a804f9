//! The listener's life: bound, serving, drained, closed.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use toolcrib_mcp::{McpHttpOptions, McpServer};

use crate::admission::Admission;
use crate::authority::{HostRule, OriginRule};
use crate::{HttpError, ServerConfig, Token, routes};

/// How long requests that are being answered may take to finish after a shutdown was asked for.
const DRAIN: Duration = Duration::from_secs(10);

/// How long connections may take to notice that their requests were ended.
const CLOSE: Duration = Duration::from_secs(1);

/// A bound listener. It holds its port from [`bind`](Self::bind) on and answers from
/// [`serve`](Self::serve) on; connections made in between wait.
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    config: ServerConfig,
    token: Option<Token>,
    admission: Admission,
    mcp: McpServer,
    gauges: Gauges,
}

/// What `/health` says besides that the server lives.
pub(crate) type Gauges = Arc<dyn Fn() -> BTreeMap<&'static str, u64> + Send + Sync>;

impl HttpServer {
    /// Checks the settings and takes the port.
    ///
    /// Where the settings name no token, one is made; [`token`](Self::token) tells it.
    pub async fn bind(config: ServerConfig, mcp: McpServer) -> Result<Self, HttpError> {
        config.check()?;
        let token = match &config.token {
            _ if config.no_auth => None,
            Some(token) => Some(token.clone()),
            None => Some(Token::random()?),
        };
        let bind_error = |source| HttpError::Bind { listen: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(bind_error)?;
        let address = listener.local_addr().map_err(bind_error)?;
        let hosts = config.host_rules(address)?;
        let origins = config.origin_rules(address)?;
        let admission = Admission { hosts, origins };
        let gauges: Gauges = Arc::new(BTreeMap::new);
        Ok(Self { listener, address, config, token, admission, mcp, gauges })
    }

    /// Sets what `/health` says besides that the server lives: numbers by name, asked for anew by
    /// every request. No token is asked for there, so there are numbers only. Default: nothing.
    #[must_use]
    pub fn gauges(
        mut self,
        gauges: impl Fn() -> BTreeMap<&'static str, u64> + Send + Sync + 'static,
    ) -> Self {
        self.gauges = Arc::new(gauges);
        self
    }

    /// The address that is listened on, with the real port.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The URL an MCP client on this machine connects to.
    pub fn mcp_url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            // Nothing can connect to "any address".
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        format!("http://{address}/mcp")
    }

    /// The token clients have to send; none with `no_auth`.
    pub fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    /// Whether the token was made at this start, so that nobody knows it yet.
    pub fn token_is_new(&self) -> bool {
        self.token.is_some() && self.config.token.is_none()
    }

    /// Answers requests until `shutdown` completes.
    ///
    /// Then no connection is taken any more, and requests that are being answered have 10 s to
    /// finish; after that their calls are dropped and the MCP server is closed.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send) -> Result<(), HttpError> {
        let options = McpHttpOptions::default()
            .allowed_hosts(self.admission.hosts.iter().map(HostRule::to_text))
            .allowed_origins(self.admission.origins.iter().map(OriginRule::to_text))
            .body_limit(self.config.body_limit);
        let app =
            routes::app(self.mcp.http_service(options), self.token, self.admission, self.gauges);
        let app = axum::ServiceExt::<Request<Body>>::into_make_service(app);
        let listener = self.listener.tap_io(|connection| {
            // Answers are small and written once: waiting to fill a packet only delays them.
            if let Err(error) = connection.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY was not set");
            }
        });

        let (stop, stopped) = oneshot::channel::<()>();
        let serving = axum::serve(listener, app).with_graceful_shutdown(async {
            let _ = stopped.await;
        });
        let mut serving = std::pin::pin!(serving.into_future());
        tokio::select! {
            ended = &mut serving => return ended.map_err(HttpError::Serve),
            () = shutdown => {}
        }
        let _ = stop.send(());
        let drained = if let Ok(ended) = tokio::time::timeout(DRAIN, &mut serving).await {
            ended
        } else {
            tracing::warn!("requests were still being answered after {DRAIN:?}; they are ended");
            self.mcp.close();
            tokio::time::timeout(CLOSE, &mut serving).await.unwrap_or(Ok(()))
        };
        self.mcp.close();
        drained.map_err(HttpError::Serve)
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer")
            .field("address", &self.address)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
