//! The listener from bind to shutdown.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::net::TcpListener;
use tokio::sync::watch;
use toolcrib_mcp::{McpHttpOptions, McpServer};

use crate::api::Api;
use crate::auth::allowed_hosts::OriginRule;
use crate::auth::client::ClientFactory;
use crate::auth::clients::LiveClients;
use crate::auth::host_check::HostCheck;
use crate::observability::traffic::Traffic;
use crate::serving::connections;
use crate::serving::connections::{ConnectionLimits, Listener};
use crate::serving::request_body::BodyLimits;
use crate::serving::{routes, unix_socket};
use crate::{Backend, HttpError, Listen, OwnerSocket, ServerConfig, ServerSettings, Token};

/// How long running requests may take after a shutdown was requested.
const DRAIN: Duration = Duration::from_secs(10);

/// How long connections may take to close after their requests were ended.
const CLOSE: Duration = Duration::from_secs(1);

/// The connection limit of the owner's socket, separate from the public listener's.
const OWNER_CONNECTIONS: usize = 64;

/// A bound listener. It holds its port or socket from [`bind`](Self::bind) on, and answers from
/// [`serve`](Self::serve) on; connections made in between wait.
pub struct HttpServer {
    /// The public listener first, if there is one, then the owner's.
    listeners: Vec<BoundListener>,
    /// The public address with the actual port.
    address: Option<SocketAddr>,
    config: ServerConfig,
    token: Option<Token>,
    settings: Option<ServerSettings>,
    backend: Arc<dyn Backend>,
    mcp: McpServer,
}

/// A listener with its host rules and clients.
struct BoundListener {
    listener: Listener,
    host_check: HostCheck,
    clients: Arc<LiveClients>,
    connections: usize,
}

impl HttpServer {
    /// Checks the settings and binds the port or socket.
    ///
    /// `mcp` describes the server to MCP clients; their token decides which tools they see and
    /// whose calls they make. If the settings contain no token, one is generated;
    /// [`token`](Self::token) returns it.
    pub async fn bind(
        config: ServerConfig,
        backend: impl Backend,
        mcp: McpServer,
    ) -> Result<Self, HttpError> {
        config.check()?;
        let token = match &config.token {
            Some(token) => Some(token.clone()),
            None if config.no_auth || !config.tokens.is_empty() => None,
            None => Some(Token::random()?),
        };
        let (listener, address) = match &config.listen {
            Listen::Tcp(address) => {
                let bind_error =
                    |source| HttpError::Bind { listen: config.listen.clone(), error: source };
                let listener = TcpListener::bind(address).await.map_err(bind_error)?;
                let address = listener.local_addr().map_err(bind_error)?;
                (Listener::Tcp(listener), Some(address))
            }
            Listen::Unix(path) => {
                let (listener, file) = unix_socket::bind(path).await?;
                (Listener::Unix(listener, file), None)
            }
        };
        let hosts = config.host_rules(address)?;
        let origins = config.origin_rules(address)?;
        let backend: Arc<dyn Backend> = Arc::new(backend);
        if let Some(token) = &token {
            // Masks the token in outputs, whatever a tool finds it in.
            let secret = [token.reveal().to_owned()];
            backend.executor().mask_also(secret).map_err(|_| HttpError::TokenUnmasked)?;
        }
        let client_factory = ClientFactory::new(&backend, &mcp, mcp_options(&config, &origins));
        let clients = {
            let toolsets = |name: &str| backend.toolset(name);
            client_factory.clients(&config, token.as_ref(), &toolsets, None)?
        };
        let clients = Arc::new(LiveClients::new(clients));
        backend.executor().add_caller_rights(&clients);
        let made = token.clone().filter(|_| config.token.is_none());
        let settings = ServerSettings::new(client_factory, Arc::clone(&clients), made, &config);
        let host_check = HostCheck::new(hosts, origins);
        let public =
            BoundListener { listener, host_check, clients, connections: config.connections };
        let (listeners, settings) = (vec![public], Some(settings));
        Ok(Self { listeners, address, config, token, settings, backend, mcp })
    }

    /// Creates a server without a public listener, for programs that serve in another way: only its
    /// owner can reach it, over the socket. `mcp` is served at `/mcp` and closed together with the
    /// server.
    pub fn for_owner(
        socket: OwnerSocket,
        backend: impl Backend,
        mcp: McpServer,
    ) -> Result<Self, HttpError> {
        let (listeners, config) = (Vec::new(), ServerConfig::default());
        let (address, token, settings) = (None, None, None);
        let backend: Arc<dyn Backend> = Arc::new(backend);
        let server = Self { listeners, address, config, token, settings, backend, mcp };
        server.with_owner_socket(socket)
    }

    /// Adds the owner's socket: the same routes, with every right and without a token.
    pub fn with_owner_socket(mut self, socket: OwnerSocket) -> Result<Self, HttpError> {
        // A browser cannot connect to a Unix socket, so no origin is allowed.
        let (hosts, origins) = (ServerConfig::default().host_rules(None)?, Vec::new());
        let options = mcp_options(&self.config, &origins);
        let clients = ClientFactory::new(&self.backend, &self.mcp, options).owner();
        self.listeners.push(BoundListener {
            listener: Listener::Owner(socket),
            host_check: HostCheck::new(hosts, origins),
            clients: Arc::new(LiveClients::new(clients)),
            connections: OWNER_CONNECTIONS,
        });
        Ok(self)
    }

    /// The settings that can change while the public listener runs; `None` without a public
    /// listener.
    pub fn settings(&self) -> Option<ServerSettings> {
        self.settings.clone()
    }

    /// The address with the actual port; `None` for a Unix socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The path of the Unix socket, if the server listens on one.
    pub fn socket(&self) -> Option<&Path> {
        self.listeners.iter().find_map(|bound| match &bound.listener {
            Listener::Unix(_, file) => Some(file.path()),
            Listener::Tcp(_) | Listener::Owner(_) => None,
        })
    }

    /// The URL for clients on this machine, without a trailing slash. For a [Unix
    /// socket](Self::socket) it is `http://localhost`.
    pub fn url(&self) -> String {
        let Some(mut address) = self.address else { return "http://localhost".to_owned() };
        if address.ip().is_unspecified() {
            // Clients cannot connect to an unspecified address.
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        format!("http://{address}")
    }

    /// The URL for MCP clients on this machine.
    pub fn mcp_url(&self) -> String {
        format!("{}/mcp", self.url())
    }

    /// The operator's token; `None` with `no_auth`, or if only named clients have tokens.
    pub fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    /// Whether the server requires tokens.
    pub fn asks_for_tokens(&self) -> bool {
        !self.config.no_auth
    }

    /// Whether the token was generated at this start, so that nobody knows it yet.
    pub fn token_is_new(&self) -> bool {
        self.token.is_some() && self.config.token.is_none()
    }

    /// Answers requests until `shutdown` completes.
    ///
    /// Then no connection is accepted any more, MCP streams that only carry notifications end at
    /// once, and running requests have 10 s to finish; after that their calls are dropped and the
    /// MCP server is closed.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send) -> Result<(), HttpError> {
        let head = self.config.read_timeout.0;
        let limits = BodyLimits { bytes: self.config.body_bytes(), time: head };
        let traffic = Arc::<Traffic>::default();
        let api = Api::new(self.backend, Arc::clone(&traffic));
        let (stop, stopped) = watch::channel(false);
        let serving = self.listeners.into_iter().map(|bound| {
            let BoundListener { listener, host_check, clients, connections } = bound;
            let traffic = Arc::clone(&traffic);
            let app = routes::app(api.clone(), &clients, host_check, limits, Arc::clone(&traffic));
            let bounds = ConnectionLimits { connections, head };
            connections::serve(listener, app, bounds, traffic, stopped.clone())
        });
        let mut serving = Box::pin(join_all(serving));
        tokio::select! {
            _ = &mut serving => {}
            () = shutdown => {}
        }
        let _ = stop.send(true);
        // End these streams first: they have no end of their own.
        self.mcp.end_streams();
        api.closing().cancel();
        let drained = async {
            serving.as_mut().await;
            api.wait_for_tasks().await;
        };
        if tokio::time::timeout(DRAIN, drained).await.is_err() {
            tracing::warn!("requests were still running after {DRAIN:?} and are cancelled");
            self.mcp.close();
            let _ = tokio::time::timeout(CLOSE, serving).await;
        }
        self.mcp.close();
        Ok(())
    }
}

fn mcp_options(config: &ServerConfig, origins: &[OriginRule]) -> McpHttpOptions {
    let options = McpHttpOptions::default()
        // The host check in front of all routes knows the connection's address.
        .any_host()
        .allowed_origins(origins.iter().map(OriginRule::to_text))
        .retry(config.retry_after.0)
        .body_limit(config.body_bytes());
    match config.stream_lifetime.0 {
        Some(lifetime) => options.open_for(lifetime),
        None => options,
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
